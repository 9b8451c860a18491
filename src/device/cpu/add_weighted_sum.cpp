#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"

namespace megalith {

// One number a token: a single thread adds them in order.
void CpuDevice::add_weighted_sum(QueueKind, const Tensor& total, const Tensor& x, const Tensor& weights) {
  check_add_weighted_sum(total, x, weights);
  require_float32("add_weighted_sum", x.dtype);
  const float* const values = pointer_to<const float>(x);
  const float* const factors = pointer_to<const float>(weights);
  double sum = 0.0;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(factors[i]);
  }
  *pointer_to<double>(total) += sum;
}

}  // namespace megalith
