// megalith inspect: the parameter table of a checkpoint or a config, its memory and FLOPs.
#include <algorithm>
#include <cstdio>

#include "checkpoint/checkpoint.h"
#include "cli/command.h"
#include "core/error.h"
#include "core/train_schema.h"
#include "data/tokenizer.h"
#include "model/gpt_config_json.h"
#include "model/gpt_memory.h"
#include "model/gpt_parameters.h"
#include "optim/optimizer.h"
#include "train/console_line.h"

namespace megalith {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string bytes_text(double bytes) {
  if (bytes >= 0x1p30) return format("{:.2f} GiB", bytes / 0x1p30);
  if (bytes >= 0x1p20) return format("{:.2f} MiB", bytes / 0x1p20);
  return format("{:.1f} KiB", bytes / 0x1p10);
}

std::string rule_text(const InitRule& rule) {
  return rule.kind == InitRule::Kind::constant ? format("constant {:g}", rule.value)
                                               : format("normal std {:.4g}", rule.deviation);
}

// A field of a checkpoint's metadata as text; "?" where it is absent.
std::string text_of(const nlohmann::json& object, const char* name) {
  const nlohmann::json value = object.value(name, nlohmann::json());
  if (value.is_null()) return "?";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_table(const ParameterTable& table) {
  std::size_t widest = 0;
  for (const Parameter& row : table.rows()) widest = std::max(widest, row.name.size());
  print(format("{:<{}}  {:>16}  {:>12}  {:>10}  {:<18} {}\n", "parameter", widest, "shape", "elements",
               "dtype", "initialised", "weight decay"));
  for (const Parameter& row : table.rows()) {
    const bool is_shared =
        row.tie_group >= 0 &&
        &row != &*std::find_if(table.rows().begin(), table.rows().end(),
                               [&](const Parameter& other) { return other.tie_group == row.tie_group; });
    print(format("{:<{}}  {:>16}  {:>12}  {:>10}  {:<18} {}\n", row.name, widest,
                 row.logical_shape.to_string(), row.logical_shape.count(), name_of(row.dtype),
                 is_shared ? "shared" : rule_text(row.init), row.weight_decay_mult > 0 ? "yes" : "no"));
  }
}

class InspectCommand : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override {
    return "Show the parameter table, memory and FLOPs of a checkpoint or config";
  }

  void declare(Schema& schema) override {
    schema.positional(paths_, "[RUN]",
                      "Run folder or iter_N folder; without one, the model that the settings describe", 0, 1);
    schema.positional_replaces_settings();
    declare_train_settings(schema, options_, SettingsUse::describe);
    schema.epilogue(
        "Examples:\n  megalith inspect runs/bible\n  megalith inspect --config configs/gpt2-124m.toml\n");
  }

  int run(Schema& schema, Log& messages) override {
    if (paths_.empty()) {
      // The settings' rules make sure that one of the two is known.
      const std::int64_t vocabulary = options_.vocab_size > 0
                                          ? options_.vocab_size
                                          : load_tokenizer({options_.tokenizer_type, options_.vocab_file,
                                                            options_.merge_file, options_.tokenizer_model, 0})
                                                ->vocab_size();
      show_model(gpt_config(options_, vocabulary));
      return 0;
    }
    refuse_settings(schema);
    const CheckpointReader reader(paths_.front(), options_.ckpt_step);
    show_checkpoint(reader);
    const nlohmann::json model = reader.metadata().value("model", nlohmann::json());
    if (model.is_null()) {
      messages.warn(
          "the checkpoint's metadata describes no model; its tensors are listed as they are stored");
      return 0;
    }
    show_model(gpt_config_from_json(model, reader.folder().string()));
    return 0;
  }

 private:
  /// A checkpoint says itself what it holds; settings beside it would be left out silently.
  void refuse_settings(const Schema& schema) const {
    std::string given;
    for (const auto& key : schema.settings()) {
      if (key->name() == "ckpt_step" || key->name() == "micro_batch_size" || !schema.given(key->name()))
        continue;
      given += format("{}{}", given.empty() ? "" : ", ", key->name());
    }
    if (given.empty()) return;
    fail(ErrorKind::usage, "inspect",
         "{} describes its model itself; leave {} away, or the folder to inspect what the settings describe",
         paths_.front(), given);
  }

  static void show_checkpoint(const CheckpointReader& reader) {
    print(format("checkpoint {}: iteration {}\n", reader.folder().string(), reader.iteration()));
    for (const char* name : {"consumed_train_samples", "program", "device"}) {
      const nlohmann::json value = reader.metadata().value(name, nlohmann::json());
      if (value.is_null()) continue;
      print(format("  {}: {}\n", name, text_of(reader.metadata(), name)));
    }
    const nlohmann::json tokenizer = reader.metadata().value("tokenizer", nlohmann::json());
    if (tokenizer.is_object()) {
      print(format("  tokenizer: {}, {} pieces, fingerprint {}\n", text_of(tokenizer, "type"),
                   text_of(tokenizer, "vocab_size"), text_of(tokenizer, "fingerprint")));
    }
    double weights = 0;
    double moments = 0;
    for (const StoredTensor& tensor : reader.tensors()) {
      const double bytes =
          static_cast<double>(tensor.shape.count()) * static_cast<double>(size_of(tensor.dtype));
      (tensor.name.starts_with("optimizer.") ? moments : weights) += bytes;
    }
    print(format("  stored: {} tensors, weights {}, optimizer state {}\n\n", reader.tensors().size(),
                 bytes_text(weights), bytes_text(moments)));
  }

  void show_model(const GptConfig& config) const {
    const ParameterTable table = build_gpt_parameter_table(config);
    print_table(table);
    const std::int64_t micro_batch = std::max<std::int64_t>(1, options_.micro_batch_size);
    const GptMemory memory =
        gpt_memory(config, table, StageRange::whole(config), {micro_batch, 1, true, false});
    const std::size_t optimizer = optimizer_bytes(table, OptimizerConfig{});
    print(format("\n{} parameters ({})\n", table.parameter_count(),
                 count_text(static_cast<double>(table.parameter_count()))));
    print(
        format("memory in training ({}, AdamW, microbatch {}): weights {}, compute copies {}, gradients {}, "
               "optimizer {}, activations "
               "{}; {} in all\n",
               name_of(config.compute), micro_batch, bytes_text(static_cast<double>(memory.master_weights)),
               bytes_text(static_cast<double>(memory.compute_copies)),
               bytes_text(static_cast<double>(memory.gradients)), bytes_text(static_cast<double>(optimizer)),
               bytes_text(static_cast<double>(memory.activations)),
               bytes_text(static_cast<double>(memory.total() + optimizer))));
    print(
        format("model FLOPs per token at sequence {}: {:.4g} training, {:.4g} forward (causal attention "
               "counted half, true vocabulary)\n",
               config.sequence, training_flops(config, 1) / static_cast<double>(config.sequence),
               forward_flops_per_token(config)));
  }

  std::vector<std::string> paths_;
  TrainOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_inspect_command() {
  return std::make_unique<InspectCommand>();
}

}  // namespace megalith
