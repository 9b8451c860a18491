#include "device/cpu/matmul_partition.h"

#include <algorithm>

namespace megalith {

namespace {

// Boundaries fall on whole rows of tiles, and on whole vectors, of every instruction set.
constexpr std::int64_t row_unit = 8;
constexpr std::int64_t column_unit = 16;
// Below so many multiplications per thread, starting another thread costs more than it saves.
constexpr double least_work = 1 << 17;

std::int64_t units_of(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit;
}

std::int64_t boundary(std::int64_t count, std::int64_t unit, int part, int parts) {
  return std::min(count, units_of(count, unit) * part / parts * unit);
}

}  // namespace

MatmulPartition::MatmulPartition(std::int64_t rows, std::int64_t columns, std::int64_t depth, int threads)
    : rows_(rows), columns_(columns) {
  const double work = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
  const int wanted = static_cast<int>(std::clamp(work / least_work, 1.0, static_cast<double>(threads)));
  double least = -1.0;
  for (int row_parts = 1; row_parts <= wanted; ++row_parts) {
    const int column_parts = wanted / row_parts;
    if (row_parts > units_of(rows, row_unit) || column_parts > units_of(columns, column_unit)) continue;
    const auto height = static_cast<double>(units_of(units_of(rows, row_unit), row_parts) * row_unit);
    const auto width =
        static_cast<double>(units_of(units_of(columns, column_unit), column_parts) * column_unit);
    // The block's products; packing an element of b, about as much as 24 of them; reading one of a, 8.
    const double cost = height * width + 8.0 * height + 24.0 * width;
    if (least < 0.0 || cost < least) {
      least = cost;
      row_parts_ = row_parts;
      column_parts_ = column_parts;
    }
  }
  if (least < 0.0) {
    // Fewer tiles than threads: one tile each.
    row_parts_ = static_cast<int>(std::min<std::int64_t>(units_of(rows, row_unit), wanted));
    column_parts_ =
        static_cast<int>(std::min<std::int64_t>(units_of(columns, column_unit), wanted / row_parts_));
  }
}

MatmulBlock MatmulPartition::block(int part) const {
  const int row = part / column_parts_;
  const int column = part % column_parts_;
  return {boundary(rows_, row_unit, row, row_parts_), boundary(rows_, row_unit, row + 1, row_parts_),
          boundary(columns_, column_unit, column, column_parts_),
          boundary(columns_, column_unit, column + 1, column_parts_)};
}

}  // namespace megalith
