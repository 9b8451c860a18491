#include "device/reference/attention_layout.h"

#include <algorithm>

namespace megalith::reference {

AttentionLayout::AttentionLayout(const HostView& view, const AttentionArgs& args)
    : args_(args),
      cu_seqlens_(view.pointer<std::int32_t>(args.cu_seqlens)),
      key_lengths_(view.pointer<std::int32_t>(args.key_lengths)),
      block_table_(view.pointer<std::int32_t>(args.block_table)) {}

KeyRange AttentionLayout::keys_of(std::int64_t sequence, std::int64_t query) const {
  KeyRange range{0, args_.key.shape[1]};
  std::int64_t position = args_.query_offset + query;
  if (key_lengths_ != nullptr) {
    const std::int64_t length = key_lengths_[sequence];
    const std::int64_t room =
        block_table_ == nullptr ? args_.key.shape[1] : args_.block_table.shape[1] * args_.key.shape[1];
    MEGALITH_ASSERT(length >= 0 && length <= room,
                    format("key_lengths[{}] is {} with room for {} keys", sequence, length, room));
    range.last = length;
    position = length - args_.query.shape[1] + query;
  }
  if (cu_seqlens_ != nullptr) {
    const std::int32_t* end = cu_seqlens_ + args_.cu_seqlens.shape[0];
    const std::int32_t* next = std::upper_bound(cu_seqlens_, end, static_cast<std::int32_t>(query));
    // Before the first or past the last boundary there is no document, so no key.
    if (next == cu_seqlens_ || next == end) return {};
    range = {*(next - 1), *next};
  }
  if (args_.causal) range.last = std::min(range.last, position - args_.key_offset + 1);
  return range;
}

std::int64_t AttentionLayout::offset(const Tensor& keys, std::int64_t sequence, std::int64_t position,
                                     std::int64_t group) const {
  if (block_table_ == nullptr) return head_offset(keys, sequence, position, group);
  const std::int64_t block_size = keys.shape[1];
  const std::int64_t block = block_table_[sequence * args_.block_table.shape[1] + position / block_size];
  MEGALITH_ASSERT(block >= 0 && block < keys.shape[0],
                  format("block_table names block {} of {}", block, keys.shape[0]));
  return head_offset(keys, block, position % block_size, group);
}

}  // namespace megalith::reference
