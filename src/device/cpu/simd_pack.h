// Packing of matrix operands for the register tiles of simd_tile.h: float32 panels, contiguous, zeros where a
// panel is wider than what is left. Included after hwy/highway.h by files that compile themselves once per
// instruction set.
//
// Limit: bytes. Each element is read once from far and written once to the second-level cache. Packing b
// costs about one cycle an element against rows/32 cycles of multiply-adds with it: 3 % at 1,024 rows.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_PACK_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_PACK_H
#undef MEGALITH_DEVICE_CPU_SIMD_PACK_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_PACK_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cpu/simd_math.h"
#include "device/cpu/simd_tile.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
/// Transposes each 4 x 4 block that four vectors hold side by side: element 4b + j of vector i goes to
/// element 4b + i of vector j.
template <class D>
HWY_INLINE void transpose_inside_blocks(D d, hn::Vec<D>* rows) {
  const hn::RepartitionToWide<hn::RebindToUnsigned<D>> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[0], rows[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[2], rows[3]));
  rows[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  rows[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  rows[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  rows[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

/// to[j][i] = from[i][j] for a square of as many rows as a vector has lanes: `tile_lanes`, 4, 8 or 16. Rows
/// are `from_step` and `to_step` apart.
template <typename T>
HWY_INLINE void transpose_square(const T* HWY_RESTRICT from, std::int64_t from_step, float* HWY_RESTRICT to,
                                 std::int64_t to_step) {
  const hn::ScalableTag<float> d;
  hn::Vec<hn::ScalableTag<float>> v[tile_lanes];
  for (std::int64_t i = 0; i < tile_lanes; ++i) v[i] = load(d, from + i * from_step);
  for (std::int64_t i = 0; i < tile_lanes; i += 4) transpose_inside_blocks(d, v + i);
  // Now vector 4g + j holds, in block b, rows 4g to 4g+3 of column 4b + j. Blocks change places with vectors.
  for (std::int64_t j = 0; j < 4; ++j) {
    float* column = to + j * to_step;
    if constexpr (tile_lanes == 4) {
      hn::StoreU(v[j], d, column);
    } else if constexpr (tile_lanes == 8) {
      hn::StoreU(hn::ConcatLowerLower(d, v[4 + j], v[j]), d, column);
      hn::StoreU(hn::ConcatUpperUpper(d, v[4 + j], v[j]), d, column + 4 * to_step);
    } else {
      const auto even_low = hn::ConcatLowerLower(d, v[8 + j], v[j]);
      const auto odd_low = hn::ConcatLowerLower(d, v[12 + j], v[4 + j]);
      const auto even_high = hn::ConcatUpperUpper(d, v[8 + j], v[j]);
      const auto odd_high = hn::ConcatUpperUpper(d, v[12 + j], v[4 + j]);
      hn::StoreU(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_low), even_low), d, column);
      hn::StoreU(hn::OddEvenBlocks(odd_low, hn::SwapAdjacentBlocks(even_low)), d, column + 4 * to_step);
      hn::StoreU(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_high), even_high), d, column + 8 * to_step);
      hn::StoreU(hn::OddEvenBlocks(odd_high, hn::SwapAdjacentBlocks(even_high)), d, column + 12 * to_step);
    }
  }
}

#endif  // vectors of one lane have nothing to exchange

/// packed[k][j] = from[j][k], rows of `packed` `width` apart: `count` columns of a transposed operand.
template <typename T>
HWY_INLINE void pack_transposed_columns(const T* HWY_RESTRICT from, std::int64_t step, std::int64_t count,
                                        std::int64_t depth, float* HWY_RESTRICT packed, std::int64_t width) {
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  if (count == tile_lanes) {
    for (; k + tile_lanes <= depth; k += tile_lanes) {
      // The rows after these come next.
      for (std::int64_t j = 0; j < tile_lanes; ++j) hwy::Prefetch(from + (tile_lanes + j) * step + k);
      transpose_square(from + k, step, packed + k * width, width);
    }
  }
#endif
  for (; k < depth; ++k) {
    for (std::int64_t j = 0; j < count; ++j) packed[k * width + j] = static_cast<float>(from[j * step + k]);
    for (std::int64_t j = count; j < tile_lanes; ++j) packed[k * width + j] = 0.0F;
  }
}

/// to[i] = from[i] for i < count, 0 up to the next whole vector.
template <typename T>
HWY_INLINE void copy_padded(const T* HWY_RESTRICT from, std::int64_t count, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  std::int64_t j = 0;
  for (; j + tile_lanes <= count; j += tile_lanes) hn::StoreU(load(d, from + j), d, to + j);
  if (j < count) hn::StoreU(load_n(d, from + j, static_cast<std::size_t>(count - j)), d, to + j);
}

/// Panels of a right operand whose element (k, j) is from[k * step + j]: columns [j, j + tile_columns) at
/// packed + j * depth, rows tile_columns_of(their number) apart. Rows are read as they lie.
template <typename T>
void pack_right(const T* from, std::int64_t step, std::int64_t columns, std::int64_t depth, float* packed) {
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t j = 0; j < columns; j += tile_columns) {
      const std::int64_t width = std::min(tile_columns, columns - j);
      for (std::int64_t i = 0; i < width; i += tile_lanes) hwy::Prefetch(from + 2 * step + j + i);
      copy_padded(from + j, width, packed + j * depth + k * tile_columns_of(width));
    }
    from += step;
  }
}

/// The same where element (k, j) is from[j * step + k].
template <typename T>
void pack_transposed_right(const T* from, std::int64_t step, std::int64_t columns, std::int64_t depth,
                           float* packed) {
  for (std::int64_t j = 0; j < columns; j += tile_columns) {
    const std::int64_t width = std::min(tile_columns, columns - j);
    for (std::int64_t i = 0; i < width; i += tile_lanes) {
      pack_transposed_columns(from + (j + i) * step, step, std::min(tile_lanes, width - i), depth,
                              packed + j * depth + i, tile_columns_of(width));
    }
  }
}

/// to[i] = from[i] for i < tile_rows.
template <typename T>
HWY_INLINE void copy_tile_rows(const T* HWY_RESTRICT from, float* HWY_RESTRICT to) {
  const hn::CappedTag<float, tile_rows> d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(hn::CappedTag<float, tile_rows>()));
  for (std::int64_t i = 0; i < tile_rows; i += lanes) hn::StoreU(load(d, from + i), d, to + i);
}

/// A panel packed[k * tile_rows + i] of a left operand whose element (i, k) is from[k * step + i]; of `rows`
/// <= tile_rows rows.
template <typename T>
void pack_transposed_left(const T* HWY_RESTRICT from, std::int64_t step, int rows, std::int64_t depth,
                          float* HWY_RESTRICT packed) {
  if (rows == tile_rows) {
    for (std::int64_t k = 0; k < depth; ++k) copy_tile_rows(from + k * step, packed + k * tile_rows);
    return;
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    for (int i = 0; i < rows; ++i) packed[k * tile_rows + i] = static_cast<float>(from[k * step + i]);
  }
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
