// Chooses the next token from logits: greedy, or by temperature, top-k and top-p (nucleus) sampling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/philox.h"
#include "data/tokenizer.h"

namespace megalith {

struct SamplingOptions {
  double temperature = 1.0;  ///< 0: greedy
  std::int64_t top_k = 0;    ///< keep the k likeliest; 0: all; 1: greedy
  double top_p = 1.0;  ///< keep the smallest set of likeliest tokens with at least this probability (Holtzman
                       ///< et al. 2020)
  std::uint64_t seed = 1234;
};

/// A token that may be chosen.
struct Candidate {
  float logit = 0;
  float weight = 0;  ///< its probability, times a factor that all have in common
  Token token = 0;
};

/// Draws depend on (seed, sequence number, position) only: a prompt gives the same text alone and in a batch.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  /// `logits` [vocabulary], not empty. Equal logits are ordered by token number. Takes time proportional to
  /// the vocabulary. Raises Error (training) where no logit is finite or one is NaN.
  Token choose(std::span<const float> logits, std::uint64_t sequence, std::uint64_t position);

 private:
  SamplingOptions options_;
  PhiloxKey key_;
  std::vector<Candidate> candidates_;
};

}  // namespace megalith
