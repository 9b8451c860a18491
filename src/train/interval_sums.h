// What is added up between two logged lines. Part of a checkpoint, so that a resumed run prints the means it
// would have printed uncut.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace megalith {

struct IntervalSums {
  double loss_sum = 0;          ///< of the steps that were applied
  std::int64_t loss_steps = 0;  ///< how many those are
  std::int64_t steps = 0;       ///< all steps
  std::int64_t skipped = 0;     ///< steps whose gradient was not finite
  std::int64_t nans = 0;        ///< steps whose loss was not finite
  // Of this process only, not stored: a resumed run does not know how long the steps before it took.
  double seconds = 0;
  std::int64_t timed_steps = 0;
  std::int64_t tokens = 0;
  double flops = 0;  ///< model FLOPs

  nlohmann::json to_json() const;
  /// Missing or damaged fields start from 0.
  static IntervalSums from_json(const nlohmann::json& json);
};

}  // namespace megalith
