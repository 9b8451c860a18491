#include "train/train_checkpoint.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/version_data.h"
#include "generate/loaded_model.h"
#include "model/gpt_config_json.h"

namespace megalith {
namespace {

using Json = nlohmann::json;

std::int64_t whole_number(const CheckpointReader& reader, const char* name) {
  const Json value = reader.metadata().value(name, Json());
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
    fail(ErrorKind::input, reader.folder().string(), "its metadata lacks a whole number \"{}\"", name);
  }
  return value.get<std::int64_t>();
}

Json part(const CheckpointReader& reader, const char* name) {
  return reader.metadata().value(name, Json());
}

// Raises Error (input) for something that is there and no folder.
bool holds_no_checkpoint(const std::string& load) {
  std::error_code code;
  const std::filesystem::path path = load;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  if (status.type() == std::filesystem::file_type::not_found) return true;
  if (!std::filesystem::is_directory(status)) {
    fail(ErrorKind::input, load, "is no folder{}; --load takes a run folder or one of its iter_N folders",
         status.type() == std::filesystem::file_type::none ? format(" ({})", code.message()) : "");
  }
  return committed_iterations(path).empty() && !std::filesystem::exists(path / checkpoint_index, code);
}

void check_model(const CheckpointReader& reader, const RunIdentity& identity) {
  std::vector<std::string> differences = gpt_config_differences(part(reader, "model"), identity.model);
  // Positions are learned: their number matters, the length of a training sample does not.
  std::erase_if(differences, [](const std::string& text) { return text.starts_with("seq_length:"); });
  if (differences.empty()) return;
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  fail(ErrorKind::input, reader.folder().string(),
       "holds another model than this run's; give the settings it was saved with:{}", list);
}

void check_seed(const CheckpointReader& reader, const TrainOptions& options, const RunIdentity& identity) {
  const Json random = part(reader, "rng");
  if (options.no_load_rng || !random.is_object() || !random.value("seed", Json()).is_number_integer()) return;
  const auto stored = random["seed"].get<std::uint64_t>();
  if (stored == identity.seed) return;
  fail(ErrorKind::input, reader.folder().string(),
       "was trained with --seed {}, this run has {}: data order and dropout would change in the middle of a "
       "run. Give --seed {}, "
       "or --no-load-rng to go on with the new seed",
       stored, identity.seed, stored);
}

void warn_of_other_machine(const CheckpointReader& reader, const RunIdentity& identity, Log& log) {
  const Json device = part(reader, "device");
  if (device.is_string() && device.get<std::string>() != identity.device) {
    log.warn(
        format("the checkpoint was written on \"{}\", this run uses \"{}\": results agree to rounding, not "
               "to the last bit",
               device.get<std::string>(), identity.device));
  }
}

// What the number of consumed samples counts.
Json data_of(const TrainOptions& options) {
  return {{"seq_length", options.seq_length},
          {"split", options.split},
          {"data_path", options.data_path},
          {"train_data_path", options.train_data_path}};
}

void warn_of_other_data(const CheckpointReader& reader, const TrainOptions& options, Log& log) {
  const Json stored = part(reader, "data");
  if (!stored.is_object()) return;
  const Json wanted = data_of(options);
  std::string differences;
  for (const auto& [key, value] : wanted.items()) {
    const Json found = stored.value(key, Json());
    if (found == value) continue;
    differences +=
        format("{}{} was {}, is {}", differences.empty() ? "" : "; ", key, found.dump(), value.dump());
  }
  if (differences.empty()) return;
  log.warn(format(
      "the data are not those the checkpoint was trained on: {}. The run goes on at the same sample number, "
      "which names other text now",
      differences));
}

void load_optimizer(const CheckpointReader& reader, Device& device, const TrainOptions& options,
                    TrainingState& state) {
  const Json optimizer = part(reader, "optimizer");
  if (!optimizer.is_object() || !optimizer.value("step_count", Json()).is_number_integer()) {
    fail(ErrorKind::input, reader.folder().string(),
         "holds no optimizer state (it was saved with --no-save-optim); give --no-load-optim to start from "
         "its weights");
  }
  if (optimizer.value("type", Json()) != options.optimizer) {
    fail(ErrorKind::input, reader.folder().string(),
         "was trained with --optimizer {}, this run has {}; give the same, or "
         "--no-load-optim",
         optimizer.value("type", Json()).dump(), options.optimizer);
  }
  reader.read(device, state.optimizer.state());
  state.optimizer.set_step_count(optimizer["step_count"].get<std::int64_t>());
  state.scheduler.load(part(reader, "opt_param_scheduler"), options.override_opt_param_scheduler,
                       options.use_checkpoint_opt_param_scheduler);
}

}  // namespace

TrainingCheckpoint training_checkpoint(const std::filesystem::path& root, const TrainOptions& options,
                                       const RunIdentity& identity, const TrainingState& state) {
  Json metadata = {
      {"model", identity.model},
      {"tokenizer", identity.tokenizer},
      {"device", identity.device},
      {"program", format("megalith {} ({}, {})", version_number, version_commit, version_compiler)},
      {"options", identity.options},
      {"data", data_of(options)},
      {"consumed_train_samples", state.consumed_samples},
      {"interval", state.interval.to_json()}};
  std::vector<LogicalTensor> tensors = state.store.weights();
  if (!options.no_save_optim) {
    std::vector<LogicalTensor> moments = state.optimizer.state();
    std::move(moments.begin(), moments.end(), std::back_inserter(tensors));
    metadata["optimizer"] = {{"type", options.optimizer}, {"step_count", state.optimizer.step_count()}};
    metadata["opt_param_scheduler"] = state.scheduler.state();
  }
  if (!options.no_save_rng) metadata["rng"] = {{"seed", identity.seed}};
  return {{root, state.iteration, options.save_retain, options.save_retain_interval},
          std::move(metadata),
          std::move(tensors)};
}

void check_loadable(const TrainOptions& options, const RunIdentity& identity, const Tokenizer* tokenizer) {
  if (holds_no_checkpoint(options.load) && options.ckpt_step == 0 && !options.exit_on_missing_checkpoint)
    return;
  const CheckpointReader reader(options.load, options.ckpt_step);
  check_model(reader, identity);
  if (tokenizer != nullptr) check_tokenizer(reader, *tokenizer);
}

bool load_training(Device& device, const TrainOptions& options, const RunIdentity& identity,
                   TrainingState& state, const Tokenizer* tokenizer, Log& log) {
  const bool is_missing = holds_no_checkpoint(options.load);
  if (is_missing && options.ckpt_step == 0) {
    if (options.exit_on_missing_checkpoint) {
      fail(ErrorKind::input, options.load, "holds no checkpoint, and --exit-on-missing-checkpoint is set");
    }
    log.warn(format("{} holds no checkpoint: starting from random weights", options.load));
    return false;
  }
  // A run reads its checkpoint once.
  const CheckpointReader reader(options.load, options.ckpt_step, PageCache::bypass);
  check_model(reader, identity);
  if (tokenizer != nullptr) check_tokenizer(reader, *tokenizer);
  load_weights(reader, state.store);
  if (options.finetune) {
    log.line(format("loaded the weights of {}; training starts at iteration 0 (--finetune)",
                    reader.folder().string()));
    return true;
  }
  check_seed(reader, options, identity);
  warn_of_other_machine(reader, identity, log);
  warn_of_other_data(reader, options, log);
  state.iteration = reader.iteration();
  state.consumed_samples = whole_number(reader, "consumed_train_samples");
  state.interval = IntervalSums::from_json(part(reader, "interval"));
  if (options.skip_train) {
    log.line(format("evaluating {}: iteration {}", reader.folder().string(), state.iteration));
    return true;
  }
  if (options.no_load_optim) {
    state.scheduler.step(state.consumed_samples);
  } else {
    load_optimizer(reader, device, options, state);
  }
  log.line(format("resumed from {}: iteration {}, {} samples consumed", reader.folder().string(),
                  state.iteration, state.consumed_samples));
  return true;
}

}  // namespace megalith
