// GradientSink: where a layer puts a parameter's gradient. The first microbatch of a step writes it and later
// ones add to it, so that no gradient is filled with zeros only to be added to.
#pragma once

#include <utility>

#include "device/device.h"

namespace megalith {

struct GradientSink {
  Tensor tensor;               ///< sum type; absent where the store holds no gradients
  bool* is_written = nullptr;  ///< of the store: whether this step has put anything into `tensor`

  /// For a kernel that can write as well as add: whether it must add.
  bool adds() const { return std::exchange(*is_written, true); }
  /// For a kernel that only adds: the tensor, filled with 0 where this step has put nothing into it.
  const Tensor& to_add_to(Device& device) const {
    if (!adds()) device.fill(QueueKind::compute, tensor, 0.0);
    return tensor;
  }
};

}  // namespace megalith
