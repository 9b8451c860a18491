// Tiled attention with online softmax: Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018; Dao et al., "FlashAttention", 2022. A task holds a tile of rows and walks over the keys they see.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "device/check.h"
#include "device/cpu/attention.h"
#include "device/cpu/attention_layout.h"
#include "device/cpu/cpu_device.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_forward.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/simd_attention.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// With so few rows (generation, one query at a time) keys and values are used where they lie: a copy would
/// cost more than the arithmetic.
inline constexpr std::int64_t few_rows = 4;

/// A task's working memory.
struct ForwardTile {
  std::int64_t width;         ///< head size padded for register tiles
  float* queries;             ///< [rows, width], times scale
  float* queries_transposed;  ///< [head size, rows]
  float* keys;                ///< [keys, head size]
  float* values;              ///< [keys, width]
  float* scores;              ///< [keys, rows], then exp(score - largest)
  float* sums;                ///< [rows, width], out times row_sum
  float* largest;             ///< [rows]
  float* row_sum;             ///< [rows]
  float* rescale;             ///< [rows]

  static std::size_t floats(std::int64_t head_size) {
    const std::int64_t padded = simd::padded_columns(head_size);
    return static_cast<std::size_t>(attention_tile_rows * (2 * padded + head_size + 3) +
                                    attention_tile_keys * (head_size + padded + attention_tile_rows));
  }
  ForwardTile(std::byte* scratch, std::int64_t head_size)
      : width(simd::padded_columns(head_size)),
        queries(reinterpret_cast<float*>(scratch)),
        queries_transposed(queries + attention_tile_rows * width),
        keys(queries_transposed + attention_tile_rows * head_size),
        values(keys + attention_tile_keys * head_size),
        scores(values + attention_tile_keys * width),
        sums(scores + attention_tile_keys * attention_tile_rows),
        largest(sums + attention_tile_rows * width),
        row_sum(largest + attention_tile_rows),
        rescale(row_sum + attention_tile_rows) {}
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

/// scores[key][row] = queries[row] . key, keys read where they lie.
template <typename T>
void few_row_scores(const AttentionLayout& layout, const AttentionArgs& args, const ForwardTile& tile,
                    std::int64_t sequence, std::int64_t group, std::int64_t rows, KeyRange keys) {
  const simd::FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t size = layout.head_size();
  for (std::int64_t key = keys.first; key < keys.last; ++key) {
    prefetch_key<T>(layout, args.key, sequence, group, key, keys);
    const T* from = pointer_to<T>(args.key) + layout.key_offset(args.key, sequence, key, group);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* query = tile.queries + row * tile.width;
      auto sum = hn::Zero(d);
      std::int64_t i = 0;
      for (; i + lanes <= size; i += lanes) {
        sum = hn::MulAdd(hn::LoadU(d, query + i), simd::load(d, from + i), sum);
      }
      float score = hn::GetLane(hn::SumOfLanes(d, sum));
      for (; i < size; ++i) score += query[i] * static_cast<float>(from[i]);
      tile.scores[(key - keys.first) * attention_tile_rows + row] = score;
    }
  }
}

/// sums[row] += sum over keys of scores[key][row] * value, values read where they lie.
template <typename T>
void few_row_sums(const AttentionLayout& layout, const AttentionArgs& args, const ForwardTile& tile,
                  std::int64_t sequence, std::int64_t group, std::int64_t rows, KeyRange keys) {
  const simd::FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t size = layout.head_size();
  for (std::int64_t key = keys.first; key < keys.last; ++key) {
    prefetch_key<T>(layout, args.value, sequence, group, key, keys);
    const T* from = pointer_to<T>(args.value) + layout.key_offset(args.value, sequence, key, group);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float weight = tile.scores[(key - keys.first) * attention_tile_rows + row];
      const auto factor = hn::Set(d, weight);
      float* to = tile.sums + row * tile.width;
      std::int64_t i = 0;
      for (; i + lanes <= size; i += lanes) {
        hn::StoreU(hn::MulAdd(factor, simd::load(d, from + i), hn::LoadU(d, to + i)), d, to + i);
      }
      for (; i < size; ++i) to[i] += weight * static_cast<float>(from[i]);
    }
  }
}

/// One step of the online softmax: scores become exp(score - largest), row_sum and largest take the keys in,
/// rescale says by what earlier sums shrink. Then dropout sets scores to 0.
void softmax_step(const AttentionArgs& args, const AttentionRows& rows, std::uint64_t sample, KeyRange keys,
                  const ForwardTile& tile) {
  const simd::FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t count = keys.last - keys.first;
  const bool masked = keys.first < rows.all.first || keys.last > rows.all.last || rows.count % lanes != 0;
  const auto nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (std::int64_t column = 0; column < rows.count; column += lanes) {
    float* scores = tile.scores + column;
    const auto before = hn::LoadU(d, tile.largest + column);
    auto largest = before;
    for (std::int64_t key = 0; key < count; ++key) {
      auto score = hn::LoadU(d, scores + key * attention_tile_rows);
      if (masked) {
        score = hn::IfThenElse(simd::sees_key(d, rows, column, keys.first + key), score, nothing);
        hn::StoreU(score, d, scores + key * attention_tile_rows);
      }
      largest = hn::Max(largest, score);
    }
    // A row that has seen no key yet has no largest score; 0 keeps its exponents at -infinity.
    const auto base = hn::IfThenElse(hn::Eq(largest, nothing), hn::Zero(d), largest);
    auto sum = hn::Zero(d);
    for (std::int64_t key = 0; key < count; ++key) {
      const auto weight =
          simd::exp_nonpositive(d, hn::Sub(hn::LoadU(d, scores + key * attention_tile_rows), base));
      hn::StoreU(weight, d, scores + key * attention_tile_rows);
      sum = hn::Add(sum, weight);
    }
    const auto shrink = simd::exp_nonpositive(d, hn::Sub(before, base));
    hn::StoreU(shrink, d, tile.rescale + column);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, tile.row_sum + column), shrink, sum), d, tile.row_sum + column);
    hn::StoreU(largest, d, tile.largest + column);
    if (args.dropout.probability > 0.0) {
      simd::for_each_kept(args.dropout, rows, sample, keys, column,
                          [&](std::int64_t key, hn::Mask<simd::FloatTag> kept) HWY_ATTR {
                            float* score = scores + key * attention_tile_rows;
                            hn::StoreU(hn::IfThenElseZero(kept, hn::LoadU(d, score)), d, score);
                          });
    }
  }
}

void rescale_sums(const ForwardTile& tile, std::int64_t rows) {
  const simd::FloatTag d;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (tile.rescale[row] == 1.0F) continue;
    const auto factor = hn::Set(d, tile.rescale[row]);
    float* sums = tile.sums + row * tile.width;
    for (std::int64_t i = 0; i < tile.width; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      hn::StoreU(hn::Mul(factor, hn::LoadU(d, sums + i)), d, sums + i);
    }
  }
}

template <typename T>
void forward_tile(const AttentionLayout& layout, const AttentionArgs& args, std::int64_t sequence,
                  std::int64_t group, std::int64_t tile_number, std::byte* scratch) {
  const std::int64_t size = layout.head_size();
  const ForwardTile tile(scratch, size);
  const AttentionRows rows = layout.rows_of(sequence, group, tile_number);
  const std::uint64_t sample = args.dropout.probability > 0.0 ? layout.sample_of(sequence) : 0;
  const bool few = rows.count <= few_rows;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const T* from =
        pointer_to<T>(args.query) + layout.row_offset(args.query, sequence, group, rows.first + row);
    simd::convert_row(from, size, static_cast<float>(args.scale), tile.queries + row * tile.width,
                      tile.width);
  }
  if (!few) simd::transpose_rows(tile.queries, tile.width, rows.count, size, tile.queries_transposed);
  std::fill_n(tile.sums, rows.count * tile.width, 0.0F);
  std::fill_n(tile.largest, attention_tile_rows, -std::numeric_limits<float>::infinity());
  std::fill_n(tile.row_sum, attention_tile_rows, 0.0F);

  for (std::int64_t first = rows.any.first; first < rows.any.last; first += attention_tile_keys) {
    const KeyRange keys{first, std::min(rows.any.last, first + attention_tile_keys)};
    const std::int64_t count = keys.last - keys.first;
    if (few) {
      few_row_scores<T>(layout, args, tile, sequence, group, rows.count, keys);
    } else {
      simd::load_keys<T>(layout, args.key, sequence, group, keys, tile.keys, size);
      simd::small_product(count, attention_tile_rows, size, {tile.keys, size, 1}, tile.queries_transposed,
                          attention_tile_rows, 1.0F, false, tile.scores, attention_tile_rows);
    }
    softmax_step(args, rows, sample, keys, tile);
    rescale_sums(tile, rows.count);
    if (few) {
      few_row_sums<T>(layout, args, tile, sequence, group, rows.count, keys);
    } else {
      simd::load_keys<T>(layout, args.value, sequence, group, keys, tile.values, tile.width);
      simd::small_product(rows.count, tile.width, count, {tile.scores, 1, attention_tile_rows}, tile.values,
                          tile.width, 1.0F, true, tile.sums, tile.width);
    }
  }

  const double kept = 1.0 / (1.0 - args.dropout.probability);
  float* log_sum_exp = pointer_to<float>(args.log_sum_exp);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float sum = tile.row_sum[row];
    const bool empty = sum == 0.0F;
    const float factor = empty ? 0.0F : static_cast<float>(kept / static_cast<double>(sum));
    T* to = pointer_to<T>(args.out) + layout.row_offset(args.out, sequence, group, rows.first + row);
    simd::store_row(tile.sums + row * tile.width, size, factor, to);
    log_sum_exp[layout.statistic_offset(sequence, group, rows.first + row)] =
        empty ? -std::numeric_limits<float>::infinity() : tile.largest[row] + std::log(sum);
  }
}

std::size_t forward_scratch(std::int64_t head_size) {
  return ForwardTile::floats(head_size) * sizeof(float);
}

void forward_task(const AttentionLayout& layout, const AttentionArgs& args, std::int64_t sequence,
                  std::int64_t group, std::int64_t tile, std::byte* scratch) {
  if (args.query.dtype == DType::bfloat16) {
    forward_tile<BFloat16>(layout, args, sequence, group, tile, scratch);
  } else {
    forward_tile<float>(layout, args, sequence, group, tile, scratch);
  }
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(forward_scratch);
HWY_EXPORT(forward_task);

void run_attention_forward(ThreadTeam& team, Scratch& scratch, const AttentionArgs& args) {
  if (args.query.shape[0] == 0 || args.query.shape[1] == 0 || args.query.shape[2] == 0) return;
  const AttentionLayout layout(args);
  const std::int64_t tiles = layout.tiles();
  const std::size_t bytes = HWY_DYNAMIC_DISPATCH(forward_scratch)(layout.head_size());
  for (int slot = 0; slot < team.threads(); ++slot) scratch.get(slot, bytes);
  // The last tiles first: under a causal mask they see the most keys.
  team.parallel_tasks(layout.batch() * layout.groups() * tiles, [&](std::int64_t task, int slot) {
    const std::int64_t tile = tiles - 1 - task % tiles;
    const std::int64_t group = task / tiles % layout.groups();
    HWY_DYNAMIC_DISPATCH(forward_task)
    (layout, args, task / tiles / layout.groups(), group, tile, scratch.at(slot));
  });
}

void CpuDevice::attention_forward(QueueKind, const AttentionArgs& args) {
  check_attention_forward(args);
  MEGALITH_ASSERT(supports(args.query.dtype), format("the cpu device has no {}", name_of(args.query.dtype)));
  const std::lock_guard lock(kernel_mutex_);
  run_attention_forward(team_, scratch_, args);
}

}  // namespace megalith
#endif
