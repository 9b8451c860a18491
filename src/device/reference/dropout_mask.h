// Dropout masks, row by row (core/philox.h fixes which element is dropped).
#pragma once

#include <cstdint>
#include <span>

#include "device/device.h"
#include "device/reference/memory.h"

namespace megalith::reference {

class DropoutMask {
 public:
  DropoutMask(const HostView& view, const DropoutArgs& args);

  bool active() const { return args_.probability > 0.0; }
  /// What each of `factors.size()` elements of a row is multiplied by, 0 or 1/(1-p), from local column
  /// `first_column` on; all 1 without dropout. `head` and `row` are local.
  void row_factors(std::int64_t sequence, std::int64_t head, std::int64_t row, std::int64_t first_column,
                   std::span<double> factors) const;

 private:
  DropoutArgs args_;
  const std::int64_t* samples_;
};

}  // namespace megalith::reference
