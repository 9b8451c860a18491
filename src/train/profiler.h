// Profiler: --profile. Records some iterations of a run, writes them as a trace that chrome://tracing and
// Perfetto draw, and sums them up in a table: where a step's time goes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "core/log.h"
#include "core/options.h"
#include "core/trace.h"
#include "device/device.h"

namespace megalith {

class Profiler {
 public:
  /// Records the iterations after options.profile_step_start finished ones, until profile_step_end are
  /// finished. Options and log outlive the profiler, which outlives the device it wraps.
  Profiler(const TrainOptions& options, Log& log);

  /// `device` with the recording around it.
  std::unique_ptr<Device> wrap(std::unique_ptr<Device> device);

  /// Between iterations: starts or ends the recording; its end writes `file` and prints the table.
  void at_iteration(std::int64_t finished, const std::filesystem::path& file);
  /// At the run's end: ends the recording, or says that it never began.
  void finish(const std::filesystem::path& file);

 private:
  void end(const std::filesystem::path& file);

  const TrainOptions& options_;
  Log& log_;
  Trace trace_;
};

/// The time of the recorded iterations by the regions in them and the kernels in those, a line each. Shares
/// are of the step: the iteration without evaluation and saving.
std::string profile_table(std::span<const TraceSpan> spans);

}  // namespace megalith
