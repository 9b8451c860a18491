#include "train/metrics_log.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.h"
#include "core/files.h"

namespace megalith {
namespace {

std::string number_text(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return "null";
  std::array<char, 40> digits{};
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), *value);
  return {digits.data(), end};
}

// Whole lines of iterations up to keep_through.
std::string cut_back(const std::string& text, std::int64_t keep_through) {
  std::string kept;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string::npos) break;
    const std::string line = text.substr(start, end - start);
    start = end + 1;
    const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("iteration") || !row["iteration"].is_number_integer()) continue;
    if (row["iteration"].get<std::int64_t>() <= keep_through) kept += line + "\n";
  }
  return kept;
}

}  // namespace

std::string metrics_json(const IterationMetrics& metrics) {
  return format(
      "{{\"iteration\":{},\"consumed_samples\":{},\"lm_loss\":{},\"validation_loss\":{},\"grad_norm\":{},"
      "\"learning_rate\":{},\"global_batch_size\":{},\"elapsed_ms\":{},\"tokens_per_second\":{},"
      "\"tflops_per_device\":{}}}",
      metrics.iteration, metrics.consumed_samples, number_text(metrics.lm_loss),
      number_text(metrics.validation_loss), number_text(metrics.grad_norm),
      number_text(metrics.learning_rate),
      metrics.global_batch_size ? format("{}", *metrics.global_batch_size) : "null",
      number_text(metrics.elapsed_ms), number_text(metrics.tokens_per_second),
      number_text(metrics.tflops_per_device));
}

MetricsLog::MetricsLog(const std::filesystem::path& path, std::int64_t keep_through) {
  std::error_code code;
  if (std::filesystem::exists(path, code)) {
    const std::string text = read_file(path);
    const std::string kept = cut_back(text, keep_through);
    if (kept != text) write_file_atomically(path, kept);
  }
  file_ = AppendFile(path);
}

void MetricsLog::append(const IterationMetrics& metrics) {
  file_.append(metrics_json(metrics) + "\n");
}

}  // namespace megalith
