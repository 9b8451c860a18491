// metrics.jsonl: any bytes can be cut back and appended to, and give curves that can be drawn or an Error
// (input). The first byte chooses the axes; digits draw no pixels, which take a thousand times longer.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/files.h"
#include "tests/data/support/fuzz_folder.h"
#include "train/metrics_log.h"
#include "train/run_curves.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace megalith;
  if (size < 1) return 0;
  static const test::FuzzFolder folder;
  const std::string path = folder / "metrics.jsonl";
  test::FuzzFolder::write(path, {reinterpret_cast<const char*>(data) + 1, size - 1});
  CurveOptions options;
  options.log_x = (data[0] & 1U) != 0;
  options.log_y = (data[0] & 2U) != 0;
  options.metric = (data[0] & 4U) != 0 ? "grad_norm" : "lm_loss";
  options.x_axis = (data[0] & 8U) != 0 ? "consumed_samples" : "iteration";
  try {
    const Drawing drawing = draw_curves({read_run_curve(path, options)}, options);
    if (to_svg(drawing).empty()) std::abort();
    if ((data[0] & 64U) != 0 && to_png(drawing).empty()) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
  }
  IterationMetrics next;
  next.iteration = 6;
  MetricsLog(path, 5).append(next);
  const std::string kept = read_file(path);
  if (!kept.ends_with("}\n")) std::abort();
  next.iteration = 7;
  MetricsLog(path, 6).append(next);
  if (!read_file(path).starts_with(kept)) std::abort();
  return 0;
}
