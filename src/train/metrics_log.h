// metrics.jsonl of a run folder: one JSON object a logged iteration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "train/append_file.h"

namespace megalith {

struct IterationMetrics {
  std::int64_t iteration = 0;
  std::int64_t consumed_samples = 0;
  std::optional<double> lm_loss;          ///< mean over the logging interval, nats per token
  std::optional<double> validation_loss;  ///< nats per token, where this iteration was evaluated
  std::optional<double> grad_norm;        ///< of the interval's last step
  double learning_rate = 0;
  // Of the interval; absent where the row comes from an evaluation alone.
  std::optional<std::int64_t> global_batch_size;  ///< of its last step
  std::optional<double> elapsed_ms;               ///< per iteration, mean
  std::optional<double> tokens_per_second;
  std::optional<double> tflops_per_device;  ///< model FLOPs, 10^12 a second
};

/// The line of metrics.jsonl without its newline. Numbers are in shortest round-trip form, so that equal bits
/// give equal text; absent or non-finite numbers are null.
std::string metrics_json(const IterationMetrics& metrics);

class MetricsLog {
 public:
  /// Lines of iterations after `keep_through` are first cut from an existing file, as is a half line at its
  /// end.
  MetricsLog(const std::filesystem::path& path, std::int64_t keep_through);
  void append(const IterationMetrics& metrics);

 private:
  AppendFile file_;
};

}  // namespace megalith
