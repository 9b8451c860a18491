// The online softmax of attention's forward: Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018. Included after hwy/highway.h by files that compile themselves once per instruction set.
//
// Scores are multiplied by log2(e) before they come here, so that exponentials are powers of two. A row's
// base is what is subtracted from its scores: the largest so far, except that a base is kept while the
// largest exceeds it by little, because each change costs a pass over the sums.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_ATTENTION_SOFTMAX_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_SOFTMAX_H
#undef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_SOFTMAX_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_ATTENTION_SOFTMAX_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "device/cpu/simd_attention.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

/// What is known of a tile's rows after some of their keys.
struct OnlineSoftmax {
  float* base;     ///< [64], -infinity before the first key
  float* sum;      ///< [64], of 2^(score - base)
  float* rescale;  ///< [64], by what sums of earlier keys shrink in this step

  static constexpr std::int64_t floats = 3 * attention_tile_rows;
  explicit OnlineSoftmax(float* from)
      : base(from), sum(from + attention_tile_rows), rescale(from + 2 * attention_tile_rows) {}
  void clear() const {
    std::fill_n(base, attention_tile_rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, attention_tile_rows, 0.0F);
  }
};

/// How far scores may exceed their base: 2^8 leaves sums far from overflow.
inline constexpr float base_slack = 8.0F;

/// The largest of a vector of rows' scores of `keys`, of which `all` are seen by every row; the others become
/// -infinity where a row does not see them.
HWY_INLINE FloatVector largest_score(const AttentionRows& rows, KeyRange keys, KeyRange all,
                                     std::int64_t column, std::int64_t base, float* scores) {
  const FloatTag d;
  const auto nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  // Four at a time, because one maximum has to wait for the one before.
  auto most0 = nothing;
  auto most1 = nothing;
  auto most2 = nothing;
  auto most3 = nothing;
  const auto mask_keys = [&](std::int64_t first, std::int64_t last) HWY_ATTR {
    for (std::int64_t key = first; key < last; ++key) {
      float* place = scores + (key - base) * panel_columns;
      const auto score = hn::IfThenElse(sees_key(d, rows, column, key), hn::Load(d, place), nothing);
      hn::Store(score, d, place);
      most0 = hn::Max(most0, score);
    }
  };
  const KeyRange inner = all.last > all.first ? all : KeyRange{keys.last, keys.last};
  mask_keys(keys.first, inner.first);
  const float* place = scores + (inner.first - base) * panel_columns;
  std::int64_t key = inner.first;
  for (; key + 4 <= inner.last; key += 4) {
    most0 = hn::Max(most0, hn::Load(d, place));
    most1 = hn::Max(most1, hn::Load(d, place + panel_columns));
    most2 = hn::Max(most2, hn::Load(d, place + 2 * panel_columns));
    most3 = hn::Max(most3, hn::Load(d, place + 3 * panel_columns));
    place += 4 * panel_columns;
  }
  for (; key < inner.last; ++key) {
    most0 = hn::Max(most0, hn::Load(d, place));
    place += panel_columns;
  }
  mask_keys(inner.last, keys.last);
  return hn::Max(hn::Max(most0, most1), hn::Max(most2, most3));
}

/// One step: scores[key - first][row] of the keys, `first` the first of them, become 2^(score - base), then
/// dropout sets some to 0. Where a row sees no such key they become 0. Returns whether sums of earlier keys
/// change.
HWY_NOINLINE inline bool softmax_step(const DropoutArgs& dropout, const AttentionRows& rows,
                                      std::uint64_t sample, const SeenKeys& seen_keys, float* scores,
                                      const OnlineSoftmax& state) {
  const KeyRange keys = seen_keys.keys();
  const FloatTag d;
  const auto nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  bool changed = false;
  for (std::int64_t column = 0; column < rows.count; column += float_lanes) {
    float* const panel = scores + column;
    const AttentionRows::Seen& seen = seen_keys.by(column);
    clear_keys(keys, seen.any, keys.first, panel);
    hn::Store(hn::Set(d, 1.0F), d, state.rescale + column);
    if (seen.any.last <= seen.any.first) continue;
    const auto before = hn::Load(d, state.base + column);
    const auto largest = largest_score(rows, seen.any, seen.all, column, keys.first, panel);
    const auto grows = hn::Gt(largest, hn::Add(before, hn::Set(d, base_slack)));
    const auto after = hn::IfThenElse(grows, largest, before);
    // A row that has seen no key yet has no base; 0 keeps its exponents at -infinity.
    const auto base = hn::IfThenElse(hn::Eq(after, nothing), hn::Zero(d), after);
    auto sum = hn::Zero(d);
    float* place = panel + (seen.any.first - keys.first) * panel_columns;
    for (std::int64_t key = seen.any.first; key < seen.any.last; ++key) {
      const auto weight = exp2_small(d, hn::Sub(hn::Load(d, place), base));
      hn::Store(weight, d, place);
      sum = hn::Add(sum, weight);
      place += panel_columns;
    }
    if (hn::AllFalse(d, grows)) {
      hn::Store(hn::Add(hn::Load(d, state.sum + column), sum), d, state.sum + column);
    } else {
      const auto shrink = exp2_small(d, hn::Sub(before, base));
      changed = true;
      hn::Store(shrink, d, state.rescale + column);
      hn::Store(hn::MulAdd(hn::Load(d, state.sum + column), shrink, sum), d, state.sum + column);
      hn::Store(after, d, state.base + column);
    }
    if (dropout.probability > 0.0) {
      for_each_kept(dropout, rows, sample, seen.any, column,
                    [&](std::int64_t key, hn::Mask<FloatTag> kept) HWY_ATTR {
                      float* weight = panel + (key - keys.first) * panel_columns;
                      hn::Store(hn::IfThenElseZero(kept, hn::Load(d, weight)), d, weight);
                    });
    }
  }
  return changed;
}

/// After the last key: rescale[row] = factor / sum, by which sums become outputs (0 for a row without keys),
/// and sum[row] = ln sum exp(score), -infinity for a row without keys.
HWY_INLINE void finish_softmax(std::int64_t rows, float factor, const OnlineSoftmax& state) {
  const FloatTag d;
  for (std::int64_t column = 0; column < rows; column += float_lanes) {
    const auto sum = hn::Load(d, state.sum + column);
    const auto empty = hn::Eq(sum, hn::Zero(d));
    hn::Store(hn::IfThenZeroElse(empty, hn::Div(hn::Set(d, factor), sum)), d, state.rescale + column);
    const auto total = hn::MulAdd(hn::Load(d, state.base + column), hn::Set(d, 0.693147181F), log(d, sum));
    const auto nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
    hn::Store(hn::IfThenElse(empty, nothing, total), d, state.sum + column);
  }
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
