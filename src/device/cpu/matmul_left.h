// The left operand's rows of tiles, one after the other: made ready while the tiles of the row before are
// computed, so that their way from far away costs nothing. Included after hwy/highway.h by files that compile
// themselves once per instruction set.
//
// float32 rows are read where they are. bfloat16 rows are widened. A transposed operand is packed into
// panels: read in place it would put every element into a cache line of its own, and rows a power of two
// apart push each other out of every cache.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_MATMUL_LEFT_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_MATMUL_LEFT_H
#undef MEGALITH_DEVICE_CPU_MATMUL_LEFT_H
#else
#define MEGALITH_DEVICE_CPU_MATMUL_LEFT_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "device/cpu/simd_loop.h"
#include "device/cpu/simd_pack.h"
#include "device/cpu/simd_tile.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

/// Where the rows of tiles lie: element (i, k) at data[i * step + k], transposed at data[k * step + i].
template <typename T>
struct LeftOperand {
  const T* data;
  std::int64_t step;
  std::int64_t depth;  ///< of the block
  std::int64_t rows;   ///< of the block
  std::int64_t tiles;  ///< in a row of tiles

  /// Rounds of prefetches (register_tile) while a row of tiles is computed.
  std::int64_t rounds() const { return std::max<std::int64_t>(1, tiles * (depth / simd::prefetch_distance)); }
  int rows_at(std::int64_t row) const {
    return static_cast<int>(std::clamp<std::int64_t>(rows - row, 0, simd::tile_rows));
  }
};

/// Rows of an operand that is not transposed.
template <typename T>
class LeftRows {
 public:
  static constexpr bool panels = false;
  static constexpr std::int64_t scratch_rows = std::is_same_v<T, float> ? 0 : simd::tile_rows;

  LeftRows(const LeftOperand<T>& operand, float* scratch)
      : operand_(operand),
        scratch_(scratch),
        lines_((operand.depth + line - 1) / line),
        round_((simd::tile_rows * lines_ + operand.rounds() - 1) / operand.rounds()) {}

  /// Rows [row, row + tile_rows); those after them are fetched next.
  simd::TileLeft start(std::int64_t row) {
    const int rows = operand_.rows_at(row);
    const T* from = operand_.data + row * operand_.step;
    next_ = from + rows * operand_.step;
    next_rows_ = operand_.rows_at(row + rows);
    next_line_ = 0;
    if constexpr (std::is_same_v<T, float>) {
      return {from, operand_.step};
    } else {
      for (int i = 0; i < rows; ++i) {
        simd::map_elements(
            static_cast<std::size_t>(operand_.depth), [](auto v) HWY_ATTR { return v; },
            scratch_ + i * operand_.depth, from + i * operand_.step);
      }
      return {scratch_, operand_.depth};
    }
  }

  HWY_INLINE void round() {
    for (std::int64_t i = 0; i < round_ && next_rows_ > 0; ++i) {
      // Into the second cache: the first is full of what is in use.
      __builtin_prefetch(next_ + next_line_ * line, 0, 2);
      if (++next_line_ == lines_) {
        next_line_ = 0;
        next_ += operand_.step;
        --next_rows_;
      }
    }
  }

 private:
  static constexpr auto line = static_cast<std::int64_t>(64 / sizeof(T));

  LeftOperand<T> operand_;
  float* scratch_;
  std::int64_t lines_;
  std::int64_t round_;
  const T* next_ = nullptr;
  int next_rows_ = 0;
  std::int64_t next_line_ = 0;
};

/// Panels of a transposed operand. While the tiles use one, the next is packed, each element a while after
/// its cache line was asked for.
template <typename T>
class LeftPanels {
 public:
  static constexpr bool panels = true;
  static constexpr std::int64_t scratch_rows = 2 * simd::tile_rows;

  LeftPanels(const LeftOperand<T>& operand, float* scratch)
      : operand_(operand),
        now_(scratch),
        next_(scratch + simd::tile_rows * operand.depth),
        round_((operand.depth + operand.rounds() - 1) / operand.rounds()) {}

  simd::TileLeft start(std::int64_t row) {
    const int rows = operand_.rows_at(row);
    if (row == 0) {
      pack_rest(operand_.data, rows, 0, now_);
    } else {
      pack_rest(from_, rows, packed_, next_);
      std::swap(now_, next_);
    }
    from_ = operand_.data + row + rows;
    packed_ = 0;
    whole_ = operand_.rows_at(row + rows) == simd::tile_rows;
    return {now_, 0};
  }

  HWY_INLINE void round() {
    if (!whole_) return;
    const std::int64_t end = std::min(packed_ + round_, operand_.depth);
    for (; packed_ < end; ++packed_) {
      const T* from = from_ + packed_ * operand_.step;
      hwy::Prefetch(from + distance * round_ * operand_.step);
      simd::copy_tile_rows(from, next_ + packed_ * simd::tile_rows);
    }
  }

 private:
  /// Rounds between asking for a line and reading it: some 1,000 cycles.
  static constexpr std::int64_t distance = 3;

  void pack_rest(const T* from, int rows, std::int64_t begin, float* packed) {
    simd::pack_transposed_left(from + begin * operand_.step, operand_.step, rows, operand_.depth - begin,
                               packed + begin * simd::tile_rows);
  }

  LeftOperand<T> operand_;
  float* now_;
  float* next_;
  std::int64_t round_;
  const T* from_ = nullptr;
  std::int64_t packed_ = 0;
  bool whole_ = false;
};

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
