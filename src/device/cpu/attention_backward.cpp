// Gradients of tiled attention, with probabilities computed again from the log-sum-exp: Dao et al.,
// "FlashAttention", 2022, appendix B. With p the probabilities, d the dropout factors (0 or
// 1/(1-probability)):
//   value_grad = (p d)^T out_grad;  score_grad = p (d (out_grad value^T) - row_dots);
//   query_grad = scale score_grad key;  key_grad = scale score_grad^T query.
// One task per key-value group of a sequence: it walks over tiles of keys and, inside, over the tiles of rows
// that see them, so every sum has one owner and one order.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "device/check.h"
#include "device/cpu/attention.h"
#include "device/cpu/attention_layout.h"
#include "device/cpu/cpu_device.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_backward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/simd_attention.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Floats of one tile of rows, kept for the whole task.
struct RowTile {
  float* queries;              ///< [rows, width], times scale
  float* queries_transposed;   ///< [head size, rows]
  float* out_grad;             ///< [rows, width]
  float* out_grad_transposed;  ///< [head size, rows]
  float* query_grad;           ///< [rows, width], without scale
  float* log_sum_exp;          ///< [rows]; infinity for rows without keys, so that their probabilities are 0
  float* row_dots;             ///< [rows]

  static std::int64_t floats(std::int64_t size, std::int64_t width) {
    return attention_tile_rows * (3 * width + 2 * size + 2);
  }
  RowTile(float* from, std::int64_t size, std::int64_t width)
      : queries(from),
        queries_transposed(queries + attention_tile_rows * width),
        out_grad(queries_transposed + attention_tile_rows * size),
        out_grad_transposed(out_grad + attention_tile_rows * width),
        query_grad(out_grad_transposed + attention_tile_rows * size),
        log_sum_exp(query_grad + attention_tile_rows * width),
        row_dots(log_sum_exp + attention_tile_rows) {}
};

/// Floats of the tile of keys at work.
struct KeyTile {
  float* keys;        ///< [keys, width]
  float* values;      ///< [keys, width]
  float* key_grad;    ///< [keys, width]
  float* value_grad;  ///< [keys, width]
  float* weights;     ///< [keys, rows]: scores, then p d
  float* score_grad;  ///< [keys, rows]: d out_grad . value, then score_grad

  static std::int64_t floats(std::int64_t width) {
    return attention_tile_keys * (4 * width + 2 * attention_tile_rows);
  }
  KeyTile(float* from, std::int64_t width)
      : keys(from),
        values(keys + attention_tile_keys * width),
        key_grad(values + attention_tile_keys * width),
        value_grad(key_grad + attention_tile_keys * width),
        weights(value_grad + attention_tile_keys * width),
        score_grad(weights + attention_tile_keys * attention_tile_rows) {}
};

/// `out` is scratch of `width` floats.
template <typename T>
void load_row_tile(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                   std::int64_t group, const AttentionRows& rows, const RowTile& tile, std::int64_t width,
                   float* out) {
  const simd::FloatTag d;
  const AttentionArgs& forward = args.forward;
  const std::int64_t size = layout.head_size();
  std::fill_n(tile.log_sum_exp, attention_tile_rows, std::numeric_limits<float>::infinity());
  std::fill_n(tile.row_dots, attention_tile_rows, 0.0F);
  std::fill_n(tile.query_grad, attention_tile_rows * width, 0.0F);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::int64_t number = rows.first + row;
    const auto offset = [&](const Tensor& tensor) {
      return layout.row_offset(tensor, sequence, group, number);
    };
    float* out_grad = tile.out_grad + row * width;
    simd::convert_row(pointer_to<T>(forward.query) + offset(forward.query), size,
                      static_cast<float>(forward.scale), tile.queries + row * width, width);
    simd::convert_row(pointer_to<T>(args.out_grad) + offset(args.out_grad), size, 1.0F, out_grad, width);
    simd::convert_row(pointer_to<T>(forward.out) + offset(forward.out), size, 1.0F, out, width);
    auto sum = hn::Zero(d);
    for (std::int64_t i = 0; i < width; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      sum = hn::MulAdd(hn::LoadU(d, out + i), hn::LoadU(d, out_grad + i), sum);
    }
    tile.row_dots[row] = hn::GetLane(hn::SumOfLanes(d, sum));
    const std::int64_t statistic = layout.statistic_offset(sequence, group, number);
    pointer_to<float>(args.row_dots)[statistic] = tile.row_dots[row];
    const auto place = static_cast<std::size_t>(row);
    if (rows.key_last[place] > rows.key_first[place]) {
      tile.log_sum_exp[row] = pointer_to<float>(forward.log_sum_exp)[statistic];
    }
  }
  simd::transpose_rows(tile.queries, width, rows.count, size, tile.queries_transposed);
  simd::transpose_rows(tile.out_grad, width, rows.count, size, tile.out_grad_transposed);
}

/// weights: scores -> p d; score_grad: out_grad . value -> score_grad.
void score_gradients(const AttentionArgs& args, const AttentionRows& rows, std::uint64_t sample,
                     KeyRange keys, const RowTile& row_tile, const KeyTile& key_tile) {
  const simd::FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t count = keys.last - keys.first;
  const bool masked = keys.first < rows.all.first || keys.last > rows.all.last;
  const auto kept_factor = hn::Set(d, static_cast<float>(1.0 / (1.0 - args.dropout.probability)));
  for (std::int64_t column = 0; column < rows.count; column += lanes) {
    const auto log_sum_exp = hn::LoadU(d, row_tile.log_sum_exp + column);
    const auto row_dots = hn::LoadU(d, row_tile.row_dots + column);
    const auto probability_of = [&](std::int64_t key, const float* weight) HWY_ATTR {
      const auto p = simd::exp_nonpositive(d, hn::Sub(hn::LoadU(d, weight), log_sum_exp));
      return masked ? hn::IfThenElseZero(simd::sees_key(d, rows, column, keys.first + key), p) : p;
    };
    if (args.dropout.probability > 0.0) {
      simd::for_each_kept(args.dropout, rows, sample, keys, column,
                          [&](std::int64_t key, hn::Mask<simd::FloatTag> kept) HWY_ATTR {
                            float* weight = key_tile.weights + key * attention_tile_rows + column;
                            float* gradient = key_tile.score_grad + key * attention_tile_rows + column;
                            const auto p = probability_of(key, weight);
                            const auto factor = hn::IfThenElseZero(kept, kept_factor);
                            const auto dot =
                                hn::IfThenElseZero(kept, hn::Mul(hn::LoadU(d, gradient), factor));
                            hn::StoreU(hn::Mul(p, hn::Sub(dot, row_dots)), d, gradient);
                            hn::StoreU(hn::Mul(p, factor), d, weight);
                          });
      continue;
    }
    for (std::int64_t key = 0; key < count; ++key) {
      float* weight = key_tile.weights + key * attention_tile_rows + column;
      float* gradient = key_tile.score_grad + key * attention_tile_rows + column;
      const auto p = probability_of(key, weight);
      hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, gradient), row_dots)), d, gradient);
      hn::StoreU(p, d, weight);
    }
  }
}

template <typename T>
void backward_group(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                    std::int64_t group, std::byte* scratch) {
  const AttentionArgs& forward = args.forward;
  const std::int64_t size = layout.head_size();
  const std::int64_t width = simd::padded_columns(size);
  const std::uint64_t sample = forward.dropout.probability > 0.0 ? layout.sample_of(sequence) : 0;
  const KeyTile key_tile(reinterpret_cast<float*>(scratch), width);
  float* next = reinterpret_cast<float*>(scratch) + KeyTile::floats(width);
  std::vector<RowTile> row_tiles;
  std::vector<AttentionRows> rows;
  for (std::int64_t tile = 0; tile < layout.tiles(); ++tile) {
    rows.push_back(layout.rows_of(sequence, group, tile));
    row_tiles.emplace_back(next, size, width);
    load_row_tile<T>(layout, args, sequence, group, rows.back(), row_tiles.back(), width, key_tile.keys);
    next += RowTile::floats(size, width);
  }

  const std::int64_t positions = forward.key.shape[1];
  for (std::int64_t first = 0; first < positions; first += attention_tile_keys) {
    const KeyRange tile_keys{first, std::min(positions, first + attention_tile_keys)};
    simd::load_keys<T>(layout, forward.key, sequence, group, tile_keys, key_tile.keys, width);
    simd::load_keys<T>(layout, forward.value, sequence, group, tile_keys, key_tile.values, width);
    const std::int64_t tile_count = tile_keys.last - tile_keys.first;
    std::fill_n(key_tile.key_grad, tile_count * width, 0.0F);
    std::fill_n(key_tile.value_grad, tile_count * width, 0.0F);
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const KeyRange keys{std::max(tile_keys.first, rows[t].any.first),
                          std::min(tile_keys.last, rows[t].any.last)};
      if (keys.last <= keys.first) continue;
      const RowTile& row_tile = row_tiles[t];
      const std::int64_t count = keys.last - keys.first;
      const std::int64_t skipped = (keys.first - tile_keys.first) * width;
      const float* key = key_tile.keys + skipped;
      simd::small_product(count, attention_tile_rows, size, {key, width, 1}, row_tile.queries_transposed,
                          attention_tile_rows, 1.0F, false, key_tile.weights, attention_tile_rows);
      simd::small_product(count, attention_tile_rows, size, {key_tile.values + skipped, width, 1},
                          row_tile.out_grad_transposed, attention_tile_rows, 1.0F, false, key_tile.score_grad,
                          attention_tile_rows);
      score_gradients(forward, rows[t], sample, keys, row_tile, key_tile);
      simd::small_product(count, width, rows[t].count, {key_tile.weights, attention_tile_rows, 1},
                          row_tile.out_grad, width, 1.0F, true, key_tile.value_grad + skipped, width);
      simd::small_product(count, width, rows[t].count, {key_tile.score_grad, attention_tile_rows, 1},
                          row_tile.queries, width, 1.0F, true, key_tile.key_grad + skipped, width);
      simd::small_product(rows[t].count, width, count, {key_tile.score_grad, 1, attention_tile_rows}, key,
                          width, 1.0F, true, row_tile.query_grad, width);
    }
    for (std::int64_t key = tile_keys.first; key < tile_keys.last; ++key) {
      const std::int64_t from = (key - tile_keys.first) * width;
      simd::store_row(key_tile.key_grad + from, size, 1.0F,
                      pointer_to<T>(args.key_grad) + layout.key_offset(args.key_grad, sequence, key, group));
      simd::store_row(
          key_tile.value_grad + from, size, 1.0F,
          pointer_to<T>(args.value_grad) + layout.key_offset(args.value_grad, sequence, key, group));
    }
  }

  for (std::size_t t = 0; t < rows.size(); ++t) {
    for (std::int64_t row = 0; row < rows[t].count; ++row) {
      T* to = pointer_to<T>(args.query_grad) +
              layout.row_offset(args.query_grad, sequence, group, rows[t].first + row);
      simd::store_row(row_tiles[t].query_grad + row * width, size, static_cast<float>(forward.scale), to);
    }
  }
}

std::size_t backward_scratch(std::int64_t head_size, std::int64_t tiles) {
  const std::int64_t width = simd::padded_columns(head_size);
  return static_cast<std::size_t>(KeyTile::floats(width) + tiles * RowTile::floats(head_size, width)) *
         sizeof(float);
}

void backward_task(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                   std::int64_t group, std::byte* scratch) {
  if (args.forward.query.dtype == DType::bfloat16) {
    backward_group<BFloat16>(layout, args, sequence, group, scratch);
  } else {
    backward_group<float>(layout, args, sequence, group, scratch);
  }
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(backward_scratch);
HWY_EXPORT(backward_task);

void run_attention_backward(ThreadTeam& team, Scratch& scratch, const AttentionBackwardArgs& args) {
  const AttentionLayout layout(args.forward);
  const std::size_t bytes = HWY_DYNAMIC_DISPATCH(backward_scratch)(layout.head_size(), layout.tiles());
  for (int slot = 0; slot < team.threads(); ++slot) scratch.get(slot, bytes);
  team.parallel_tasks(layout.batch() * layout.groups(), [&](std::int64_t task, int slot) {
    HWY_DYNAMIC_DISPATCH(backward_task)
    (layout, args, task / layout.groups(), task % layout.groups(), scratch.at(slot));
  });
}

void CpuDevice::attention_backward(QueueKind, const AttentionBackwardArgs& args) {
  check_attention_backward(args);
  MEGALITH_ASSERT(supports(args.forward.query.dtype),
                  format("the cpu device has no {}", name_of(args.forward.query.dtype)));
  const std::lock_guard lock(kernel_mutex_);
  run_attention_backward(team_, scratch_, args);
}

}  // namespace megalith
#endif
