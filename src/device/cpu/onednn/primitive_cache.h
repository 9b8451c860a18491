// oneDNN's matmul primitives by the product they compute. Creating one takes milliseconds, so they are kept,
// a bounded number of them; all share one scratchpad.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>

#include "device/cpu/scratch.h"
#include "device/device.h"

namespace megalith {

/// Distance between the rows of a matrix; of a single row any, so the least that libraries accept.
inline std::int64_t leading_step(const Tensor& matrix) {
  const std::int64_t columns = matrix.shape[1] > 1 ? matrix.shape[1] : 1;
  return matrix.shape[0] > 1 && matrix.stride(0) > columns ? matrix.stride(0) : columns;
}

class PrimitiveCache {
 public:
  PrimitiveCache();

  /// Computes args.c, or args.pre_activation where given (the caller then activates), on the calling thread's
  /// OpenMP threads. False, with nothing done, where oneDNN has only its slow reference loops for this
  /// product.
  bool run(const MatmulArgs& args);

 private:
  using Key = std::array<std::int64_t, 16>;
  struct Entry {
    dnnl::matmul primitive;
    dnnl::memory::desc a, b, bias, c, scratchpad;
    bool usable = false;
    std::uint64_t last_use = 0;
  };

  static constexpr std::size_t most_entries = 256;

  Entry& find(const MatmulArgs& args);
  Entry create(const MatmulArgs& args) const;

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<Key, Entry> entries_;
  std::uint64_t uses_ = 0;
  Scratch scratch_;
};

}  // namespace megalith
