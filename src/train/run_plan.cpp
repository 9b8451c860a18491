#include "train/run_plan.h"

#include "model/gpt_memory.h"
#include "model/gpt_parameters.h"
#include "optim/optimizer.h"
#include "train/batch_reader.h"
#include "train/console_line.h"
#include "train/run_saver.h"
#include "train/sample_text.h"

namespace megalith {
namespace {

std::string mebibytes(std::size_t bytes) {
  return format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20);
}

struct PlannedMemory {
  GptMemory model;
  std::size_t optimizer = 0;
  std::size_t batch = 0;
  std::size_t samples = 0;  ///< of --sample-prompt
  std::size_t saving = 0;   ///< of --async-save, host memory
  std::size_t total() const { return model.total() + optimizer + batch + samples; }
};

PlannedMemory plan_memory(const TrainOptions& options, const GptConfig& config) {
  const ParameterTable table = build_gpt_parameter_table(config);
  PlannedMemory memory;
  const std::int64_t words = most_words(config, options.global_batch_size);
  memory.model =
      gpt_memory(config, table, StageRange::whole(config), {options.micro_batch_size, 1, true, false}, words);
  memory.optimizer = optimizer_bytes(table, optimizer_config(options));
  memory.batch =
      DeviceBatch::planned_bytes(config, options.micro_batch_size, options.reset_attention_mask, words);
  memory.samples = sample_text_bytes(config, options);
  memory.saving = save_copy_bytes(options, memory.model.master_weights, memory.optimizer);
  return memory;
}

}  // namespace

std::size_t planned_device_bytes(const TrainOptions& options, const GptConfig& config) {
  return plan_memory(options, config).total();
}

std::size_t planned_host_bytes(const TrainOptions& options, const GptConfig& config) {
  return plan_memory(options, config).saving;
}

void print_run_plan(const TrainOptions& options, const GptConfig& config,
                    const NumMicrobatchesCalculator& calculator, std::int64_t train_samples, Log& log) {
  const ParameterTable table = build_gpt_parameter_table(config);
  const PlannedMemory memory = plan_memory(options, config);
  log.line(format(
      "model: {} parameters, {} layers, hidden {}, {} heads, sequence {}, vocabulary {} (stored as {} rows)",
      count_text(static_cast<double>(table.parameter_count())), config.layers, config.hidden, config.heads,
      config.sequence, config.vocabulary, config.padded_vocabulary));
  log.line(format("arithmetic: compute in {}, master weights, gradients and moments in {}; loss: {}",
                  name_of(config.compute), name_of(config.master()),
                  options.calculate_per_token_loss
                      ? "sum over the unmasked tokens of the global batch / their count"
                      : "mean of microbatch means (as Megatron-LM by default)"));
  log.line(format(
      "batch: {} samples a step in microbatches of {}{}; {} iterations, {} samples, {} tokens",
      calculator.global_batch_size(train_samples), options.micro_batch_size,
      options.rampup_batch_size.empty() ? "" : format(", ramped up from {}", calculator.global_batch_size(0)),
      options.train_iters, train_samples,
      count_text(static_cast<double>(train_samples * options.seq_length))));
  log.line(
      format("model FLOPs: {:.3g} a step (6 per parameter and token, causal attention counted half, true "
             "vocabulary, no "
             "recomputation)",
             training_flops(config, options.global_batch_size)));
  log.line(format(
      "memory: weights {}, compute copies {}, gradients {}, optimizer {}, activations {}, batch {}{}: "
      "{} in all{}",
      mebibytes(memory.model.master_weights), mebibytes(memory.model.compute_copies),
      mebibytes(memory.model.gradients), mebibytes(memory.optimizer), mebibytes(memory.model.activations),
      mebibytes(memory.batch), memory.samples > 0 ? ", sample texts " + mebibytes(memory.samples) : "",
      mebibytes(memory.total()),
      memory.saving > 0 ? ", and for --async-save at most " + mebibytes(memory.saving) : ""));
}

}  // namespace megalith
