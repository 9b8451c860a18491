#include "device/cpu/attention_layout.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace megalith {

AttentionRows::Seen AttentionRows::seen_by(std::int64_t row, std::int64_t rows, KeyRange keys) const {
  if (row + rows <= count && keys.first >= all.first && keys.last <= all.last) return {keys, keys};
  KeyRange some{std::numeric_limits<std::int64_t>::max(), 0};
  KeyRange every = keys;
  for (std::int64_t i = row; i < row + rows; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const KeyRange seen{key_first[place], key_last[place]};
    every = {std::max(every.first, seen.first), std::min(every.last, seen.last)};
    if (seen.last <= seen.first) continue;
    some = {std::min(some.first, seen.first), std::max(some.last, seen.last)};
  }
  return {common_keys(some, keys), common_keys(every, keys)};
}

AttentionLayout::AttentionLayout(const AttentionArgs& args)
    : args_(args),
      heads_per_group_(args.query.shape[2] / args.key.shape[2]),
      cu_seqlens_(pointer_to<std::int32_t>(args.cu_seqlens)),
      key_lengths_(pointer_to<std::int32_t>(args.key_lengths)),
      block_table_(pointer_to<std::int32_t>(args.block_table)) {
  check_values();
}

void AttentionLayout::check_values() const {
  const std::int64_t positions = args_.key.shape[1];
  MEGALITH_ASSERT(positions <= std::numeric_limits<std::int32_t>::max(),
                  format("attention over {} keys; at most 2^31 - 1", positions));
  if (cu_seqlens_ != nullptr) {
    const std::int64_t count = args_.cu_seqlens.shape[0];
    for (std::int64_t i = 0; i < count; ++i) {
      MEGALITH_ASSERT(
          cu_seqlens_[i] >= (i == 0 ? 0 : cu_seqlens_[i - 1]) && cu_seqlens_[i] <= positions,
          format("cu_seqlens[{}] is {}, not ascending within {} positions", i, cu_seqlens_[i], positions));
    }
  }
  if (key_lengths_ == nullptr) return;
  const std::int64_t blocks = block_table_ == nullptr ? 0 : args_.block_table.shape[1];
  const std::int64_t room = block_table_ == nullptr ? positions : blocks * positions;
  for (std::int64_t sequence = 0; sequence < batch(); ++sequence) {
    const std::int64_t length = key_lengths_[sequence];
    MEGALITH_ASSERT(length >= 0 && length <= room,
                    format("key_lengths[{}] is {} with room for {} keys", sequence, length, room));
    if (block_table_ == nullptr) continue;
    for (std::int64_t i = 0; i * positions < length; ++i) {
      const std::int64_t block = block_table_[sequence * blocks + i];
      MEGALITH_ASSERT(block >= 0 && block < args_.key.shape[0],
                      format("block_table names block {} of {}", block, args_.key.shape[0]));
    }
  }
}

KeyRange AttentionLayout::keys_of(std::int64_t sequence, std::int64_t query) const {
  KeyRange range{0, args_.key.shape[1]};
  std::int64_t position = args_.query_offset + query;
  if (key_lengths_ != nullptr) {
    range.last = key_lengths_[sequence];
    position = range.last - queries() + query;
  }
  if (cu_seqlens_ != nullptr) {
    const std::int32_t* end = cu_seqlens_ + args_.cu_seqlens.shape[0];
    const std::int32_t* next = std::upper_bound(cu_seqlens_, end, static_cast<std::int32_t>(query));
    if (next == cu_seqlens_ || next == end) return {};
    range = {*(next - 1), *next};
  }
  if (args_.causal) range.last = std::min(range.last, position - args_.key_offset + 1);
  if (range.last <= range.first) return {};
  return range;
}

AttentionRows AttentionLayout::rows_of(std::int64_t sequence, std::int64_t group, std::int64_t tile) const {
  AttentionRows result;
  result.first = tile * attention_tile_rows;
  result.count = std::min(attention_tile_rows, rows() - result.first);
  result.any = {std::numeric_limits<std::int64_t>::max(), 0};
  result.all = {0, std::numeric_limits<std::int64_t>::max()};
  const auto sample_bits = args_.dropout.probability > 0.0
                               ? static_cast<std::uint32_t>(sample_of(sequence) >> 32)
                               : std::uint32_t{0};
  for (std::int64_t i = 0; i < result.count; ++i) {
    const std::int64_t query = (result.first + i) / heads_per_group_;
    const std::int64_t head = group * heads_per_group_ + (result.first + i) % heads_per_group_;
    const KeyRange range = keys_of(sequence, query);
    const auto place = static_cast<std::size_t>(i);
    result.key_first[place] = static_cast<std::int32_t>(range.first);
    result.key_last[place] = static_cast<std::int32_t>(range.last);
    result.dropout_row[place] = static_cast<std::uint32_t>(args_.dropout.first_row + query);
    result.dropout_head[place] =
        static_cast<std::uint32_t>(args_.dropout.first_head + head) | (sample_bits << 16);
    result.all.first = std::max(result.all.first, range.first);
    result.all.last = std::min(result.all.last, range.last);
    if (range.last <= range.first) continue;
    result.any.first = std::min(result.any.first, range.first);
    result.any.last = std::max(result.any.last, range.last);
  }
  if (result.any.last <= result.any.first) result.any = {};
  return result;
}

std::uint64_t AttentionLayout::sample_of(std::int64_t sequence) const {
  return static_cast<std::uint64_t>(pointer_to<std::int64_t>(args_.dropout.samples)[sequence]);
}

}  // namespace megalith
