// Where attention finds its keys: every mask of AttentionArgs leaves a query one unbroken range of them, and
// a block table moves them about.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "device/reference/memory.h"

namespace megalith::reference {

/// Local key positions [first, last).
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t count() const { return last > first ? last - first : 0; }
};

class AttentionLayout {
 public:
  AttentionLayout(const HostView& view, const AttentionArgs& args);

  /// The keys that local query `query` of sequence `sequence` sees.
  KeyRange keys_of(std::int64_t sequence, std::int64_t query) const;
  /// First element of key or value `position` of `group`, counted in elements from the tensor's start.
  std::int64_t offset(const Tensor& keys, std::int64_t sequence, std::int64_t position,
                      std::int64_t group) const;

 private:
  const AttentionArgs& args_;
  const std::int32_t* cu_seqlens_;
  const std::int32_t* key_lengths_;
  const std::int32_t* block_table_;
};

/// Offset of row (sequence, position, head) of a [B, S, N, D] tensor.
inline std::int64_t head_offset(const Tensor& tensor, std::int64_t sequence, std::int64_t position,
                                std::int64_t head) {
  return sequence * tensor.stride(0) + position * tensor.stride(1) + head * tensor.stride(2);
}

}  // namespace megalith::reference
