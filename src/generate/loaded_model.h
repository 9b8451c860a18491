// A trained model opened from a checkpoint for evaluation and generation.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"
#include "device/device.h"
#include "model/gpt_config.h"
#include "model/parameter_store.h"

namespace megalith {

struct LoadedModel {
  GptConfig config;
  std::unique_ptr<ParameterStore> store;  ///< weights only
  std::unique_ptr<Tokenizer> tokenizer;   ///< null where the checkpoint names none and none was given
  std::filesystem::path folder;           ///< of the checkpoint
  std::int64_t iteration = 0;
};

/// `path`: a run folder or one of its iter_N folders. `tokenizer` overrides the stored one; one that behaves
/// differently is refused (Error, input). `compute`: type of activations and of the weights that kernels
/// read.
LoadedModel load_model(Device& device, const std::filesystem::path& path, std::int64_t iteration,
                       DType compute, const TokenizerOptions& tokenizer);

/// Fills every weight of the store from the checkpoint and refreshes the compute copies.
void load_weights(const CheckpointReader& reader, ParameterStore& store);

/// Raises Error (input) where the checkpoint's tokenizer is known and not this one.
void check_tokenizer(const CheckpointReader& reader, const Tokenizer& tokenizer);

}  // namespace megalith
