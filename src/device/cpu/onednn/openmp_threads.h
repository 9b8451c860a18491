// oneDNN takes its number of threads from the calling thread's OpenMP setting, which belongs to that thread
// and not to the device: every call into it sets the number and puts the old one back.
#pragma once

#include <omp.h>

namespace megalith {

class OpenMpThreads {
 public:
  explicit OpenMpThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~OpenMpThreads() { omp_set_num_threads(before_); }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int before_;
};

}  // namespace megalith
