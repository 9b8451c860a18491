#include "core/trace.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/files.h"

namespace megalith {
namespace {

nlohmann::json event_of(const TraceSpan& span, std::int64_t origin) {
  nlohmann::json event = {{"ph", "X"},
                          {"name", span.name},
                          {"cat", span.track == 0 ? "region" : "work"},
                          {"pid", 0},
                          {"tid", span.track},
                          {"ts", static_cast<double>(span.begin_ns - origin) * 1e-3},
                          {"dur", static_cast<double>(span.end_ns - span.begin_ns) * 1e-3}};
  if (span.track == 0) return event;
  const auto nanoseconds = static_cast<double>(std::max<std::int64_t>(1, span.end_ns - span.begin_ns));
  nlohmann::json& args = event["args"];
  args["arguments"] = span.detail;
  if (span.flops > 0) args["GFLOP/s"] = span.flops / nanoseconds;
  if (span.bytes() > 0) args["GB/s"] = span.bytes() / nanoseconds;
  return event;
}

}  // namespace

std::int64_t Trace::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Trace::begin_region(std::string name) {
  const std::lock_guard lock(mutex_);
  TraceSpan span;
  span.name = std::move(name);
  span.depth = static_cast<int>(open_.size());
  span.begin_ns = is_recording_ ? now() : 0;
  open_.push_back(std::move(span));
}

void Trace::end_region() {
  const std::lock_guard lock(mutex_);
  if (open_.empty()) return;
  TraceSpan span = std::move(open_.back());
  open_.pop_back();
  if (!is_recording_ || span.begin_ns == 0) return;
  span.end_ns = now();
  spans_.push_back(std::move(span));
}

void Trace::stop() {
  const std::lock_guard lock(mutex_);
  is_recording_ = false;
}

void Trace::add(TraceSpan span) {
  const std::lock_guard lock(mutex_);
  if (is_recording_) spans_.push_back(std::move(span));
}

void Trace::write(const std::filesystem::path& path) const {
  std::int64_t origin = spans_.empty() ? 0 : spans_.front().begin_ns;
  for (const TraceSpan& span : spans_) origin = std::min(origin, span.begin_ns);
  nlohmann::json events = nlohmann::json::array();
  const auto name_track = [&](int track, const std::string& name) {
    events.push_back(
        {{"ph", "M"}, {"name", "thread_name"}, {"pid", 0}, {"tid", track}, {"args", {{"name", name}}}});
  };
  name_track(0, "host");
  for (std::size_t i = 0; i < tracks_.size(); ++i) name_track(static_cast<int>(i) + 1, tracks_[i]);
  for (const TraceSpan& span : spans_) events.push_back(event_of(span, origin));
  const nlohmann::json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  write_file_atomically(path, trace.dump());
}

}  // namespace megalith
