// Tiled attention with online softmax: Dao et al., "FlashAttention", 2022. A task holds a few tiles of rows
// and walks over the tiles of keys they see: each is read and converted once for all its rows.
//
// Limits. FLOPs: two products; per 16 scores of a head of 64 they take 64 cycles at two multiply-adds a
// cycle, the softmax about 9, dropout's random numbers about 13. Bytes: keys and values once per task. Tiles
// of keys that no row sees are skipped, and where rows see a tile in part the products stop at the last key
// seen.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "device/check.h"
#include "device/cpu/attention.h"
#include "device/cpu/attention_layout.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/far_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_forward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/simd_attention.h"
#include "device/cpu/simd_attention_few.h"
#include "device/cpu/simd_attention_softmax.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Tiles of rows that one task takes at most.
inline constexpr std::int64_t most_tiles = 16;

/// Working memory of one tile of rows.
struct ForwardRows {
  float* queries;     ///< [head size, 64], times scale and log2(e)
  simd::Panels sums;  ///< [64, head size], out times the softmax's sum
  simd::OnlineSoftmax softmax;

  static std::int64_t floats(std::int64_t head_size) {
    return 2 * simd::Panels::floats(attention_tile_rows, head_size) + simd::OnlineSoftmax::floats;
  }
  ForwardRows(float* from, std::int64_t head_size)
      : queries(from),
        sums{from + simd::Panels::floats(attention_tile_rows, head_size), attention_tile_rows, head_size},
        softmax(from + 2 * simd::Panels::floats(attention_tile_rows, head_size)) {}
};

/// Working memory of a task.
struct ForwardTask {
  simd::Panels keys;    ///< [96, head size]
  simd::Panels values;  ///< [96, head size]
  float* scores;        ///< [96, 64]
  float* rows;          ///< most_tiles ForwardRows

  static std::int64_t floats(std::int64_t head_size) {
    const std::int64_t tiles = 2 * simd::Panels::floats(attention_tile_keys, head_size) +
                               attention_tile_keys * panel_columns +
                               most_tiles * ForwardRows::floats(head_size);
    return std::max(tiles, simd::FewRows::floats(head_size));
  }
  ForwardTask(float* from, std::int64_t head_size)
      : keys{from, attention_tile_keys, head_size},
        values{from + simd::Panels::floats(attention_tile_keys, head_size), attention_tile_keys, head_size},
        scores(from + 2 * simd::Panels::floats(attention_tile_keys, head_size)),
        rows(scores + attention_tile_keys * panel_columns) {}
};

template <typename T>
class ForwardGroup {
 public:
  ForwardGroup(const AttentionLayout& layout, const AttentionArgs& args, std::int64_t sequence,
               std::int64_t group)
      : layout_(layout),
        args_(args),
        sequence_(sequence),
        group_(group),
        sample_(args.dropout.probability > 0.0 ? layout.sample_of(sequence) : 0),
        query_factor_(static_cast<float>(args.scale * 1.4426950408889634)),
        out_factor_(static_cast<float>(1.0 / (1.0 - args.dropout.probability))) {}

  void compute(std::int64_t first_tile, std::int64_t last_tile, float* scratch) const {
    const ForwardTask task(scratch, layout_.head_size());
    std::array<AttentionRows, most_tiles> rows;
    std::size_t count = 0;
    KeyRange seen{layout_.key_positions(), 0};
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
      rows[count] = layout_.rows_of(sequence_, group_, tile);
      if (rows[count].count <= simd::few_rows) {
        simd::forward_few_rows<T>(
            layout_, args_, sequence_, group_, rows[count], sample_, query_factor_, out_factor_, scratch,
            [&](std::int64_t row, const float* sums, float factor, float log_sum_exp) {
              simd::store_row(sums, layout_.head_size(), factor, out_row(rows[count], row));
              log_sum_exp_of(rows[count], row) = log_sum_exp;
            });
        continue;
      }
      if (rows[count].any.last > rows[count].any.first) {
        seen = {std::min(seen.first, rows[count].any.first), std::max(seen.last, rows[count].any.last)};
      }
      ++count;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (rows[i].any.last > rows[i].any.first) continue;
      load_rows(rows[i], rows_of(task, i));
      store_rows(rows[i], rows_of(task, i));
    }
    for (std::int64_t first = seen.first / attention_tile_keys * attention_tile_keys; first < seen.last;
         first += attention_tile_keys) {
      add_keys({first, std::min(seen.last, first + attention_tile_keys)}, seen.last, rows, count, task);
    }
  }

 private:
  ForwardRows rows_of(const ForwardTask& task, std::size_t index) const {
    const std::int64_t size = layout_.head_size();
    return {task.rows + static_cast<std::int64_t>(index) * ForwardRows::floats(size), size};
  }
  T* out_row(const AttentionRows& rows, std::int64_t row) const {
    return pointer_to<T>(args_.out) + layout_.row_offset(args_.out, sequence_, group_, rows.first + row);
  }
  float& log_sum_exp_of(const AttentionRows& rows, std::int64_t row) const {
    return pointer_to<float>(
        args_.log_sum_exp)[layout_.statistic_offset(sequence_, group_, rows.first + row)];
  }

  void load_rows(const AttentionRows& rows, const ForwardRows& tile) const {
    // The sums' memory holds the queries until they are transposed.
    for (std::int64_t row = 0; row < rows.count; ++row) {
      tile.sums.set_row(
          row,
          pointer_to<T>(args_.query) + layout_.row_offset(args_.query, sequence_, group_, rows.first + row),
          query_factor_);
    }
    simd::transpose_rows(tile.sums, rows.count, tile.queries);
    tile.sums.clear();
    tile.softmax.clear();
  }

  /// Takes a tile of keys into all rows: loads those for which it is the first, stores those for which it is
  /// the last. The task's last key is last_key - 1.
  void add_keys(KeyRange tile_keys, std::int64_t last_key, const std::array<AttentionRows, most_tiles>& rows,
                std::size_t count, const ForwardTask& task) const {
    bool loaded = false;
    for (std::size_t i = 0; i < count; ++i) {
      const KeyRange keys = common_keys(tile_keys, rows[i].any);
      if (keys.last <= keys.first) continue;
      if (!loaded) {
        simd::load_keys<T>(layout_, args_.key, sequence_, group_, tile_keys, task.keys);
        simd::load_keys<T>(layout_, args_.value, sequence_, group_, tile_keys, task.values);
        loaded = true;
      }
      const ForwardRows tile = rows_of(task, i);
      const simd::SeenKeys seen(rows[i], keys);
      const bool first = keys.first == rows[i].any.first;
      const bool last = keys.last == rows[i].any.last;
      if (first) load_rows(rows[i], tile);
      FarRows far;
      if (first && i + 1 < count) add_far(args_.query, rows[i + 1], far);
      if (last) add_far(args_.out, rows[i], far);
      add_far_share(tile_keys.last, last_key, i, count, far);
      far.spread(2 * simd::asks_of_product * tile.sums.count());
      simd::product_with_rows(seen, task.keys, tile_keys.first, tile.queries, task.scores, far);
      if (simd::softmax_step(args_.dropout, rows[i], sample_, seen, task.scores, tile.softmax)) {
        rescale_sums(rows[i].count, tile);
      }
      simd::add_weighted_keys(rows[i], seen, task.values, tile_keys.first, task.scores, tile.sums, far);
      if (last) store_rows(rows[i], tile);
    }
  }

  void add_far(const Tensor& tensor, const AttentionRows& rows, FarRows& far) const {
    simd::add_far_rows<T>(layout_, tensor, sequence_, group_, rows.first / attention_tile_rows, far);
  }
  /// Part `index` of `count` of the tile of keys that begins with `first`.
  void add_far_share(std::int64_t first, std::int64_t last_key, std::size_t index, std::size_t count,
                     FarRows& far) const {
    const std::int64_t keys = std::min(attention_tile_keys, last_key - first);
    const auto part = [&](std::size_t number) {
      return first + keys * static_cast<std::int64_t>(number) / static_cast<std::int64_t>(count);
    };
    const KeyRange share{part(index), part(index + 1)};
    simd::add_far_keys<T>(layout_, args_.key, sequence_, group_, share, far);
    simd::add_far_keys<T>(layout_, args_.value, sequence_, group_, share, far);
  }

  static void rescale_sums(std::int64_t rows, const ForwardRows& tile) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float factor = tile.softmax.rescale[row];
      if (factor == 1.0F) continue;
      for (std::int64_t p = 0; p < tile.sums.count(); ++p) {
        float* sums = tile.sums.panel(p) + row * panel_columns;
        simd::store_row(sums, tile.sums.padded(p), factor, sums);
      }
    }
  }

  void store_rows(const AttentionRows& rows, const ForwardRows& tile) const {
    simd::finish_softmax(rows.count, out_factor_, tile.softmax);
    for (std::int64_t row = 0; row < rows.count; ++row) {
      tile.sums.get_row(row, tile.softmax.rescale[row], out_row(rows, row));
      log_sum_exp_of(rows, row) = tile.softmax.sum[row];
    }
  }

  const AttentionLayout& layout_;
  const AttentionArgs& args_;
  std::int64_t sequence_;
  std::int64_t group_;
  std::uint64_t sample_;
  float query_factor_;
  float out_factor_;
};

std::size_t forward_scratch(std::int64_t head_size) {
  return static_cast<std::size_t>(ForwardTask::floats(head_size)) * sizeof(float);
}

/// Tiles [first_tile, last_tile) of one group, at most most_tiles.
void forward_task(const AttentionLayout& layout, const AttentionArgs& args, std::int64_t sequence,
                  std::int64_t group, std::int64_t first_tile, std::int64_t last_tile, std::byte* scratch) {
  float* const memory = reinterpret_cast<float*>(scratch);
  if (args.query.dtype == DType::bfloat16) {
    ForwardGroup<BFloat16>(layout, args, sequence, group).compute(first_tile, last_tile, memory);
  } else {
    ForwardGroup<float>(layout, args, sequence, group).compute(first_tile, last_tile, memory);
  }
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(forward_scratch);
HWY_EXPORT(forward_task);

namespace {

/// Tiles of rows a task takes: many, so that a tile of keys is converted for more rows, or fewer where that
/// left threads idle. Results do not depend on it.
std::int64_t tiles_of_task(const AttentionLayout& layout, int threads) {
  const std::int64_t tiles = layout.batch() * layout.groups() * layout.tiles();
  std::int64_t count = 16;
  while (count > 1 && tiles < 6 * count * threads) count /= 2;
  return count;
}

}  // namespace

void run_attention_forward(ThreadTeam& team, Scratch& scratch, const AttentionArgs& args) {
  if (args.query.shape[0] == 0 || args.query.shape[1] == 0 || args.query.shape[2] == 0) return;
  const AttentionLayout layout(args);
  const std::int64_t tiles = layout.tiles();
  const std::size_t bytes = HWY_DYNAMIC_DISPATCH(forward_scratch)(layout.head_size());
  for (int slot = 0; slot < team.threads(); ++slot) scratch.get(slot, bytes);
  const std::int64_t step = tiles_of_task(layout, team.threads());
  const std::int64_t blocks = (tiles + step - 1) / step;
  // The last tiles first: under a causal mask they see the most keys.
  team.parallel_tasks(layout.batch() * layout.groups() * blocks, [&](std::int64_t task, int slot) {
    const std::int64_t last = tiles - task % blocks * step;
    const std::int64_t group = task / blocks % layout.groups();
    HWY_DYNAMIC_DISPATCH(forward_task)
    (layout, args, task / blocks / layout.groups(), group, std::max(std::int64_t{0}, last - step), last,
     scratch.at(slot));
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
