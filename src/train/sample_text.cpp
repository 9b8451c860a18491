#include "train/sample_text.h"

#include <algorithm>

#include "core/error.h"
#include "generate/generator.h"

namespace megalith {
namespace {

constexpr double sample_temperature = 0.8;
constexpr std::int64_t sample_top_k = 40;

InferenceCapacity sample_capacity(const GptConfig& config) {
  return {1, config.max_positions, std::min<std::int64_t>(config.max_positions, 128)};
}

}  // namespace

std::size_t sample_text_bytes(const GptConfig& config, const TrainOptions& options) {
  return options.sample_prompt.empty() ? 0 : GptInference::planned_bytes(config, sample_capacity(config));
}

void print_sample_texts(Device& device, const GptConfig& config, const ParameterStore& store,
                        const Tokenizer& tokenizer, const TrainOptions& options, std::int64_t iteration,
                        Log& log) {
  GenerateOptions generate;
  generate.sampling = {sample_temperature, sample_top_k, 1.0, static_cast<std::uint64_t>(options.seed)};
  generate.max_new_tokens = options.sample_tokens;
  const InferenceCapacity capacity = sample_capacity(config);
  GptInference inference(device, config, store, capacity);
  for (const std::string& prompt : options.sample_prompt) {
    try {
      const std::vector<Generated> texts =
          generate_text(inference, capacity, tokenizer, {prompt}, generate, nullptr);
      log.line(format(" sample at iteration {}: {}|{}", iteration, prompt, texts.front().text));
    } catch (const Error& error) {
      // A prompt that does not fit must not end the run.
      log.warn(format("no sample of \"{}\": {}", prompt, error.what()));
    }
  }
}

}  // namespace megalith
