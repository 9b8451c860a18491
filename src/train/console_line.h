// The line of progress that Megatron-LM's log parsers read, and small helpers to write times and rates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace megalith {

struct ConsoleRow {
  double wall_seconds = 0;  ///< since 1970, printed in local time
  std::int64_t iteration = 0;
  std::int64_t train_iters = 0;
  std::int64_t consumed_samples = 0;
  double elapsed_ms = 0;
  double tflops_per_device = 0;
  double tokens_per_second = 0;
  double learning_rate = 0;
  std::int64_t global_batch_size = 0;
  std::optional<double> lm_loss;  ///< absent where every step of the interval was skipped
  double loss_scale = 1.0;
  std::optional<double> grad_norm;
  std::int64_t skipped_iterations = 0;
  std::int64_t nan_iterations = 0;
};

/// " [2026-01-31 12:00:00.000000] iteration      100/  500000 | consumed samples: ..." in Megatron-LM's
/// fields and order, with throughput per device always present and tokens per second added after it.
std::string console_line(const ConsoleRow& row);

/// "42 s", "3 min 10 s", "2 h 05 min"
std::string duration_text(double seconds);

/// "847", "12.3k", "1.20M"
std::string count_text(double count);

/// The live line: iteration, share, loss, rate, time left. `width` columns at most.
std::string progress_line(std::int64_t iteration, std::int64_t train_iters, double loss,
                          double tokens_per_second, double seconds_left, int width);

}  // namespace megalith
