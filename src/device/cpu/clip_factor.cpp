#include <algorithm>
#include <cmath>

#include "device/check.h"
#include "device/cpu/cpu_device.h"

namespace megalith {

void CpuDevice::clip_factor(QueueKind, const ClipFactorArgs& args) {
  check_clip_factor(args);
  const double* const partials = pointer_to<const double>(args.partials);
  double sum = 0.0;
  for (std::int64_t i = 0; i < args.partials.count(); ++i) sum += partials[i];
  const double inverse_loss_scale = *pointer_to<const double>(args.inverse_loss_scale);
  const double norm = std::sqrt(sum) * inverse_loss_scale;
  double scale = -1.0;
  if (std::isfinite(norm)) {
    const double clip = args.max_norm > 0.0 ? std::min(1.0, args.max_norm / (norm + 1e-6)) : 1.0;
    scale = inverse_loss_scale * clip;
  }
  *pointer_to<double>(args.norm) = norm;
  *pointer_to<double>(args.gradient_scale) = scale;
}

}  // namespace megalith
