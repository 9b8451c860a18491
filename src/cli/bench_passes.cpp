#include "cli/bench_passes.h"

#include <algorithm>
#include <vector>

#include "data/dataset.h"
#include "model/gpt_inference.h"
#include "train/train_step.h"
#include "train/training_state.h"

namespace megalith {
namespace {

// Mock data has no end.
constexpr std::int64_t many_samples = 1'000'000'000;

/// With a learning rate that needs no length of a run.
TrainOptions with_schedule(TrainOptions options) {
  options.train_samples = 0;
  options.train_iters = 1;
  options.lr = 1e-4;
  options.lr_decay_style = "constant";
  options.lr_decay_iters = 1;
  options.lr_warmup_iters = 0;
  options.lr_warmup_fraction = 0;
  return options;
}

KernelLimit arithmetic_limit(double flops, const Yardsticks& yardsticks) {
  return limit_of({.shape = {}, .flops = flops}, yardsticks);
}

class TrainingPass : public BenchPass {
 public:
  TrainingPass(Device& device, const TrainOptions& options, const GptConfig& config, bool evaluates, Log& log)
      : config_(config),
        samples_(options.micro_batch_size),
        evaluates_(evaluates),
        rules_{.documents = {}, .sequence = config.sequence, .micro_batch = samples_, .per_token_loss = true},
        state_(device, with_schedule(options), config) {
    DatasetOptions data;
    data.seq_length = config.sequence;
    data.vocab_size = config.vocabulary;
    data.mock_data = true;
    data.train_samples = many_samples;
    source_ = build_datasets(data, log).train;
    state_.store.initialize(config.seed);
  }

  void run() override {
    if (evaluates_) {
      evaluate_loss(state_, *source_, state_.consumed_samples, 1, samples_, rules_, [] { return false; });
    } else {
      train_step(state_, *source_, samples_, rules_);
    }
    state_.consumed_samples += samples_;
  }

  KernelLimit limit(const Yardsticks& yardsticks) const override {
    return arithmetic_limit(training_flops(config_, samples_) / (evaluates_ ? 3.0 : 1.0), yardsticks);
  }

 private:
  GptConfig config_;
  std::int64_t samples_;
  bool evaluates_;
  StepRules rules_;
  TrainingState state_;
  std::unique_ptr<SampleSource> source_;
};

/// A model for inference, and prompts that leave room for some tokens.
class InferencePass : public BenchPass {
 public:
  InferencePass(Device& device, const GptConfig& config, std::int64_t sequences, bool generates)
      : config_(config),
        sequences_(sequences),
        generates_(generates),
        length_(std::max<std::int64_t>(1, config.sequence - (generates ? new_tokens : 0))),
        store_(device, build_gpt_parameter_table(config), /*with_gradients=*/false),
        inference_(device, config, store_, {sequences, config.max_positions, config.sequence}) {
    store_.initialize(config.seed);
    store_.refresh_compute_copies();
    if (generates) inference_.step(tokens(length_));
  }

  void run() override {
    if (!generates_) {
      inference_.reset();
      inference_.step(tokens(length_));
      return;
    }
    for (std::int64_t b = 0; b < sequences_; ++b) inference_.truncate(b, length_);
    for (std::int64_t i = length_; i < config_.sequence; ++i) inference_.step(tokens(1));
  }

  KernelLimit limit(const Yardsticks& yardsticks) const override {
    const auto sequences = static_cast<double>(sequences_);
    const auto length = static_cast<double>(generates_ ? config_.sequence - length_ : length_);
    const double logits = 2.0 * static_cast<double>(config_.hidden) * static_cast<double>(config_.vocabulary);
    // Only the last token of a prompt has logits.
    const double flops = sequences * (forward_flops_per_token(config_) * length -
                                      (generates_ ? 0.0 : logits * (length - 1.0)));
    const KernelLimit arithmetic = arithmetic_limit(flops, yardsticks);
    const std::int64_t weights = store_.table().parameter_count() - config_.max_positions * config_.hidden;
    const double bytes = static_cast<double>(weights) * static_cast<double>(size_of(config_.compute)) *
                         (generates_ ? length : 1.0);
    const double rate = yardsticks.memory().read;
    const KernelLimit memory{KernelLimit::By::memory, rate > 0.0 ? bytes / rate : 0.0};
    return arithmetic.seconds > memory.seconds ? arithmetic : memory;
  }

 private:
  static constexpr std::int64_t new_tokens = 16;

  std::vector<std::vector<std::int32_t>> tokens(std::int64_t count) const {
    std::vector<std::int32_t> list(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * 7919 % config_.vocabulary);
    }
    return std::vector<std::vector<std::int32_t>>(static_cast<std::size_t>(sequences_), list);
  }

  GptConfig config_;
  std::int64_t sequences_;
  bool generates_;
  std::int64_t length_;
  ParameterStore store_;
  GptInference inference_;
};

}  // namespace

std::unique_ptr<BenchPass> make_bench_pass(const std::string& name, Device& device,
                                           const TrainOptions& options, const GptConfig& config, Log& log) {
  if (name == "training" || name == "evaluation") {
    return std::make_unique<TrainingPass>(device, options, config, name == "evaluation", log);
  }
  return std::make_unique<InferencePass>(device, config, options.micro_batch_size, name == "generation");
}

}  // namespace megalith
