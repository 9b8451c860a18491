#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/embedding.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cstring>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void gather(const EmbeddingArgs& args, std::int64_t begin, std::int64_t end) {
  with_compute_type("embedding_forward", args.table.dtype, [&]<typename T>() HWY_ATTR {
    const std::int64_t vocabulary = args.table.shape[0];
    const std::int64_t hidden = args.table.shape[1];
    const auto length = static_cast<std::size_t>(hidden);
    const std::int32_t* const tokens = pointer_to<const std::int32_t>(args.tokens);
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t row = tokens[r] - args.first_row;
      const bool here = row >= 0 && row < vocabulary;
      T* const to = pointer_to<T>(args.rows) + r * hidden;
      if (!here) {
        if (!args.accumulate) std::memset(static_cast<void*>(to), 0, length * sizeof(T));
        continue;
      }
      const T* const from = pointer_to<const T>(args.table) + row * hidden;
      if (args.accumulate) {
        simd::map_elements(length, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); }, to, to, from);
      } else {
        std::memcpy(static_cast<void*>(to), from, length * sizeof(T));
      }
    }
  });
}

void scatter_columns(const EmbeddingBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  with_compute_type("embedding_backward", args.rows_grad.dtype, [&]<typename T>() HWY_ATTR {
    const std::int64_t vocabulary = args.table_grad.shape[0];
    const std::int64_t hidden = args.table_grad.shape[1];
    const std::int32_t* const tokens = pointer_to<const std::int32_t>(args.tokens);
    for (std::int64_t r = 0; r < args.tokens.shape[0]; ++r) {
      const std::int64_t row = tokens[r] - args.first_row;
      if (row < 0 || row >= vocabulary) continue;
      float* const to = pointer_to<float>(args.table_grad) + row * hidden + begin;
      const T* const from = pointer_to<const T>(args.rows_grad) + r * hidden + begin;
      simd::map_elements(
          static_cast<std::size_t>(end - begin), [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); }, to,
          to, from);
    }
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(gather);
HWY_EXPORT(scatter_columns);

void CpuDevice::embedding_forward(QueueKind, const EmbeddingArgs& args) {
  check_embedding_forward(args);
  const std::int64_t hidden = args.table.shape[1];
  team_.parallel_for(
      args.tokens.shape[0], 16384 / (hidden + 1) + 1,
      [&](std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(gather)(args, begin, end); });
}

// Each thread owns columns of the table: no two write to one element, and each adds in the order of r.
void CpuDevice::embedding_backward(QueueKind, const EmbeddingBackwardArgs& args) {
  check_embedding_backward(args);
  team_.parallel_for(args.table_grad.shape[1], 64, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(scatter_columns)(args, begin, end);
  });
}

}  // namespace megalith
#endif
