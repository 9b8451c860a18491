#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {

void embedding_forward(const HostView& view, const EmbeddingArgs& args) {
  with_compute_type(args.table.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const std::int64_t hidden = args.table.shape[1];
    const std::int32_t* tokens = view.pointer<std::int32_t>(args.tokens);
    for (std::int64_t r = 0; r < args.tokens.shape[0]; ++r) {
      const std::int64_t local = tokens[r] - args.first_row;
      const bool held = local >= 0 && local < args.table.shape[0];
      const T* entry = held ? view.pointer<T>(args.table) + local * hidden : nullptr;
      T* row = view.pointer<T>(args.rows) + r * hidden;
      for (std::int64_t i = 0; i < hidden; ++i) {
        const T value = held ? entry[i] : T(0);
        row[i] = args.accumulate ? row[i] + value : value;
      }
    }
  });
}

void embedding_backward(const HostView& view, const EmbeddingBackwardArgs& args) {
  with_compute_type(args.rows_grad.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const std::int64_t hidden = args.table_grad.shape[1];
    const std::int32_t* tokens = view.pointer<std::int32_t>(args.tokens);
    for (std::int64_t r = 0; r < args.tokens.shape[0]; ++r) {
      const std::int64_t local = tokens[r] - args.first_row;
      if (local < 0 || local >= args.table_grad.shape[0]) continue;
      const T* row_grad = view.pointer<T>(args.rows_grad) + r * hidden;
      T* entry_grad = view.pointer<T>(args.table_grad) + local * hidden;
      for (std::int64_t i = 0; i < hidden; ++i) entry_grad[i] += row_grad[i];
    }
  });
}

}  // namespace megalith::reference
