// Which keys a query of attention sees and where they lie: offsets, documents, key lengths and block tables
// turned into one range of key positions per query.
//
// Attention works on rows: the query heads that share one key-value group are taken together, row r of a
// sequence's group being query r / heads_per_group of head group * heads_per_group + r % heads_per_group. So
// a key is loaded once for all heads that use it.
#pragma once

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

/// Rows of one tile.
inline constexpr std::int64_t attention_tile_rows = 64;
/// Keys of one tile: a multiple of every instruction set's register rows.
inline constexpr std::int64_t attention_tile_keys = 96;

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
};

class AttentionLayout {
 public:
  explicit AttentionLayout(const AttentionArgs& args);

  std::int64_t batch() const { return args_.query.shape[0]; }
  std::int64_t queries() const { return args_.query.shape[1]; }
  std::int64_t heads() const { return args_.query.shape[2]; }
  std::int64_t head_size() const { return args_.query.shape[3]; }
  std::int64_t groups() const { return args_.key.shape[2]; }
  std::int64_t heads_per_group() const { return heads_per_group_; }
  /// Rows of one group of one sequence, and their tiles.
  std::int64_t rows() const { return queries() * heads_per_group_; }
  std::int64_t tiles() const { return (rows() + attention_tile_rows - 1) / attention_tile_rows; }

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
