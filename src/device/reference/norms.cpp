// Sums over whole tensors: the weighted loss, squared block norms and the clip factor.
#include <algorithm>
#include <cmath>

#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {

void add_weighted_sum(const HostView& view, const Tensor& total, const Tensor& x, const Tensor& weights) {
  with_compute_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* values = view.pointer<T>(x);
    const T* factors = view.pointer<T>(weights);
    double sum = 0.0;
    for (std::int64_t i = 0; i < x.count(); ++i) sum += to_double(values[i]) * to_double(factors[i]);
    *view.pointer<double>(total) += sum;
  });
}

void block_norms(const HostView& view, const Tensor& partials, const Tensor& x) {
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* values = view.pointer<T>(x);
    double* out = view.pointer<double>(partials);
    for (std::int64_t block = 0; block < partials.count(); ++block) {
      double sum = 0.0;
      const std::int64_t end = std::min(x.count(), (block + 1) * norm_block);
      for (std::int64_t i = block * norm_block; i < end; ++i)
        sum += to_double(values[i]) * to_double(values[i]);
      out[block] = sum;
    }
  });
}

void clip_factor(const HostView& view, const ClipFactorArgs& args) {
  const double* partials = view.pointer<double>(args.partials);
  const double inverse_loss_scale = *view.pointer<double>(args.inverse_loss_scale);
  double sum = 0.0;
  for (std::int64_t i = 0; i < args.partials.count(); ++i) sum += partials[i];
  const double norm = std::sqrt(sum) * inverse_loss_scale;
  const double clip = args.max_norm > 0.0 ? std::min(1.0, args.max_norm / (norm + 1e-6)) : 1.0;
  *view.pointer<double>(args.norm) = norm;
  *view.pointer<double>(args.gradient_scale) = std::isfinite(norm) ? inverse_loss_scale * clip : -1.0;
}

}  // namespace megalith::reference
