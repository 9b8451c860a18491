#include "train/console_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "core/format.h"

namespace megalith {
namespace {

// printf's %E: two exponent digits at least, as log parsers expect.
std::string scientific(double value) {
  return format("{:.6E}", value);
}

}  // namespace

std::string console_line(const ConsoleRow& row) {
  const auto whole = static_cast<std::time_t>(row.wall_seconds);
  std::tm local{};
  ::localtime_r(&whole, &local);
  std::array<char, 32> stamp{};
  const std::size_t length = std::strftime(stamp.data(), stamp.size(), "%Y-%m-%d %H:%M:%S", &local);
  const auto micros = static_cast<int>((row.wall_seconds - std::floor(row.wall_seconds)) * 1e6);
  std::string line = format(" [{}.{:06}] iteration {:8}/{:8} | consumed samples: {:12} |",
                            std::string_view(stamp.data(), length), micros, row.iteration, row.train_iters,
                            row.consumed_samples);
  line += format(" elapsed time per iteration (ms): {:.1f} | throughput per GPU (TFLOP/s/GPU): {:.3f} |",
                 row.elapsed_ms, row.tflops_per_device);
  line += format(" tokens per second: {:.1f} | learning rate: {} | global batch size: {:5} |",
                 row.tokens_per_second, scientific(row.learning_rate), row.global_batch_size);
  if (row.lm_loss) line += format(" lm loss: {} |", scientific(*row.lm_loss));
  line += format(" loss scale: {:.1f} |", row.loss_scale);
  if (row.grad_norm) line += format(" grad norm: {:.3f} |", *row.grad_norm);
  line += format(" number of skipped iterations: {:3} | number of nan iterations: {:3} |",
                 row.skipped_iterations, row.nan_iterations);
  return line;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 100) return format("{} s", whole);
  if (whole < 6000) return format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return format("{} days {} h", whole / 86400, whole / 3600 % 24);
}

std::string count_text(double count) {
  if (count < 1e3) return format("{:.0f}", count);
  if (count < 1e5) return format("{:.1f}k", count / 1e3);
  if (count < 1e6) return format("{:.0f}k", count / 1e3);
  if (count < 1e9) return format("{:.2f}M", count / 1e6);
  return format("{:.2f}B", count / 1e9);
}

std::string progress_line(std::int64_t iteration, std::int64_t train_iters, double loss,
                          double tokens_per_second, double seconds_left, int width) {
  const double share =
      train_iters > 0 ? static_cast<double>(iteration) / static_cast<double>(train_iters) : 1.0;
  std::string text =
      format(" {:3.0f} % | {}/{} | loss {:.4f} | {} tokens/s | {} left", share * 100.0, iteration,
             train_iters, loss, count_text(tokens_per_second), duration_text(seconds_left));
  constexpr int widest_bar = 24;
  const int room = std::min(widest_bar, width - 3 - static_cast<int>(text.size()));
  if (room < 6) return text;
  const int filled = static_cast<int>(share * room);
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(room - filled), '.') + "]" + text;
}

}  // namespace megalith
