#include "core/thread_cost.h"

#include <ctime>

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace megalith {

double thread_processor_seconds() {
  timespec time{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void lower_thread_priority([[maybe_unused]] int steps) {
#if defined(__linux__)
  // On Linux a nice value belongs to a thread, and 0 names the caller.
  errno = 0;
  const int before = ::getpriority(PRIO_PROCESS, 0);
  if (errno == 0) static_cast<void>(::setpriority(PRIO_PROCESS, 0, before + steps));
#endif
}

}  // namespace megalith
