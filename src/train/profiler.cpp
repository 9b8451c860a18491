#include "train/profiler.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "device/tracing_device.h"

namespace megalith {
namespace {

constexpr std::string_view iteration_name = "iteration";
constexpr std::array outside_a_step = {std::string_view("evaluation"), std::string_view("save")};
constexpr std::array beside_arithmetic = {std::string_view("data"), std::string_view("logging"),
                                          std::string_view("metrics")};

struct Total {
  std::int64_t calls = 0;
  double milliseconds = 0;
  double flops = 0;
  double bytes = 0;

  void add(const TraceSpan& span) {
    ++calls;
    milliseconds += static_cast<double>(span.end_ns - span.begin_ns) * 1e-6;
    flops += span.flops;
    bytes += span.bytes();
  }
  std::string rate() const {
    if (milliseconds <= 0 || (flops <= 0 && bytes <= 0)) return "";
    return flops > 0 ? format("{:8.1f} GFLOP/s", flops / milliseconds * 1e-6)
                     : format("{:8.1f} GB/s", bytes / milliseconds * 1e-6);
  }
};

/// A region directly inside the iteration, all its occurrences together, and the kernels that ran in it.
struct Part {
  std::string name;
  Total total;
  std::map<std::string, Total> kernels;
};

struct Summary {
  Total iterations;
  std::vector<Part> parts;  ///< in the order of their first occurrence

  Part& part(const std::string& name) {
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.name == name; });
    return found != parts.end() ? *found : parts.emplace_back(Part{name, {}, {}});
  }
  double milliseconds(std::span<const std::string_view> names) const {
    double sum = 0;
    for (const Part& part : parts) {
      if (std::find(names.begin(), names.end(), part.name) != names.end()) sum += part.total.milliseconds;
    }
    return sum;
  }
};

Summary summarize(std::span<const TraceSpan> spans) {
  Summary summary;
  std::vector<const TraceSpan*> regions;  // by their begin
  for (const TraceSpan& span : spans) {
    if (span.track == 0 && span.depth == 0 && span.name == iteration_name) summary.iterations.add(span);
    if (span.track == 0 && span.depth == 1) regions.push_back(&span);
  }
  std::sort(regions.begin(), regions.end(),
            [](const TraceSpan* a, const TraceSpan* b) { return a->begin_ns < b->begin_ns; });
  for (const TraceSpan* region : regions) summary.part(region->name).total.add(*region);
  for (const TraceSpan& span : spans) {
    if (span.track == 0) continue;
    const auto after =
        std::upper_bound(regions.begin(), regions.end(), span.begin_ns,
                         [](std::int64_t time, const TraceSpan* r) { return time < r->begin_ns; });
    if (after == regions.begin() || (*std::prev(after))->end_ns < span.end_ns) continue;
    summary.part((*std::prev(after))->name).kernels[span.name].add(span);
  }
  return summary;
}

}  // namespace

std::string profile_table(std::span<const TraceSpan> spans) {
  const Summary summary = summarize(spans);
  const auto count = static_cast<double>(std::max<std::int64_t>(1, summary.iterations.calls));
  const double step = (summary.iterations.milliseconds - summary.milliseconds(outside_a_step)) / count;
  std::string table = format(" profile of {} iteration{}: {:.1f} ms a step\n", summary.iterations.calls,
                             summary.iterations.calls == 1 ? "" : "s", step);
  const auto row = [&](std::string_view indent, std::string_view name, double calls, double milliseconds,
                       const std::string& rate) {
    table += format("  {:<30} {:>6.0f} x {:>10.3f} ms {:>7.2f} %{}\n", format("{}{}", indent, name), calls,
                    milliseconds, step > 0 ? 100 * milliseconds / step : 0.0, rate);
  };
  for (const Part& part : summary.parts) {
    const double whole = part.total.milliseconds / count;
    row("", part.name, static_cast<double>(part.total.calls) / count, whole, "");
    std::vector<std::pair<std::string, Total>> kernels(part.kernels.begin(), part.kernels.end());
    std::sort(kernels.begin(), kernels.end(),
              [](const auto& a, const auto& b) { return a.second.milliseconds > b.second.milliseconds; });
    double inside = 0;
    for (const auto& [name, total] : kernels) {
      row("  ", name, static_cast<double>(total.calls) / count, total.milliseconds / count, total.rate());
      inside += total.milliseconds / count;
    }
    if (!kernels.empty()) row("  ", "outside kernels", 1, whole - inside, "");
  }
  return table + format(" data, logging and metrics: {:.3f} % of a step",
                        step > 0 ? 100 * summary.milliseconds(beside_arithmetic) / count / step : 0.0);
}

Profiler::Profiler(const TrainOptions& options, Log& log)
    : options_(options), log_(log), trace_(make_device_trace()) {}

std::unique_ptr<Device> Profiler::wrap(std::unique_ptr<Device> device) {
  return make_tracing_device(std::move(device), trace_);
}

void Profiler::at_iteration(std::int64_t finished, const std::filesystem::path& file) {
  if (trace_.is_recording() && finished == options_.profile_step_end) end(file);
  if (finished == options_.profile_step_start) trace_.start();
}

void Profiler::finish(const std::filesystem::path& file) {
  if (trace_.is_recording()) return end(file);
  if (trace_.spans().empty()) {
    log_.warn(format("--profile recorded nothing: no iteration follows --profile-step-start {}",
                     options_.profile_step_start));
  }
}

// A trace is an extra: a full disk must not end the run.
void Profiler::end(const std::filesystem::path& file) {
  trace_.stop();
  log_.clear_progress();
  log_.line(profile_table(trace_.spans()));
  try {
    trace_.write(file);
    log_.line(format(" trace: {}", file.string()));
  } catch (const Error& error) {
    log_.warn(format("{}. There is no trace.", error.what()));
  }
}

}  // namespace megalith
