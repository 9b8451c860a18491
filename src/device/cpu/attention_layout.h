// Which keys a query of attention sees and where they lie: offsets, documents, key lengths and block tables
// turned into one range of key positions per query.
//
// Attention works on rows: the query heads that share one key-value group are taken together, row r of a
// sequence's group being query r / heads_per_group of head group * heads_per_group + r % heads_per_group. So
// a key is loaded once for all heads that use it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "device/cpu/cpu_device.h"
#include "device/device.h"

namespace megalith {

/// Key positions [first, last).
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Columns of the panels in which the kernels keep their matrices; a wider matrix is several panels.
inline constexpr std::int64_t panel_columns = 64;
/// Rows of one tile: a tile's scores, transposed, are one panel.
inline constexpr std::int64_t attention_tile_rows = panel_columns;
/// Keys of one tile: a multiple of every instruction set's register rows. Tiles of keys begin at its
/// multiples, so that a row's result does not depend on which rows are computed with it.
inline constexpr std::int64_t attention_tile_keys = 96;
/// Keys whose gradients one task of the backward adds up.
inline constexpr std::int64_t attention_block_keys = 4 * attention_tile_keys;

/// Panels of a matrix as wide as a head.
constexpr std::int64_t panels_of(std::int64_t head_size) {
  return (head_size + panel_columns - 1) / panel_columns;
}

/// What the keys [first, last) and another range have in common; empty is {0, 0}.
constexpr KeyRange common_keys(KeyRange a, KeyRange b) {
  const KeyRange both{a.first > b.first ? a.first : b.first, a.last < b.last ? a.last : b.last};
  return both.last > both.first ? both : KeyRange{};
}

/// What the kernels need to know of each row of a tile; absent rows see no keys.
struct AttentionRows {
  std::int64_t first = 0;  ///< first row of the tile
  std::int64_t count = 0;
  std::array<std::int32_t, attention_tile_rows> key_first{};
  std::array<std::int32_t, attention_tile_rows> key_last{};
  std::array<std::uint32_t, attention_tile_rows> dropout_row{};
  std::array<std::uint32_t, attention_tile_rows> dropout_head{};  ///< third word of the Philox counter
  KeyRange any;                                                   ///< keys that some row of the tile sees
  KeyRange all;                                                   ///< keys that every row sees; may be empty

  /// `any` and `all` of the tile's rows [row, row + rows) within `keys`, where rows that are absent count as
  /// rows that see nothing.
  struct Seen {
    KeyRange any;
    KeyRange all;
  };
  Seen seen_by(std::int64_t row, std::int64_t rows, KeyRange keys) const;
};

class AttentionLayout {
 public:
  explicit AttentionLayout(const AttentionArgs& args);

  std::int64_t batch() const { return args_.query.shape[0]; }
  std::int64_t queries() const { return args_.query.shape[1]; }
  std::int64_t heads() const { return args_.query.shape[2]; }
  std::int64_t head_size() const { return args_.query.shape[3]; }
  bool paged() const { return block_table_ != nullptr; }
  /// Rooms for keys of one sequence.
  std::int64_t key_positions() const {
    return block_table_ == nullptr ? args_.key.shape[1] : args_.block_table.shape[1] * args_.key.shape[1];
  }
  std::int64_t groups() const { return args_.key.shape[2]; }
  std::int64_t heads_per_group() const { return heads_per_group_; }
  /// Rows of one group of one sequence, and their tiles.
  std::int64_t rows() const { return queries() * heads_per_group_; }
  std::int64_t tiles() const { return (rows() + attention_tile_rows - 1) / attention_tile_rows; }

  /// Blocks of attention_block_keys keys, at least one.
  std::int64_t key_blocks() const {
    return std::max<std::int64_t>(1, (args_.key.shape[1] + attention_block_keys - 1) / attention_block_keys);
  }
  KeyRange keys_of_block(std::int64_t block) const {
    return {block * attention_block_keys, std::min(args_.key.shape[1], (block + 1) * attention_block_keys)};
  }

  KeyRange keys_of(std::int64_t sequence, std::int64_t query) const;
  AttentionRows rows_of(std::int64_t sequence, std::int64_t group, std::int64_t tile) const;

  /// Element offset of a row of query, out or their gradients.
  std::int64_t row_offset(const Tensor& tensor, std::int64_t sequence, std::int64_t group,
                          std::int64_t row) const {
    return sequence * tensor.stride(0) + row / heads_per_group_ * tensor.stride(1) +
           (group * heads_per_group_ + row % heads_per_group_) * tensor.stride(2);
  }
  /// Element offset of a row in [B, N, S] statistics.
  std::int64_t statistic_offset(std::int64_t sequence, std::int64_t group, std::int64_t row) const {
    return (sequence * heads() + group * heads_per_group_ + row % heads_per_group_) * queries() +
           row / heads_per_group_;
  }
  /// Element offset of a key position in key, value or their gradients.
  std::int64_t key_offset(const Tensor& tensor, std::int64_t sequence, std::int64_t position,
                          std::int64_t group) const {
    if (block_table_ != nullptr) {
      const std::int64_t block =
          block_table_[sequence * args_.block_table.shape[1] + position / tensor.shape[1]];
      return block * tensor.stride(0) + position % tensor.shape[1] * tensor.stride(1) +
             group * tensor.stride(2);
    }
    return sequence * tensor.stride(0) + position * tensor.stride(1) + group * tensor.stride(2);
  }
  /// Consumed-sample number of a sequence, for dropout.
  std::uint64_t sample_of(std::int64_t sequence) const;

 private:
  /// Refuses lengths and blocks that lie outside the keys: they would be read beyond their memory.
  void check_values() const;

  const AttentionArgs& args_;
  std::int64_t heads_per_group_;
  const std::int32_t* cu_seqlens_;
  const std::int32_t* key_lengths_;
  const std::int32_t* block_table_;
};

}  // namespace megalith
