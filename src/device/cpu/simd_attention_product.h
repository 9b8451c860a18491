// Products of attention's small float32 matrices, which stand in the nearest caches, on Highway vectors.
// Included after hwy/highway.h by files that compile themselves once per instruction set.
//
// Every matrix here is one or more panels of up to 64 columns whose rows lie 64 floats apart. So all steps
// are known to the compiler and become part of the instructions' addresses. Limits, for AVX-512 with two
// multiply-adds a cycle: a step of the depth is 6 x 4 multiply-adds, 12 cycles, for 6 + 4 loads of the 24
// that fit; a tile of sums costs 24 stores, and 24 loads where it is added to, per depth x 12 cycles.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_ATTENTION_PRODUCT_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_PRODUCT_H
#undef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_PRODUCT_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_ATTENTION_PRODUCT_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cpu/attention_layout.h"
#include "device/cpu/far_rows.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

// The register tile: as many rows of some vectors as the registers hold beside these vectors of b and one of
// a.
inline constexpr std::int64_t sum_rows = 6;
#if HWY_TARGET <= HWY_AVX3
inline constexpr int sum_vectors = 4;
#else
inline constexpr int sum_vectors = 2;
#endif
inline constexpr std::int64_t float_lanes = hn::MaxLanes(hn::ScalableTag<float>());
static_assert(panel_columns % (sum_vectors * float_lanes) == 0);

/// `columns` rounded up to whole vectors.
constexpr std::int64_t padded_columns(std::int64_t columns) {
  return (columns + float_lanes - 1) / float_lanes * float_lanes;
}

/// How a product reads its left matrix: element (i, k) of a is a[i * panel_columns + k], or a[k *
/// panel_columns
/// + i] where it is stored transposed.
enum class Left : std::uint8_t { straight, transposed };

template <Left left, int Rows, int Vectors>
HWY_INLINE void sum_tile(std::int64_t depth, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                         bool accumulate, float* HWY_RESTRICT c) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t row_step = left == Left::straight ? panel_columns : 1;
  constexpr std::int64_t depth_step = left == Left::straight ? 1 : panel_columns;
  hn::Vec<hn::ScalableTag<float>> sums[Rows][Vectors];
  if (accumulate) {
    for (int i = 0; i < Rows; ++i) {
      for (int j = 0; j < Vectors; ++j) sums[i][j] = hn::Load(d, c + i * panel_columns + j * float_lanes);
    }
  } else {
    for (int i = 0; i < Rows; ++i) {
      for (int j = 0; j < Vectors; ++j) sums[i][j] = hn::Zero(d);
    }
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    hn::Vec<hn::ScalableTag<float>> right[Vectors];
    for (int j = 0; j < Vectors; ++j) right[j] = hn::Load(d, b + j * float_lanes);
    for (int i = 0; i < Rows; ++i) {
      const auto factor = hn::Set(d, a[i * row_step]);
      for (int j = 0; j < Vectors; ++j) sums[i][j] = hn::MulAdd(factor, right[j], sums[i][j]);
    }
    a += depth_step;
    b += panel_columns;
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Vectors; ++j) hn::Store(sums[i][j], d, c + i * panel_columns + j * float_lanes);
  }
}

/// sum_tile for 1 <= rows <= Rows.
template <Left left, int Vectors, int Rows>
HWY_INLINE void sum_tile_of(std::int64_t rows, std::int64_t depth, const float* a, const float* b,
                            bool accumulate, float* c) {
  if (rows == Rows) {
    sum_tile<left, Rows, Vectors>(depth, a, b, accumulate, c);
    return;
  }
  if constexpr (Rows > 1) sum_tile_of<left, Vectors, Rows - 1>(rows, depth, a, b, accumulate, c);
}

template <Left left, int Vectors>
HWY_NOINLINE void sum_columns(std::int64_t rows, std::int64_t depth, const float* a, const float* b,
                              bool accumulate, float* c, FarRows& far) {
  constexpr std::int64_t row_step = left == Left::straight ? panel_columns : 1;
  std::int64_t i = 0;
  for (; i + sum_rows <= rows; i += sum_rows) {
    far.ask();
    sum_tile<left, sum_rows, Vectors>(depth, a + i * row_step, b, accumulate, c + i * panel_columns);
  }
  if (i == rows) return;
  sum_tile_of<left, Vectors, sum_rows - 1>(rows - i, depth, a + i * row_step, b, accumulate,
                                           c + i * panel_columns);
}

/// sum_columns for 1 <= vectors <= Vectors.
template <Left left, int Vectors = sum_vectors>
HWY_INLINE void sum_columns_of(std::int64_t vectors, std::int64_t rows, std::int64_t depth, const float* a,
                               const float* b, bool accumulate, float* c, FarRows& far) {
  if (vectors == Vectors) {
    sum_columns<left, Vectors>(rows, depth, a, b, accumulate, c, far);
    return;
  }
  if constexpr (Vectors > 1)
    sum_columns_of<left, Vectors - 1>(vectors, rows, depth, a, b, accumulate, c, far);
}

/// c[rows, columns] = a[rows, depth] * b[depth, columns] inside one panel, or added to c: its sums go on in
/// the order of the depth. `columns` is a multiple of float_lanes; b and c are aligned to vectors. Asks
/// for far rows on the way.
template <Left left>
HWY_INLINE void panel_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a,
                              const float* b, bool accumulate, float* c, FarRows& far) {
  constexpr std::int64_t step = sum_vectors * float_lanes;
  for (std::int64_t j = 0; j < columns; j += step) {
    const std::int64_t vectors = std::min(step, columns - j) / float_lanes;
    sum_columns_of<left>(vectors, rows, depth, a, b + j, accumulate, c + j, far);
  }
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
