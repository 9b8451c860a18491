// A run's state as a checkpoint and back.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/log.h"
#include "core/options.h"
#include "train/training_state.h"

namespace megalith {

/// What identifies a run beside its tensors.
struct RunIdentity {
  nlohmann::json model;      ///< gpt_config_json
  nlohmann::json tokenizer;  ///< store_tokenizer, null without one
  std::string device;        ///< Device::description
  std::uint64_t seed = 0;
  std::string options;  ///< effective config as TOML
};

/// What a save of this run writes now: the tensors are views of its memory, the metadata a copy.
struct TrainingCheckpoint {
  CheckpointSaveOptions options;
  nlohmann::json metadata;
  std::vector<LogicalTensor> tensors;
};
TrainingCheckpoint training_checkpoint(const std::filesystem::path& root, const TrainOptions& options,
                                       const RunIdentity& identity, const TrainingState& state);

/// Loads `options.load` (iteration `ckpt_step` or the newest). Without finetune: weights, optimizer,
/// schedule, data position and the seed's check; with it weights only. Returns false, with a warning, where
/// the folder holds no checkpoint and that is allowed. Raises Error (input) where the checkpoint does not fit
/// the run: another model, tokenizer, seed, optimizer or schedule; each message says which flag accepts the
/// difference.
bool load_training(Device& device, const TrainOptions& options, const RunIdentity& identity,
                   TrainingState& state, const Tokenizer* tokenizer, Log& log);

/// For a dry run: raises the errors that load_training would raise over a missing checkpoint, another model
/// or another tokenizer, without taking device memory.
void check_loadable(const TrainOptions& options, const RunIdentity& identity, const Tokenizer* tokenizer);

}  // namespace megalith
