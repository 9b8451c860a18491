// Products of small float32 matrices that stand in the nearest caches, on Highway vectors: the inner part of
// attention. Included after hwy/highway.h by files that compile themselves
// once per instruction set.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_PRODUCT_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_PRODUCT_H
#undef MEGALITH_DEVICE_CPU_SIMD_PRODUCT_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_PRODUCT_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;

// The register tile: as many rows of two vectors as the registers hold beside two vectors of b and one of a.
#if HWY_TARGET <= HWY_AVX3
inline constexpr int register_rows = 12;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int register_rows = 6;
#else
inline constexpr int register_rows = 8;
#endif

/// Columns of the register tile.
HWY_INLINE std::int64_t register_columns() {
  return 2 * static_cast<std::int64_t>(hn::Lanes(FloatTag()));
}

/// `columns` rounded up to whole register tiles.
HWY_INLINE std::int64_t padded_columns(std::int64_t columns) {
  const std::int64_t unit = register_columns();
  return (columns + unit - 1) / unit * unit;
}

/// A matrix read one element at a time: element (i, k) is data[i * row_step + k * column_step].
struct LeftMatrix {
  const float* data;
  std::int64_t row_step;
  std::int64_t column_step;
};

/// One register tile: c[Rows, width] = alpha * a[Rows, depth] * b[depth, width], or added to c. Rows of b are
/// b_step apart and readable for register_columns(); only `width` columns of c are touched.
template <int Rows>
HWY_INLINE void register_tile(std::int64_t depth, const LeftMatrix& a, const float* HWY_RESTRICT b,
                              std::int64_t b_step, float alpha, bool accumulate, float* HWY_RESTRICT c,
                              std::int64_t c_step, std::int64_t width) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<FloatTag> left[Rows];
  hn::Vec<FloatTag> right[Rows];
  for (int i = 0; i < Rows; ++i) {
    left[i] = hn::Zero(d);
    right[i] = hn::Zero(d);
  }
  const float* HWY_RESTRICT a_column = a.data;
  const std::int64_t row_step = a.row_step;
  const std::int64_t column_step = a.column_step;
  for (std::int64_t k = 0; k < depth; ++k) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    for (int i = 0; i < Rows; ++i) {
      const auto factor = hn::Set(d, a_column[i * row_step]);
      left[i] = hn::MulAdd(factor, b0, left[i]);
      right[i] = hn::MulAdd(factor, b1, right[i]);
    }
    a_column += column_step;
    b += b_step;
  }
  const auto scale = hn::Set(d, alpha);
  if (width == register_columns()) {
    for (int i = 0; i < Rows; ++i) {
      float* row = c + i * c_step;
      const auto base0 = accumulate ? hn::LoadU(d, row) : hn::Zero(d);
      const auto base1 = accumulate ? hn::LoadU(d, row + lanes) : hn::Zero(d);
      hn::StoreU(hn::MulAdd(scale, left[i], base0), d, row);
      hn::StoreU(hn::MulAdd(scale, right[i], base1), d, row + lanes);
    }
    return;
  }
  HWY_ALIGN float buffer[2 * hn::MaxLanes(FloatTag())];
  for (int i = 0; i < Rows; ++i) {
    float* row = c + i * c_step;
    hn::StoreU(hn::Mul(scale, left[i]), d, buffer);
    hn::StoreU(hn::Mul(scale, right[i]), d, buffer + lanes);
    for (std::int64_t j = 0; j < width; ++j) row[j] = accumulate ? row[j] + buffer[j] : buffer[j];
  }
}

/// register_tile for 1 <= rows <= register_rows.
template <int Rows = register_rows>
HWY_INLINE void register_tile_of(int rows, std::int64_t depth, const LeftMatrix& a, const float* b,
                                 std::int64_t b_step, float alpha, bool accumulate, float* c,
                                 std::int64_t c_step, std::int64_t width) {
  if (rows == Rows) {
    register_tile<Rows>(depth, a, b, b_step, alpha, accumulate, c, c_step, width);
    return;
  }
  if constexpr (Rows > 1) {
    register_tile_of<Rows - 1>(rows, depth, a, b, b_step, alpha, accumulate, c, c_step, width);
  }
}

/// c[rows, columns] = alpha * a[rows, depth] * b[depth, columns], or added to c. b's rows are readable for
/// padded_columns(columns).
HWY_NOINLINE inline void small_product(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                       const LeftMatrix& a, const float* b, std::int64_t b_step, float alpha,
                                       bool accumulate, float* c, std::int64_t c_step) {
  const std::int64_t unit = register_columns();
  for (std::int64_t j = 0; j < columns; j += unit) {
    const std::int64_t width = columns - j < unit ? columns - j : unit;
    for (std::int64_t i = 0; i < rows; i += register_rows) {
      const std::int64_t rest = rows - i < register_rows ? rows - i : register_rows;
      register_tile_of(static_cast<int>(rest), depth, {a.data + i * a.row_step, a.row_step, a.column_step},
                       b + j, b_step, alpha, accumulate, c + i * c_step + j, c_step, width);
    }
  }
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
