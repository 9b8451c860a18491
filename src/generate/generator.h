// Generates text: prompts in, tokens out one at a time, several sequences at once over one cache of keys and
// values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"
#include "generate/sampler.h"
#include "model/gpt_inference.h"

namespace megalith {

struct GenerateOptions {
  SamplingOptions sampling;
  std::int64_t max_new_tokens = 128;
  std::vector<std::string> stop_strings;
  bool stop_at_eod = true;
};

/// Why a sequence ended.
enum class StopReason : std::uint8_t { length, end_of_document, stop_string, context_full };

struct Generated {
  std::string text;  ///< without the prompt, the stop string and the end-of-document token
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
  StopReason reason = StopReason::length;
};

/// What generate_text spent its time on. The first token of a continuation comes from its prompt's pass, so
/// `new_tokens` leaves it out.
struct GenerationTimes {
  std::int64_t prompt_tokens = 0;
  double prompt_seconds = 0;
  std::int64_t new_tokens = 0;
  double new_seconds = 0;
};

/// Receives new text of one prompt as soon as it is certain; whole UTF-8 characters.
using TextSink = std::function<void(std::size_t prompt, std::string_view text)>;

/// Continues every prompt. The inference object gives the number of sequences computed at a time and is
/// reset; `times`, where given, receives what this call took. An empty prompt starts from the end-of-document
/// token. Raises Error (usage) where a prompt alone fills the context, before anything is computed, naming
/// the prompt's number.
std::vector<Generated> generate_text(GptInference& inference, const InferenceCapacity& capacity,
                                     const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                     const GenerateOptions& options, const TextSink& sink,
                                     GenerationTimes* times = nullptr);

std::string_view name_of(StopReason reason);

}  // namespace megalith
