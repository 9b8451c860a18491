// c [M, N] = a [M, K] w^T for few rows M and weights w [N, K] as they are stored: w is read once, where it
// lies.
//
// Limits: 2 M N K floating-point operations, and N K weights read. One row is bound by reading memory, and
// stays so up to about M = 8 in float32; from there on the multiply-adds of a register tile are the limit, at
// most Rows * Columns of them for Rows + Columns loads.
#include "device/cpu/thin_matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cpu/cpu_device.h"
#include "device/cpu/matmul_finish.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/thin_matmul.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/simd_math.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;

/// a in float32, rows `step` apart.
struct LeftRows {
  const float* data;
  std::int64_t step;
};

/// Columns of a thread's buffer of sums.
inline constexpr std::int64_t column_block = 128;
// The register tile: Rows of a times Columns rows of w, a sum each, beside a vector of every column and one
// of a.
inline constexpr int tile_rows = 8;
#if HWY_TARGET <= HWY_AVX3
inline constexpr int most_sums = 24;
#else
inline constexpr int most_sums = 12;
#endif
constexpr int columns_for(int rows) {
  return std::clamp(most_sums / rows, 1, 4);
}

/// sums[i * column_block + j] = alpha * a row i times w row j. Each sum is one chain of vectors over the
/// depth, whatever the tile, so that a result does not depend on what is computed beside it.
template <int Rows, int Columns, typename T>
HWY_INLINE void tile(std::int64_t depth, const LeftRows& a, const T* HWY_RESTRICT w, std::int64_t w_step,
                     float alpha, float* HWY_RESTRICT sums) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<FloatTag> sum[Rows][Columns];
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Columns; ++j) sum[i][j] = hn::Zero(d);
  }
  const T* HWY_RESTRICT next = w + Columns * w_step;
  std::int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    hn::Vec<FloatTag> column[Columns];
    for (int j = 0; j < Columns; ++j) {
      column[j] = simd::load(d, w + j * w_step + k);
      // The rows of the next tile: hardware that looks ahead loses the thread at every row's end.
      hwy::Prefetch(next + j * w_step + k);
    }
    for (int i = 0; i < Rows; ++i) {
      const auto row = hn::LoadU(d, a.data + i * a.step + k);
      for (int j = 0; j < Columns; ++j) sum[i][j] = hn::MulAdd(row, column[j], sum[i][j]);
    }
  }
  if (k < depth) {
    const auto rest = static_cast<std::size_t>(depth - k);
    for (int i = 0; i < Rows; ++i) {
      const auto row = simd::load_n(d, a.data + i * a.step + k, rest);
      for (int j = 0; j < Columns; ++j) {
        sum[i][j] = hn::MulAdd(row, simd::load_n(d, w + j * w_step + k, rest), sum[i][j]);
      }
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Columns; ++j) {
      sums[i * column_block + j] = alpha * hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
    }
  }
}

/// The first `columns` rows of w for `rows` <= Rows rows of a.
template <int Rows = tile_rows, typename T>
HWY_INLINE void tiles(std::int64_t rows, std::int64_t depth, const LeftRows& a, const T* w,
                      std::int64_t w_step, std::int64_t columns, float alpha, float* sums) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return tiles<Rows - 1>(rows, depth, a, w, w_step, columns, alpha, sums);
  }
  constexpr int wide = columns_for(Rows);
  std::int64_t j = 0;
  for (; j + wide <= columns; j += wide) tile<Rows, wide>(depth, a, w + j * w_step, w_step, alpha, sums + j);
  for (; j < columns; ++j) tile<Rows, 1>(depth, a, w + j * w_step, w_step, alpha, sums + j);
}

template <typename T>
void multiply_columns(const MatmulArgs& args, const LeftRows& a, std::int64_t begin, std::int64_t end) {
  HWY_ALIGN float sums[most_thin_rows * column_block];
  const std::int64_t rows = args.c.shape[0];
  const std::int64_t depth = args.b.data.shape[1];
  const std::int64_t w_step = args.b.data.stride(0);
  const auto alpha = static_cast<float>(args.alpha);
  for (std::int64_t first = begin; first < end; first += column_block) {
    const std::int64_t columns = std::min(column_block, end - first);
    const T* w = pointer_to<T>(args.b.data) + first * w_step;
    // Few columns at a time, so that later rows find them in the nearest cache.
    const std::int64_t together = rows > tile_rows ? columns_for(tile_rows) : columns;
    for (std::int64_t j = 0; j < columns; j += together) {
      for (std::int64_t i = 0; i < rows; i += tile_rows) {
        tiles(std::min<std::int64_t>(tile_rows, rows - i), depth, {a.data + i * a.step, a.step},
              w + j * w_step, w_step, std::min(together, columns - j), alpha, sums + i * column_block + j);
      }
    }
    finish_matmul(args, {sums, column_block, 0, rows, first, columns});
  }
}

void multiply_thin(const MatmulArgs& args, const float* left, std::int64_t left_step, std::int64_t begin,
                   std::int64_t end) {
  const LeftRows a{left, left_step};
  if (args.b.data.dtype == DType::bfloat16) {
    multiply_columns<BFloat16>(args, a, begin, end);
  } else {
    multiply_columns<float>(args, a, begin, end);
  }
}

void to_float32(const Tensor& from, float* to) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto columns = static_cast<std::size_t>(from.shape[1]);
  for (std::int64_t i = 0; i < from.shape[0]; ++i) {
    const BFloat16* row = pointer_to<BFloat16>(from) + i * from.stride(0);
    std::size_t k = 0;
    for (; k + lanes <= columns; k += lanes) hn::StoreU(simd::load(d, row + k), d, to + k);
    for (; k < columns; ++k) to[k] = static_cast<float>(row[k]);
    to += columns;
  }
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(multiply_thin);
HWY_EXPORT(to_float32);

bool is_thin_matmul(const MatmulArgs& args) {
  return args.c.shape[0] <= most_thin_rows && !args.a.transposed && args.b.transposed;
}

void run_thin_matmul(ThreadTeam& team, Scratch& scratch, const MatmulArgs& args) {
  // Below so many multiplications per thread, starting another costs more than it saves.
  constexpr std::int64_t least_work = 1 << 16;
  constexpr std::int64_t column_unit = 16;
  const Tensor& rows = args.a.data;
  const float* a = pointer_to<float>(rows);
  std::int64_t a_step = rows.stride(0);
  if (rows.dtype == DType::bfloat16) {
    auto* converted =
        reinterpret_cast<float*>(scratch.get(0, static_cast<std::size_t>(rows.count()) * sizeof(float)));
    HWY_DYNAMIC_DISPATCH(to_float32)(rows, converted);
    a = converted;
    a_step = rows.shape[1];
  }
  const std::int64_t least_columns = least_work / std::max<std::int64_t>(1, rows.count());
  const std::int64_t grain = (least_columns + column_unit) / column_unit * column_unit;
  team.parallel_for(args.c.shape[1], grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(multiply_thin)(args, a, a_step, begin, end);
  });
}

}  // namespace megalith
#endif
