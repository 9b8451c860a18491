// The inner part of the matrix product: a register tile, c[rows, 3 vectors] += a[rows, depth] * b[depth, 3
// vectors]. Included after hwy/highway.h by files that compile themselves once per instruction set.
//
// Limits, for AVX-512 with two multiply-adds a cycle: a step of the depth is 8 x 3 multiply-adds, 12 cycles;
// it loads 3 vectors of b and 8 elements of a, 11 of the 24 loads that fit. The 24 sums hide the latency of
// multiply-add (4 cycles, two a cycle) three times. b comes from the second-level cache: 192 bytes in 12
// cycles, 16 a cycle where the cache gives 48 or more.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_TILE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_TILE_H
#undef MEGALITH_DEVICE_CPU_SIMD_TILE_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_TILE_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

// The sums, a row of b and an element of a fill the registers: 8 x 3 + 3 + 1 of 32, or 4 x 3 + 3 + 1 of 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int tile_rows = 8;
#else
inline constexpr int tile_rows = 4;
#endif
inline constexpr int tile_vectors = 3;
inline constexpr auto tile_lanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));

/// Columns of a whole tile.
inline constexpr std::int64_t tile_columns = tile_vectors * tile_lanes;

/// How a tile reads a: element (i, k) is data[i * step + k], or, as a panel, data[k * tile_rows + i].
struct TileLeft {
  const float* data;
  std::int64_t step;
};

/// Where a tile puts its sums: c (rows `step` apart, `width` columns) = alpha * sums, or added to it.
struct TileResult {
  float* c;
  std::int64_t step;
  std::int64_t width;
  float alpha;
  bool add;
};

/// Steps of the depth between two rounds of prefetches.
inline constexpr std::int64_t prefetch_distance = 32;

template <int Rows, int Vectors>
using TileSums = hn::Vec<hn::ScalableTag<float>>[Rows][Vectors];

/// The columns of a tile narrower than its vectors; rows of `sums` are `step` apart.
HWY_NOINLINE inline void store_part(const float* sums, int rows, std::int64_t step,
                                    const TileResult& result) {
  for (int i = 0; i < rows; ++i) {
    float* row = result.c + i * result.step;
    for (std::int64_t j = 0; j < result.width; ++j) {
      row[j] = result.add ? row[j] + sums[i * step + j] : sums[i * step + j];
    }
  }
}

template <int Rows, int Vectors>
HWY_INLINE void store_tile(const TileSums<Rows, Vectors>& sums, const TileResult& result) {
  const hn::ScalableTag<float> d;
  const auto alpha = hn::Set(d, result.alpha);
  if (result.width == Vectors * tile_lanes) {
    HWY_UNROLL(8)
    for (int i = 0; i < Rows; ++i) {
      float* row = result.c + i * result.step;
      HWY_UNROLL(8)
      for (int j = 0; j < Vectors; ++j) {
        const auto base = result.add ? hn::LoadU(d, row + j * tile_lanes) : hn::Zero(d);
        hn::StoreU(hn::MulAdd(alpha, sums[i][j], base), d, row + j * tile_lanes);
      }
    }
    return;
  }
  HWY_ALIGN float buffer[Rows * Vectors * tile_lanes];
  HWY_UNROLL(8)
  for (int i = 0; i < Rows; ++i) {
    HWY_UNROLL(8)
    for (int j = 0; j < Vectors; ++j) {
      hn::Store(hn::Mul(alpha, sums[i][j]), d, buffer + (i * Vectors + j) * tile_lanes);
    }
  }
  store_part(buffer, Rows, Vectors * tile_lanes, result);
}

/// sums += a[rows, k] * b[k, columns] for one k; `b` points to that row.
template <int Rows, int Vectors, typename Ahead>
HWY_INLINE void add_step(const float* const (&rows)[Rows], std::int64_t k, const float* HWY_RESTRICT b,
                         TileSums<Rows, Vectors>& sums) {
  const hn::ScalableTag<float> d;
  hn::Vec<hn::ScalableTag<float>> right[Vectors];
  HWY_UNROLL(8)
  for (int j = 0; j < Vectors; ++j) right[j] = hn::Load(d, b + j * tile_lanes);
  HWY_UNROLL(8)
  for (int i = 0; i < Rows; ++i) {
    const auto factor = hn::Set(d, Ahead::panels ? rows[0][k * tile_rows + i] : rows[i][k]);
    HWY_UNROLL(8)
    for (int j = 0; j < Vectors; ++j) sums[i][j] = hn::MulAdd(factor, right[j], sums[i][j]);
  }
}

/// The same for all k of [begin, end), a multiple of 4 apart; `b` points to row 0.
template <int Rows, int Vectors, typename Ahead>
HWY_INLINE void add_steps(const float* const (&rows)[Rows], std::int64_t begin, std::int64_t end,
                          const float* HWY_RESTRICT b, TileSums<Rows, Vectors>& sums) {
  b += begin * Vectors * tile_lanes;
  for (std::int64_t k = begin; k < end; k += 4) {
    HWY_UNROLL(4)
    for (int next = 0; next < 4; ++next) {
      add_step<Rows, Vectors, Ahead>(rows, k + next, b + next * Vectors * tile_lanes, sums);
    }
    b += 4 * Vectors * tile_lanes;
  }
}

/// One tile. b is [depth, Vectors * tile_lanes], aligned to vectors.
template <int Rows, int Vectors, typename Ahead>
HWY_NOINLINE void register_tile(std::int64_t depth, const TileLeft& left, const float* HWY_RESTRICT b,
                                const TileResult& result, Ahead& ahead) {
  const hn::ScalableTag<float> d;
  TileSums<Rows, Vectors> sums;
  HWY_UNROLL(8)
  for (int i = 0; i < Rows; ++i) {
    HWY_UNROLL(8)
    for (int j = 0; j < Vectors; ++j) sums[i][j] = hn::Zero(d);
  }
  const float* rows[Rows];
  HWY_UNROLL(8)
  for (int i = 0; i < Rows; ++i) rows[i] = left.data + i * left.step;
  std::int64_t k = 0;
  // c and the next rows of a come from far away. Their lines are asked for a few at a time: all at once they
  // would keep those of b waiting.
  for (int round = 0; k + prefetch_distance <= depth; ++round) {
    if (round < Rows) {
      HWY_UNROLL(8)
      for (int j = 0; j < Vectors; ++j) hwy::Prefetch(result.c + round * result.step + j * tile_lanes);
    }
    ahead.round();
    add_steps<Rows, Vectors, Ahead>(rows, k, k + prefetch_distance, b, sums);
    k += prefetch_distance;
  }
  add_steps<Rows, Vectors, Ahead>(rows, k, depth / 4 * 4, b, sums);
  k = depth / 4 * 4;
  b += k * Vectors * tile_lanes;
  for (; k < depth; ++k) {
    add_step<Rows, Vectors, Ahead>(rows, k, b, sums);
    b += Vectors * tile_lanes;
  }
  store_tile<Rows, Vectors>(sums, result);
}

template <int Rows, typename Ahead>
HWY_INLINE void register_tile_of_width(std::int64_t depth, const TileLeft& left, const float* b,
                                       const TileResult& result, Ahead& ahead) {
  if (result.width > 2 * tile_lanes) {
    register_tile<Rows, 3, Ahead>(depth, left, b, result, ahead);
  } else if (result.width > tile_lanes) {
    register_tile<Rows, 2, Ahead>(depth, left, b, result, ahead);
  } else {
    register_tile<Rows, 1, Ahead>(depth, left, b, result, ahead);
  }
}

/// Columns of b that a tile of `width` columns of c reads: `width` rounded up to whole vectors.
HWY_INLINE std::int64_t tile_columns_of(std::int64_t width) {
  return (width + tile_lanes - 1) / tile_lanes * tile_lanes;
}

/// Tiles for `rows` <= tile_rows rows: one, or at the lower edge several of 4, 2 and 1 rows.
template <typename Ahead>
HWY_INLINE void row_of_tiles(int rows, std::int64_t depth, TileLeft left, const float* b, TileResult result,
                             Ahead& ahead) {
  if (rows == tile_rows) {
    register_tile_of_width<tile_rows, Ahead>(depth, left, b, result, ahead);
    return;
  }
  const auto run = [&]<int Rows>() HWY_ATTR {
    if ((rows & Rows) == 0) return;
    register_tile_of_width<Rows, Ahead>(depth, left, b, result, ahead);
    left.data += Rows * (Ahead::panels ? 1 : left.step);
    result.c += Rows * result.step;
  };
  run.template operator()<4>();
  run.template operator()<2>();
  run.template operator()<1>();
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
