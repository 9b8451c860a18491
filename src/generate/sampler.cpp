#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace megalith {
namespace {

Token greedy(std::span<const float> logits) {
  return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void check_logits(std::span<const float> logits) {
  float best = -std::numeric_limits<float>::infinity();
  for (const float logit : logits) {
    if (std::isnan(logit)) best = logit;
    if (std::isnan(best)) break;
    best = std::max(best, logit);
  }
  if (!std::isfinite(best)) {
    fail(ErrorKind::training, "generate",
         "the model's logits are not finite; its weights are damaged or training diverged");
  }
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options)
    : options_(options), key_(philox_key(options.seed, "generate")) {}

Token Sampler::choose(std::span<const float> logits, std::uint64_t sequence, std::uint64_t position) {
  check_logits(logits);
  if (options_.temperature == 0.0 || options_.top_k == 1) return greedy(logits);

  const auto likelier = [&](Token a, Token b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left > right || (left == right && a < b);
  };
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::size_t kept = order_.size();
  if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < kept) {
    kept = static_cast<std::size_t>(options_.top_k);
    std::nth_element(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept) - 1, order_.end(),
                     likelier);
  }
  std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept), likelier);

  weights_.resize(kept);
  const double best = logits[static_cast<std::size_t>(order_[0])];
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    weights_[i] = std::exp((logits[static_cast<std::size_t>(order_[i])] - best) / options_.temperature);
    total += weights_[i];
  }
  if (options_.top_p < 1.0) {
    double sum = 0;
    std::size_t count = 0;
    while (count < kept && sum < options_.top_p * total) sum += weights_[count++];
    kept = std::max<std::size_t>(1, count);
    total = std::accumulate(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  }
  const PhiloxCounter words =
      philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
              static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
             key_);
  double left = (static_cast<double>(words[0]) + 0.5) * 0x1p-32 * total;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    left -= weights_[i];
    if (left < 0) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace megalith
