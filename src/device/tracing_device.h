// A device that records what another device does: every kernel and copy with its time, its arguments and its
// FLOPs or bytes, and the regions that its caller names.
#pragma once

#include <memory>

#include "core/trace.h"
#include "device/device.h"

namespace megalith {

/// An empty trace with a track for every queue.
Trace make_device_trace();

/// Wraps `device`. While `trace` records, the caller waits for each kernel, so that a span is the kernel's
/// own time: queues do not overlap then. While it does not, calls pass through.
std::unique_ptr<Device> make_tracing_device(std::unique_ptr<Device> device, Trace& trace);

}  // namespace megalith
