// The last step of a matrix product: bias, pre-activation output, activation, rounding to the result's type.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace megalith {

/// Some sums of the product, and where they belong: rows [row, row + rows) and columns [column, column +
/// columns) of args.c. `sums` is float32 and holds alpha * op(a) * op(b) with rows `sums_step` apart; it may
/// be args.c's own memory, else args.accumulate adds to args.c what it held.
struct MatmulSums {
  const float* sums = nullptr;
  std::int64_t sums_step = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
};

/// Writes args.c (float32 or bfloat16) and args.pre_activation of these elements.
void finish_matmul(const MatmulArgs& args, const MatmulSums& sums);

/// args.c = activation(from) over all elements; from is [M, N], strided, of c's type.
void activate_matmul(const MatmulArgs& args, const Tensor& from, std::int64_t row_begin,
                     std::int64_t row_end);

}  // namespace megalith
