// Gradients of tiled attention, with probabilities computed again from the log-sum-exp: Dao et al.,
// "FlashAttention", 2022, appendix B. With p the probabilities, d the dropout factors (0 or
// 1/(1-probability)):
//   value_grad = (p d)^T out_grad;  score_grad = p (d (out_grad value^T) - row_dots);
//   query_grad = scale score_grad key;  key_grad = scale score_grad^T query.
// The keys of a key-value group are cut into blocks. A block's keys, values and their gradients stay in the
// second cache while its tiles of rows pass by. Each block adds up its own part of query_grad, and the parts
// are added in the order of the blocks: by one task that takes a group's blocks in turn or, where that gave
// the threads too little or uneven work, by a second pass over the parts of many tasks. The bits are the
// same.
//
// Limits. FLOPs: five products; per 16 scores of a head of 64 they take 160 cycles at two multiply-adds a
// cycle, the rest about 10, dropout's random numbers about 13. Bytes: rows once per block of keys, keys once.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "device/check.h"
#include "device/cpu/attention.h"
#include "device/cpu/attention_layout.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/far_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_backward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/simd_attention.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A task's working memory: a block of keys and a tile of rows.
struct BackwardMemory {
  simd::Panels keys;           ///< [384, head size]
  simd::Panels values;         ///< [384, head size]
  simd::Panels key_grad;       ///< [384, head size], without scale, times log2(e)
  simd::Panels value_grad;     ///< [384, head size]
  simd::Panels queries;        ///< [64, head size], times scale and log2(e)
  simd::Panels out_grad;       ///< [64, head size]
  simd::Panels query_grad;     ///< [64, head size], without scale
  float* queries_transposed;   ///< [head size, 64]
  float* out_grad_transposed;  ///< [head size, 64]
  float* weights;              ///< [96, 64]: scores, then p d
  float* score_grad;           ///< [96, 64]: out_grad . value, then score_grad
  float* log_sum_exp;  ///< [64], times log2(e); infinity for rows without keys, whose probabilities are 0
  float* row_dots;     ///< [64]

  static std::int64_t floats(std::int64_t head_size) {
    return 4 * simd::Panels::floats(attention_block_keys, head_size) +
           5 * simd::Panels::floats(attention_tile_rows, head_size) +
           2 * attention_tile_keys * panel_columns + 2 * attention_tile_rows;
  }
  BackwardMemory(float* from, std::int64_t head_size) {
    const auto take = [&](std::int64_t count) {
      float* const taken = from;
      from += count;
      return taken;
    };
    const auto take_panels = [&](std::int64_t rows) {
      return simd::Panels{take(simd::Panels::floats(rows, head_size)), rows, head_size};
    };
    keys = take_panels(attention_block_keys);
    values = take_panels(attention_block_keys);
    key_grad = take_panels(attention_block_keys);
    value_grad = take_panels(attention_block_keys);
    queries = take_panels(attention_tile_rows);
    out_grad = take_panels(attention_tile_rows);
    query_grad = take_panels(attention_tile_rows);
    queries_transposed = take_panels(attention_tile_rows).data;
    out_grad_transposed = take_panels(attention_tile_rows).data;
    weights = take(attention_tile_keys * panel_columns);
    score_grad = take(attention_tile_keys * panel_columns);
    log_sum_exp = take(attention_tile_rows);
    row_dots = take(attention_tile_rows);
  }
};

/// weights: scores -> p d; score_grad: out_grad . value -> score_grad. Where a row does not see a key both
/// become 0.
void score_gradients(const DropoutArgs& dropout, const AttentionRows& rows, const simd::SeenKeys& seen,
                     std::uint64_t sample, const BackwardMemory& memory) {
  const KeyRange keys = seen.keys();
  const simd::FloatTag d;
  const auto kept_factor = hn::Set(d, static_cast<float>(1.0 / (1.0 - dropout.probability)));
  for (std::int64_t column = 0; column < rows.count; column += simd::float_lanes) {
    const KeyRange any = seen.by(column).any;
    const KeyRange all = seen.by(column).all;
    float* const weights = memory.weights + column;
    float* const gradients = memory.score_grad + column;
    simd::clear_keys(keys, any, keys.first, weights);
    simd::clear_keys(keys, any, keys.first, gradients);
    const auto log_sum_exp = hn::Load(d, memory.log_sum_exp + column);
    const auto row_dots = hn::Load(d, memory.row_dots + column);
    const auto probability_of = [&](std::int64_t key, const float* weight) HWY_ATTR {
      const auto p = simd::exp2_small(d, hn::Sub(hn::Load(d, weight), log_sum_exp));
      if (key >= all.first && key < all.last) return p;
      return hn::IfThenElseZero(simd::sees_key(d, rows, column, key), p);
    };
    if (dropout.probability > 0.0) {
      simd::for_each_kept(
          dropout, rows, sample, any, column, [&](std::int64_t key, hn::Mask<simd::FloatTag> kept) HWY_ATTR {
            float* weight = weights + (key - keys.first) * panel_columns;
            float* gradient = gradients + (key - keys.first) * panel_columns;
            const auto p = probability_of(key, weight);
            const auto factor = hn::IfThenElseZero(kept, kept_factor);
            const auto dot = hn::IfThenElseZero(kept, hn::Mul(hn::Load(d, gradient), kept_factor));
            hn::Store(hn::Mul(p, hn::Sub(dot, row_dots)), d, gradient);
            hn::Store(hn::Mul(p, factor), d, weight);
          });
      continue;
    }
    for (std::int64_t key = any.first; key < any.last; ++key) {
      float* weight = weights + (key - keys.first) * panel_columns;
      float* gradient = gradients + (key - keys.first) * panel_columns;
      const auto p = probability_of(key, weight);
      hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, gradient), row_dots)), d, gradient);
      hn::Store(p, d, weight);
    }
  }
}

template <typename T>
class BackwardGroup {
 public:
  BackwardGroup(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                std::int64_t group, float* scratch)
      : layout_(layout),
        args_(args),
        sequence_(sequence),
        group_(group),
        sample_(args.forward.dropout.probability > 0.0 ? layout.sample_of(sequence) : 0),
        memory_(scratch, layout.head_size()) {}

  /// Key and value gradients of a block of keys, and its part of query_grad added to query_grad (Panels of
  /// each tile of rows). The first block writes row_dots.
  void compute_block(std::int64_t block, float* query_grad) const {
    const AttentionArgs& forward = args_.forward;
    const KeyRange keys = layout_.keys_of_block(block);
    simd::load_keys<T>(layout_, forward.key, sequence_, group_, keys, memory_.keys);
    simd::load_keys<T>(layout_, forward.value, sequence_, group_, keys, memory_.values);
    memory_.key_grad.clear();
    memory_.value_grad.clear();
    for (std::int64_t tile = 0; tile < layout_.tiles(); ++tile) {
      const AttentionRows rows = layout_.rows_of(sequence_, group_, tile);
      const KeyRange seen = common_keys(keys, rows.any);
      const bool sees = seen.last > seen.first;
      if (sees || block == 0) load_rows(rows, block == 0);
      if (!sees) continue;
      memory_.query_grad.clear();
      FarRows far;
      add_far(tile, block, keys, far);
      far.spread((seen.last - seen.first) * 4 / simd::sum_rows * memory_.keys.count());
      for (std::int64_t first = seen.first / attention_tile_keys * attention_tile_keys; first < seen.last;
           first += attention_tile_keys) {
        add_tile(rows, common_keys(seen, {first, first + attention_tile_keys}), keys.first, far);
      }
      add_panels(memory_.query_grad.data, query_grad + tile * tile_floats());
    }
    for (std::int64_t key = keys.first; key < keys.last; ++key) {
      const auto offset = [&](const Tensor& tensor) {
        return layout_.key_offset(tensor, sequence_, key, group_);
      };
      constexpr float ln_2 = 0.693147181F;
      memory_.key_grad.get_row(key - keys.first, ln_2,
                               pointer_to<T>(args_.key_grad) + offset(args_.key_grad));
      memory_.value_grad.get_row(key - keys.first, 1.0F,
                                 pointer_to<T>(args_.value_grad) + offset(args_.value_grad));
    }
  }

  /// The gradient of the tile's queries is query_grad, but for the scale.
  void store_query_grad(std::int64_t tile, float* query_grad) const {
    const AttentionRows rows = layout_.rows_of(sequence_, group_, tile);
    const simd::Panels from{query_grad, attention_tile_rows, layout_.head_size()};
    for (std::int64_t row = 0; row < rows.count; ++row) {
      from.get_row(row, static_cast<float>(args_.forward.scale),
                   pointer_to<T>(args_.query_grad) +
                       layout_.row_offset(args_.query_grad, sequence_, group_, rows.first + row));
    }
  }

  /// to += from, both one tile of query_grad.
  void add_panels(const float* from, float* to) const {
    const simd::FloatTag d;
    for (std::int64_t i = 0; i < tile_floats(); i += simd::float_lanes) {
      hn::Store(hn::Add(hn::Load(d, to + i), hn::Load(d, from + i)), d, to + i);
    }
  }

  std::int64_t tile_floats() const { return simd::Panels::floats(attention_tile_rows, layout_.head_size()); }

 private:
  void load_rows(const AttentionRows& rows, bool write_row_dots) const {
    const AttentionArgs& forward = args_.forward;
    const std::int64_t size = layout_.head_size();
    std::fill_n(memory_.log_sum_exp, attention_tile_rows, std::numeric_limits<float>::infinity());
    std::fill_n(memory_.row_dots, attention_tile_rows, 0.0F);
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const auto offset = [&](const Tensor& tensor) {
        return layout_.row_offset(tensor, sequence_, group_, rows.first + row);
      };
      constexpr float log2_e = 1.44269504F;
      const T* const out_grad = pointer_to<T>(args_.out_grad) + offset(args_.out_grad);
      memory_.queries.set_row(row, pointer_to<T>(forward.query) + offset(forward.query),
                              static_cast<float>(forward.scale * 1.4426950408889634));
      memory_.out_grad.set_row(row, out_grad, 1.0F);
      memory_.row_dots[row] = dot(pointer_to<T>(forward.out) + offset(forward.out), out_grad, size);
      const std::int64_t statistic = layout_.statistic_offset(sequence_, group_, rows.first + row);
      if (write_row_dots) pointer_to<float>(args_.row_dots)[statistic] = memory_.row_dots[row];
      const auto place = static_cast<std::size_t>(row);
      if (rows.key_last[place] > rows.key_first[place]) {
        memory_.log_sum_exp[row] = log2_e * pointer_to<float>(forward.log_sum_exp)[statistic];
      }
    }
    simd::transpose_rows(memory_.queries, rows.count, memory_.queries_transposed);
    simd::transpose_rows(memory_.out_grad, rows.count, memory_.out_grad_transposed);
  }

  static float dot(const T* a, const T* b, std::int64_t count) {
    const simd::FloatTag d;
    auto sums = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + simd::float_lanes <= count; i += simd::float_lanes) {
      sums = hn::MulAdd(simd::load(d, a + i), simd::load(d, b + i), sums);
    }
    float sum = hn::GetLane(hn::SumOfLanes(d, sums));
    for (; i < count; ++i) sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
    return sum;
  }

  /// What comes next: the next tile of rows and, an equal share for each tile that the block's keys may wait
  /// for, where the block's gradients go and the next block of keys.
  void add_far(std::int64_t tile, std::int64_t block, KeyRange keys, FarRows& far) const {
    const AttentionArgs& forward = args_.forward;
    for (const Tensor& tensor : {forward.query, args_.out_grad, forward.out}) {
      simd::add_far_rows<T>(layout_, tensor, sequence_, group_, tile + 1, far);
    }
    const auto add_share = [&](const Tensor& tensor, KeyRange range) {
      const std::int64_t count = range.last - range.first;
      simd::add_far_keys<T>(
          layout_, tensor, sequence_, group_,
          {range.first + count * tile / layout_.tiles(), range.first + count * (tile + 1) / layout_.tiles()},
          far);
    };
    add_share(args_.key_grad, keys);
    add_share(args_.value_grad, keys);
    if (block + 1 == layout_.key_blocks()) return;
    add_share(forward.key, layout_.keys_of_block(block + 1));
    add_share(forward.value, layout_.keys_of_block(block + 1));
  }

  /// The five products of a tile of rows with `keys`, which lie in one tile of keys of the block from `base`
  /// on.
  void add_tile(const AttentionRows& rows, KeyRange keys, std::int64_t base, FarRows& far) const {
    const simd::SeenKeys seen(rows, keys);
    simd::product_with_rows(seen, memory_.keys, base, memory_.queries_transposed, memory_.weights, far);
    simd::product_with_rows(seen, memory_.values, base, memory_.out_grad_transposed, memory_.score_grad, far);
    score_gradients(args_.forward.dropout, rows, seen, sample_, memory_);
    simd::add_weighted_rows(seen, rows.count, memory_.out_grad, memory_.weights, memory_.value_grad, base,
                            far);
    simd::add_weighted_rows(seen, rows.count, memory_.queries, memory_.score_grad, memory_.key_grad, base,
                            far);
    simd::add_weighted_keys(rows, seen, memory_.keys, base, memory_.score_grad, memory_.query_grad, far);
  }

  const AttentionLayout& layout_;
  const AttentionBackwardArgs& args_;
  std::int64_t sequence_;
  std::int64_t group_;
  std::uint64_t sample_;
  BackwardMemory memory_;
};

/// Calls body(BackwardGroup) for the compute type.
template <typename Body>
void with_group(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                std::int64_t group, std::byte* scratch, const Body& body) {
  float* const memory = reinterpret_cast<float*>(scratch);
  if (args.forward.query.dtype == DType::bfloat16) {
    body(BackwardGroup<BFloat16>(layout, args, sequence, group, memory));
  } else {
    body(BackwardGroup<float>(layout, args, sequence, group, memory));
  }
}

std::size_t backward_scratch(std::int64_t head_size) {
  return static_cast<std::size_t>(BackwardMemory::floats(head_size)) * sizeof(float);
}

/// A whole group; query_grad is scratch for all its tiles.
void backward_group(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                    std::int64_t group, std::byte* scratch, float* query_grad) {
  with_group(layout, args, sequence, group, scratch, [&](const auto& work) {
    std::fill_n(query_grad, layout.tiles() * work.tile_floats(), 0.0F);
    for (std::int64_t block = 0; block < layout.key_blocks(); ++block) {
      work.compute_block(block, query_grad);
    }
    for (std::int64_t tile = 0; tile < layout.tiles(); ++tile) {
      work.store_query_grad(tile, query_grad + tile * work.tile_floats());
    }
  });
}

/// One block of keys; query_grad receives its part.
void backward_block(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                    std::int64_t group, std::int64_t block, std::byte* scratch, float* query_grad) {
  with_group(layout, args, sequence, group, scratch, [&](const auto& work) {
    std::fill_n(query_grad, layout.tiles() * work.tile_floats(), 0.0F);
    work.compute_block(block, query_grad);
  });
}

/// Adds up what backward_block made of a tile of query_grad; `parts` holds the group's blocks.
void backward_finish(const AttentionLayout& layout, const AttentionBackwardArgs& args, std::int64_t sequence,
                     std::int64_t group, std::int64_t tile, std::byte* scratch, const float* parts) {
  with_group(layout, args, sequence, group, scratch, [&](const auto& work) {
    float* const sum = reinterpret_cast<float*>(scratch);
    std::fill_n(sum, work.tile_floats(), 0.0F);
    for (std::int64_t block = 0; block < layout.key_blocks(); ++block) {
      work.add_panels(parts + (block * layout.tiles() + tile) * work.tile_floats(), sum);
    }
    work.store_query_grad(tile, sum);
  });
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(backward_scratch);
HWY_EXPORT(backward_group);
HWY_EXPORT(backward_block);
HWY_EXPORT(backward_finish);

namespace {

/// Whether so many equal tasks leave more than a fifth of the threads' time unused.
bool leaves_threads_idle(std::int64_t tasks, std::int64_t threads) {
  const std::int64_t rounds = (tasks + threads - 1) / threads;
  return 5 * tasks < 4 * rounds * threads;
}

}  // namespace

void run_attention_backward(ThreadTeam& team, Scratch& scratch, const AttentionBackwardArgs& args) {
  const AttentionLayout layout(args.forward);
  const std::int64_t groups = layout.batch() * layout.groups();
  const std::int64_t blocks = layout.key_blocks();
  const std::int64_t part =
      layout.tiles() * attention_tile_rows * panels_of(layout.head_size()) * panel_columns;
  const auto part_bytes = static_cast<std::size_t>(part) * sizeof(float);
  const std::size_t bytes = HWY_DYNAMIC_DISPATCH(backward_scratch)(layout.head_size());
  const auto sequence_of = [&](std::int64_t number) { return number / layout.groups(); };
  const auto group_of = [&](std::int64_t number) { return number % layout.groups(); };
  const int threads = team.threads();
  for (int slot = 0; slot < threads; ++slot) scratch.get(slot, bytes);

  if (blocks == 1 || !leaves_threads_idle(groups, threads)) {
    for (int slot = 0; slot < threads; ++slot) scratch.get(threads + slot, part_bytes);
    team.parallel_tasks(groups, [&](std::int64_t task, int slot) {
      HWY_DYNAMIC_DISPATCH(backward_group)
      (layout, args, sequence_of(task), group_of(task), scratch.at(slot),
       reinterpret_cast<float*>(scratch.at(threads + slot)));
    });
    return;
  }
  float* const parts =
      reinterpret_cast<float*>(scratch.get(threads, static_cast<std::size_t>(groups * blocks) * part_bytes));
  // The first blocks first: under a causal mask most rows see them.
  team.parallel_tasks(groups * blocks, [&](std::int64_t task, int slot) {
    const std::int64_t block = task / groups;
    const std::int64_t number = task % groups;
    HWY_DYNAMIC_DISPATCH(backward_block)
    (layout, args, sequence_of(number), group_of(number), block, scratch.at(slot),
     parts + (number * blocks + block) * part);
  });
  team.parallel_tasks(groups * layout.tiles(), [&](std::int64_t task, int slot) {
    const std::int64_t number = task / layout.tiles();
    HWY_DYNAMIC_DISPATCH(backward_finish)
    (layout, args, sequence_of(number), group_of(number), task % layout.tiles(), scratch.at(slot),
     parts + number * blocks * part);
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
