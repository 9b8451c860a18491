// The reference device: readable, single-threaded loops in float32 and float64. It is what every other device
// is tested against, and what runs where no optional library is installed. float32 tensors are summed in
// float64.
//
// Strict mode (DeviceOptions::strict) makes misuse of the device seam visible without a GPU:
// - addresses lie in a range without access rights, so host code that reads through one is killed at once;
//   every block ends at a guard page, released blocks lose their rights, and new memory is full of NaN;
// - queues run late (at synchronize, or when memory is released) and out of step, in an order drawn from
//   strict_seed that respects only each queue's own order and the events waited for. A forgotten event
//   therefore gives a wrong result for some seed.
#pragma once

#include <memory>

#include "device/device.h"

namespace megalith {

/// Raises Error (environment) where strict mode is asked for and the system cannot map its memory twice.
std::unique_ptr<Device> make_reference_device(const DeviceOptions& options);

}  // namespace megalith
