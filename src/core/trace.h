// Trace: spans of time, for looking at where a run spends it. Regions are what the host does and nest; work
// is what runs on a device's queue. Written as Chrome's trace format, which chrome://tracing and Perfetto
// draw.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace megalith {

struct TraceSpan {
  std::string name;
  int track = 0;  ///< 0: the host's regions; above: queues of a device
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  int depth = 0;             ///< of a region: how many are around it
  std::string detail;        ///< of work: shapes and types of its arguments
  double flops = 0;          ///< of work: floating-point operations of its formula
  double bytes_read = 0;     ///< of work: at least
  double bytes_written = 0;  ///< of work: at least

  double bytes() const { return bytes_read + bytes_written; }
  double seconds() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
};

/// Thread-safe. Records nothing until start().
class Trace {
 public:
  /// The name of track 0 is "host"; `tracks` name the others.
  explicit Trace(std::vector<std::string> tracks) : tracks_(std::move(tracks)) {}

  void start() { is_recording_ = true; }
  /// Afterwards nothing is added, also by work of other threads that began before.
  void stop();
  bool is_recording() const { return is_recording_; }

  /// Nanoseconds of a steady clock.
  static std::int64_t now();
  /// Opens a region inside those that are open. Regions are the host thread's: one thread opens and closes.
  void begin_region(std::string name);
  /// Closes the innermost region; one that was open before start() is not recorded.
  void end_region();
  /// Does nothing where the trace does not record.
  void add(TraceSpan span);

  /// In the order in which they ended.
  const std::vector<TraceSpan>& spans() const { return spans_; }
  /// JSON object format of the trace event format, times in microseconds from the first span. Raises Error
  /// (environment).
  void write(const std::filesystem::path& path) const;

 private:
  std::vector<std::string> tracks_;
  std::atomic<bool> is_recording_ = false;
  std::mutex mutex_;
  std::vector<TraceSpan> open_;
  std::vector<TraceSpan> spans_;
};

}  // namespace megalith
