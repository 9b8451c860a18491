// Vocabulary-parallel cross-entropy (Shoeybi et al. 2019, section 3): statistics, losses, gradient.
#include <cmath>
#include <limits>

#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {

void cross_entropy_forward(const HostView& view, const CrossEntropyArgs& args) {
  with_compute_type(args.logits.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const std::int32_t* targets = view.pointer<std::int32_t>(args.targets);
    for (std::int64_t r = 0; r < args.logits.shape[0]; ++r) {
      const T* logits = view.pointer<T>(args.logits) + r * args.logits.stride(0);
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t c = 0; c < args.columns; ++c) {
        const double logit = to_double(logits[c]);
        // A NaN must reach the loss, so it wins over every number.
        if (logit > largest || std::isnan(logit)) largest = logit;
      }
      double sum = 0.0;
      for (std::int64_t c = 0; c < args.columns; ++c) {
        const double logit = to_double(logits[c]);
        if (logit != -std::numeric_limits<double>::infinity()) sum += std::exp(logit - largest);
      }
      const std::int64_t target = targets[r] - args.first_column;
      const bool held = target >= 0 && target < args.columns;
      view.pointer<T>(args.row_max)[r] = from_double<T>(largest);
      view.pointer<T>(args.row_sum)[r] = from_double<T>(sum);
      view.pointer<T>(args.target_logit)[r] = held ? logits[target] : T(0);
    }
  });
}

void cross_entropy_loss(const HostView& view, const CrossEntropyLossArgs& args) {
  with_compute_type(args.losses.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* row_max = view.pointer<T>(args.row_max);
    const T* row_sum = view.pointer<T>(args.row_sum);
    const T* target_logit = view.pointer<T>(args.target_logit);
    T* losses = view.pointer<T>(args.losses);
    for (std::int64_t r = 0; r < args.losses.shape[0]; ++r) {
      losses[r] = from_double<T>(std::log(to_double(row_sum[r])) + to_double(row_max[r]) -
                                 to_double(target_logit[r]));
    }
  });
}

void cross_entropy_backward(const HostView& view, const CrossEntropyBackwardArgs& args) {
  with_compute_type(args.logits.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const std::int32_t* targets = view.pointer<std::int32_t>(args.targets);
    const double scale = *view.pointer<double>(args.scale);
    for (std::int64_t r = 0; r < args.logits.shape[0]; ++r) {
      T* logits = view.pointer<T>(args.logits) + r * args.logits.stride(0);
      const double row_max = to_double(view.pointer<T>(args.row_max)[r]);
      const double row_sum = to_double(view.pointer<T>(args.row_sum)[r]);
      const double factor = to_double(view.pointer<T>(args.weights)[r]) * scale;
      const std::int64_t target = targets[r] - args.first_column;
      for (std::int64_t c = 0; c < args.columns; ++c) {
        const double probability = std::exp(to_double(logits[c]) - row_max) / row_sum;
        logits[c] = from_double<T>((probability - (c == target ? 1.0 : 0.0)) * factor);
      }
      for (std::int64_t c = args.columns; c < args.logits.shape[1]; ++c) logits[c] = T(0);
    }
  });
}

}  // namespace megalith::reference
