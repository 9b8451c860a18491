// KernelProfile: the calls that an ObservedDevice saw, as a table with one row per kernel, type and shape.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "device/observed_device.h"
#include "device/yardsticks.h"

namespace megalith {

struct KernelRow {
  std::string kernel;
  DType dtype = DType::float32;
  KernelWork work;  ///< of one call, the mean
  std::int64_t calls = 0;
  double seconds = 0.0;  ///< of all calls
  double median = 0.0;   ///< of one call
  double fastest = 0.0;
};

class KernelProfile {
 public:
  void add(const KernelCall& call);
  /// The rows with the most time first.
  std::vector<KernelRow> rows() const;
  /// Of all calls.
  double seconds() const;

 private:
  struct Samples {
    KernelWork work;
    std::vector<double> seconds;
  };
  std::map<std::tuple<std::string, DType, std::string>, Samples> samples_;
};

}  // namespace megalith
