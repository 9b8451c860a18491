// --sample-prompt: what the model writes while it learns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/log.h"
#include "core/options.h"
#include "data/tokenizer.h"
#include "model/gpt_config.h"
#include "model/parameter_store.h"

namespace megalith {

/// Prints a continuation of every options.sample_prompt, options.sample_tokens long, drawn with the run's
/// seed (the same draws each time, so that only the weights differ). Takes and returns memory for one
/// sequence.
void print_sample_texts(Device& device, const GptConfig& config, const ParameterStore& store,
                        const Tokenizer& tokenizer, const TrainOptions& options, std::int64_t iteration,
                        Log& log);

/// Device memory that this takes while it prints; 0 without prompts.
std::size_t sample_text_bytes(const GptConfig& config, const TrainOptions& options);

}  // namespace megalith
