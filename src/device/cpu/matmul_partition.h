// How a matrix product is cut among threads: a grid of blocks of the result.
#pragma once

#include <cstdint>

#include "device/parallel_for.h"

namespace megalith {

struct MatmulBlock {
  std::int64_t row_begin, row_end;
  std::int64_t column_begin, column_end;
};

class MatmulPartition {
 public:
  /// Cuts c [rows, columns], a sum over `depth`, for at most `threads` threads. Depends on these numbers
  /// alone.
  MatmulPartition(std::int64_t rows, std::int64_t columns, std::int64_t depth, int threads);

  int parts() const { return row_parts_ * column_parts_; }
  MatmulBlock block(int part) const;

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  int row_parts_ = 1;
  int column_parts_ = 1;
};

}  // namespace megalith
