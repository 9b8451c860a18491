// KernelProfile: the kernels of a trace as a table with one row per kernel, type and shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/trace.h"
#include "device/kernel_work.h"

namespace megalith {

struct KernelRow {
  std::string kernel;  ///< its name in device.h
  KernelWork work;     ///< of one call, the mean
  std::int64_t calls = 0;
  double seconds = 0.0;  ///< of all calls
  double median = 0.0;   ///< of one call
  double fastest = 0.0;
};

/// The rows with the most time first.
std::vector<KernelRow> profile_kernels(std::span<const TraceSpan> spans);

}  // namespace megalith
