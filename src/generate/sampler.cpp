#include "generate/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"

namespace megalith {
namespace {

// The greatest logit. Several running maxima, so that the compiler can use vectors.
float best_logit(std::span<const float> logits) {
  constexpr std::size_t lanes = 16;
  std::array<float, lanes> best;
  std::array<std::int32_t, lanes> is_nan{};
  best.fill(-std::numeric_limits<float>::infinity());
  const auto take = [&](std::size_t lane, float logit) {
    best[lane] = logit > best[lane] ? logit : best[lane];
    is_nan[lane] |= logit != logit ? 1 : 0;
  };
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) take(lane, logits[i + lane]);
  }
  for (; i < logits.size(); ++i) take(0, logits[i]);
  const float greatest = *std::max_element(best.begin(), best.end());
  if (!std::isfinite(greatest) || *std::max_element(is_nan.begin(), is_nan.end()) != 0) {
    fail(ErrorKind::training, "generate",
         "the model's logits are not finite; its weights are damaged or training diverged");
  }
  return greatest;
}

double weight_of(const Candidate& candidate) {
  return static_cast<double>(candidate.weight);
}

// Brings the likeliest candidates whose measures add up to `wanted` or more, and no more of them than it
// takes, to the front; gives their number. Quickselect (Hoare 1961) by sums instead of counts.
template <typename Measure>
std::size_t select_likeliest(std::span<Candidate> candidates, double wanted, const Measure& measure) {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  };
  // Candidates before `first` are among the chosen, those from `last` on are not.
  std::size_t first = 0;
  std::size_t last = candidates.size();
  double sum = 0;
  while (first < last) {
    const Candidate pivot = candidates[first + (last - first) / 2];
    std::swap(candidates[first + (last - first) / 2], candidates[last - 1]);
    std::size_t middle = first;
    double likelier_sum = 0;
    for (std::size_t i = first; i + 1 < last; ++i) {
      if (!likelier(candidates[i], pivot)) continue;
      likelier_sum += measure(candidates[i]);
      std::swap(candidates[i], candidates[middle++]);
    }
    std::swap(candidates[middle], candidates[last - 1]);
    if (sum + likelier_sum >= wanted) {
      last = middle;
      continue;
    }
    sum += likelier_sum + measure(pivot);
    first = middle + 1;
    if (sum >= wanted) break;
  }
  return first;
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options)
    : options_(options), key_(philox_key(options.seed, "generate")) {}

Token Sampler::choose(std::span<const float> logits, std::uint64_t sequence, std::uint64_t position) {
  const float best = best_logit(logits);
  if (options_.temperature == 0.0 || options_.top_k == 1) {
    return static_cast<Token>(std::find(logits.begin(), logits.end(), best) - logits.begin());
  }
  // A lower temperature leaves nothing but the best in float32 either.
  const auto scale = static_cast<float>(1.0 / std::max(options_.temperature, 1e-30));
  candidates_.resize(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates_[i] = {logits[i], std::exp((logits[i] - best) * scale), static_cast<Token>(i)};
    total += weight_of(candidates_[i]);
  }
  std::span<Candidate> kept(candidates_);
  const auto keep = [&](std::size_t count) {
    kept = kept.first(std::max<std::size_t>(1, count));
    total = 0;
    for (const Candidate& candidate : kept) total += weight_of(candidate);
  };
  if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < kept.size()) {
    keep(select_likeliest(kept, static_cast<double>(options_.top_k), [](const Candidate&) { return 1.0; }));
  }
  if (options_.top_p < 1.0) keep(select_likeliest(kept, options_.top_p * total, weight_of));

  const PhiloxCounter words =
      philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
              static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
             key_);
  double left = (static_cast<double>(words[0]) + 0.5) * 0x1p-32 * total;
  for (const Candidate& candidate : kept) {
    left -= weight_of(candidate);
    if (left < 0) return candidate.token;
  }
  // Only rounding leads here: the last that can be drawn at all.
  return std::find_if(kept.rbegin(), kept.rend(), [](const Candidate& one) { return one.weight > 0; })->token;
}

}  // namespace megalith
