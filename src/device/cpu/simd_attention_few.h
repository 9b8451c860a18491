// Attention of very few rows (generation: one query at a time), forward only. Keys and values are used where
// they lie: a copy would cost more than the arithmetic, and the limit is the bandwidth of reading them.
// Included after hwy/highway.h by files that compile themselves once per instruction set.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_ATTENTION_FEW_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_FEW_H
#undef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_FEW_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_ATTENTION_FEW_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cpu/simd_attention_softmax.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

/// At most so many rows are few.
inline constexpr std::int64_t few_rows = 4;

/// Working memory.
struct FewRows {
  float* queries;  ///< [rows, head size], times scale
  float* sums;     ///< [rows, head size], out times the softmax's sum
  float* scores;   ///< [keys, 64]
  OnlineSoftmax softmax;

  static std::int64_t floats(std::int64_t head_size) {
    return attention_tile_keys * panel_columns + OnlineSoftmax::floats + 2 * few_rows * head_size;
  }
  FewRows(float* from, std::int64_t head_size)
      : queries(from + attention_tile_keys * panel_columns + OnlineSoftmax::floats),
        sums(queries + few_rows * head_size),
        scores(from),
        softmax(from + attention_tile_keys * panel_columns) {}
};

/// Asks for a row some keys ahead: rows of one head lie a page or more apart, where hardware does not look
/// ahead.
template <typename T>
HWY_INLINE void prefetch_key(const AttentionLayout& layout, const Tensor& tensor, std::int64_t sequence,
                             std::int64_t group, std::int64_t key, KeyRange keys) {
  constexpr std::int64_t distance = 12;
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  if (key + distance >= keys.last) return;
  const T* row = pointer_to<T>(tensor) + layout.key_offset(tensor, sequence, key + distance, group);
  for (std::int64_t i = 0; i < layout.head_size(); i += line) hwy::Prefetch(row + i);
}

/// scores[key][row] = queries[row] . key.
template <typename T>
void few_row_scores(const AttentionLayout& layout, const AttentionArgs& args, const FewRows& few,
                    std::int64_t sequence, std::int64_t group, std::int64_t rows, KeyRange keys) {
  const FloatTag d;
  const std::int64_t size = layout.head_size();
  for (std::int64_t key = keys.first; key < keys.last; ++key) {
    prefetch_key<T>(layout, args.key, sequence, group, key, keys);
    const T* from = pointer_to<T>(args.key) + layout.key_offset(args.key, sequence, key, group);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* query = few.queries + row * size;
      auto sum = hn::Zero(d);
      std::int64_t i = 0;
      for (; i + float_lanes <= size; i += float_lanes) {
        sum = hn::MulAdd(hn::LoadU(d, query + i), load(d, from + i), sum);
      }
      float score = hn::GetLane(hn::SumOfLanes(d, sum));
      for (; i < size; ++i) score += query[i] * static_cast<float>(from[i]);
      few.scores[(key - keys.first) * panel_columns + row] = score;
    }
  }
}

/// sums[row] += sum over keys of scores[key][row] * value.
template <typename T>
void few_row_sums(const AttentionLayout& layout, const AttentionArgs& args, const FewRows& few,
                  std::int64_t sequence, std::int64_t group, std::int64_t rows, KeyRange keys) {
  const FloatTag d;
  const std::int64_t size = layout.head_size();
  for (std::int64_t key = keys.first; key < keys.last; ++key) {
    prefetch_key<T>(layout, args.value, sequence, group, key, keys);
    const T* from = pointer_to<T>(args.value) + layout.key_offset(args.value, sequence, key, group);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float weight = few.scores[(key - keys.first) * panel_columns + row];
      const auto factor = hn::Set(d, weight);
      float* to = few.sums + row * size;
      std::int64_t i = 0;
      for (; i + float_lanes <= size; i += float_lanes) {
        hn::StoreU(hn::MulAdd(factor, load(d, from + i), hn::LoadU(d, to + i)), d, to + i);
      }
      for (; i < size; ++i) to[i] += weight * static_cast<float>(from[i]);
    }
  }
}

/// Attention of one tile of at most few_rows rows. `store(row, sums, factor, log_sum_exp)` takes each result.
template <typename T, typename Store>
void forward_few_rows(const AttentionLayout& layout, const AttentionArgs& args, std::int64_t sequence,
                      std::int64_t group, const AttentionRows& rows, std::uint64_t sample, float query_factor,
                      float out_factor, float* scratch, const Store& store_result) {
  const std::int64_t size = layout.head_size();
  const FewRows few(scratch, size);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    convert_row(pointer_to<T>(args.query) + layout.row_offset(args.query, sequence, group, rows.first + row),
                size, query_factor, few.queries + row * size, size);
  }
  std::fill_n(few.sums, rows.count * size, 0.0F);
  few.softmax.clear();
  std::int64_t first = rows.any.first;
  while (first < rows.any.last) {
    const std::int64_t next = (first / attention_tile_keys + 1) * attention_tile_keys;
    const KeyRange keys{first, std::min(rows.any.last, next)};
    few_row_scores<T>(layout, args, few, sequence, group, rows.count, keys);
    if (softmax_step(args.dropout, rows, sample, SeenKeys(rows, keys), few.scores, few.softmax)) {
      for (std::int64_t row = 0; row < rows.count; ++row) {
        float* sums = few.sums + row * size;
        store_row(sums, size, few.softmax.rescale[row], sums);
      }
    }
    few_row_sums<T>(layout, args, few, sequence, group, rows.count, keys);
    first = next;
  }
  finish_softmax(rows.count, out_factor, few.softmax);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    store_result(row, few.sums + row * size, few.softmax.rescale[row], few.softmax.sum[row]);
  }
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
