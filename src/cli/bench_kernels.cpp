// megalith bench kernels: every kernel that a pass through a model calls, with its time and the least time it
// could take.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/command.h"
#include "core/error.h"
#include "core/train_schema.h"
#include "data/dataset.h"
#include "device/kernel_profile.h"
#include "device/parallel_for.h"
#include "model/gpt_inference.h"
#include "train/train_step.h"
#include "train/training_state.h"

namespace megalith {
namespace {

/// Work to be timed, on a device that may be observed.
class Pass {
 public:
  Pass() = default;
  virtual ~Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  virtual void run() = 0;
};

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

/// Training steps, or evaluation, of one microbatch of random tokens.
class TrainingPass : public Pass {
 public:
  TrainingPass(Device& device, const TrainOptions& options, const GptConfig& config, std::int64_t passes,
               Log& log)
      : samples_(options.micro_batch_size),
        evaluates_(false),
        rules_{.documents = {}, .sequence = config.sequence, .micro_batch = samples_, .per_token_loss = true},
        state_(device, with_schedule(options), config) {
    DatasetOptions data;
    data.seq_length = config.sequence;
    data.vocab_size = config.vocabulary;
    data.mock_data = true;
    data.train_samples = samples_ * passes;
    source_ = build_datasets(data, log).train;
    state_.store.initialize(config.seed);
  }
  void evaluate_only() { evaluates_ = true; }

  void run() override {
    if (evaluates_) {
      evaluate_loss(state_, *source_, state_.consumed_samples, 1, samples_, rules_, [] { return false; });
    } else {
      train_step(state_, *source_, samples_, rules_);
    }
    state_.consumed_samples += samples_;
  }

 private:
  std::int64_t samples_;
  bool evaluates_;
  StepRules rules_;
  TrainingState state_;
  std::unique_ptr<SampleSource> source_;
};

/// A prompt that fills the sequence, and some tokens after it.
class GenerationPass : public Pass {
 public:
  GenerationPass(Device& device, const GptConfig& config, std::int64_t sequences)
      : sequences_(static_cast<std::size_t>(sequences)),
        prompt_(std::max<std::int64_t>(1, config.sequence - new_tokens)),
        store_(device, build_gpt_parameter_table(config), /*with_gradients=*/false),
        inference_(device, config, store_,
                   {sequences, config.max_positions, std::min<std::int64_t>(prompt_, 128)}) {
    store_.initialize(config.seed);
    store_.refresh_compute_copies();
    last_ = std::min(config.max_positions, config.sequence) - prompt_;
  }

  void run() override {
    inference_.reset();
    std::vector<std::vector<std::int32_t>> tokens(
        sequences_, std::vector<std::int32_t>(static_cast<std::size_t>(prompt_), 1));
    inference_.step(tokens);
    for (std::vector<std::int32_t>& list : tokens) list.resize(1);
    for (std::int64_t i = 0; i < last_; ++i) inference_.step(tokens);
  }

 private:
  static constexpr std::int64_t new_tokens = 16;

  std::size_t sequences_;
  std::int64_t prompt_;
  std::int64_t last_ = 0;
  ParameterStore store_;
  GptInference inference_;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class BenchKernelsCommand : public Command {
 public:
  std::string name() const override { return "bench kernels"; }
  std::string summary() const override {
    return "Time every kernel of a step against what the machine can do";
  }

  void declare(Schema& schema) override {
    schema.section("bench", "What to time and how to show it");
    schema.add("pass", &pass_, std::string("training"), "What runs, on random tokens")
        .one_of({"training", "evaluation", "generation"});
    schema.add("rounds", &rounds_, std::int64_t{3}, "Timed passes, after one that is not")
        .at_least(1)
        .at_most(10000);
    schema
        .add("filter", &filter_, std::string(),
             "Show only kernels whose \"NAME TYPE SHAPE\" this regular expression finds")
        .metavar("REGEX");
    schema.add("json", &json_, false, "One JSON object instead of the table");
    declare_train_settings(schema, options_, SettingsUse::describe);
    for (const auto& [key, value] :
         {std::pair("num_layers", 12), std::pair("hidden_size", 768), std::pair("num_attention_heads", 12),
          std::pair("seq_length", 256), std::pair("vocab_size", 50257), std::pair("micro_batch_size", 4)}) {
      schema.setting(key).default_to(std::int64_t{value});
    }
    schema.setting("hidden_dropout").default_to(0.0);
    schema.setting("attention_dropout").default_to(0.0);
    schema.epilogue(
        "Without settings the model is GPT-2 124M, 4 sequences of 256 tokens. The reference device takes "
        "hours for "
        "that.\n"
        "Examples:\n"
        "  megalith bench kernels --filter matmul\n"
        "  megalith bench kernels --config configs/gpt2-355m.toml --micro-batch-size 1 --bf16\n"
        "  megalith bench kernels --pass generation --micro-batch-size 1 --seq-length 1024\n");
  }

  int run(Schema& /*schema*/, Log& messages) override {
    const std::regex filter = read_filter();
    const GptConfig config = gpt_config(options_, options_.vocab_size);
    const std::unique_ptr<Device> inner =
        make_device({.name = options_.device, .threads = static_cast<int>(options_.num_threads)});
    if (!inner->supports(config.compute)) {
      fail(ErrorKind::usage, "device", "the {} device does not compute in {}", inner->name(),
           name_of(config.compute));
    }
    messages.line(format("device: {}", inner->description()));
    const bool one_thread = inner->name() == "reference";
    const int threads = one_thread                 ? 1
                        : options_.num_threads > 0 ? static_cast<int>(options_.num_threads)
                                                   : usable_processors();
    const Yardsticks yardsticks = measure_yardsticks(threads);

    ObservedDevice device(*inner);
    const std::unique_ptr<Pass> pass = make_pass(device, config, messages);
    pass->run();
    KernelProfile profile;
    device.observe([&](const KernelCall& call) {
      const std::string text = format("{} {} {}", call.kernel, name_of(call.dtype), call.work.shape);
      if (std::regex_search(text, filter)) profile.add(call);
    });
    const double begin = now_seconds();
    for (std::int64_t round = 0; round < rounds_; ++round) pass->run();
    const double seconds = (now_seconds() - begin) / static_cast<double>(rounds_);
    if (json_) {
      print_json(*inner, yardsticks, profile, seconds);
    } else {
      print_table(yardsticks, profile, seconds);
    }
    return 0;
  }

 private:
  std::regex read_filter() const {
    try {
      return std::regex(filter_);
    } catch (const std::regex_error& error) {
      fail(ErrorKind::usage, "filter", "\"{}\" is no regular expression ({})", filter_, error.what());
    }
  }

  std::unique_ptr<Pass> make_pass(Device& device, const GptConfig& config, Log& messages) {
    if (pass_ == "generation")
      return std::make_unique<GenerationPass>(device, config, options_.micro_batch_size);
    auto pass = std::make_unique<TrainingPass>(device, options_, config, rounds_ + 1, messages);
    if (pass_ == "evaluation") pass->evaluate_only();
    return pass;
  }

  std::string model_text() const {
    return format("{} layers, hidden {}, {} heads, vocabulary {}, {} sequences of {} tokens, {}",
                  options_.num_layers, options_.hidden_size, options_.num_attention_heads,
                  options_.vocab_size, options_.micro_batch_size, options_.seq_length,
                  options_.bf16   ? "bfloat16"
                  : options_.fp64 ? "float64"
                                  : "float32");
  }

  void print_table(const Yardsticks& yardsticks, const KernelProfile& profile, double seconds) const {
    std::string text = format(
        "yardsticks, {} threads: float32 multiply-adds {:.1f} GFLOP/s; memory: copying {:.1f} GB/s, changing "
        "{:.1f} GB/s, reading "
        "{:.1f}"
        " GB/s\n{}: {}\n\n",
        yardsticks.threads, yardsticks.multiply_add * 1e-9, yardsticks.memory().copy * 1e-9,
        yardsticks.memory().update * 1e-9, yardsticks.memory().read * 1e-9, pass_, model_text());
    text += format("{:<22} {:<9} {:<32} {:>6} {:>10} {:>10} {:<7} {:>8} {:>7}\n", "kernel", "type", "shape",
                   "calls", "median us", "limit us", "by", "of limit", "of pass");
    for (const KernelRow& row : profile.rows()) {
      const KernelLimit limit = limit_of(row.work, yardsticks);
      text += format("{:<22} {:<9} {:<32} {:>6} {:>10.1f} {:>10.1f} {:<7} {:>7.1f}% {:>6.1f}%\n", row.kernel,
                     name_of(row.dtype), row.work.shape, row.calls / rounds_, row.median * 1e6,
                     limit.seconds * 1e6, by_text(limit), 100.0 * limit.seconds / row.median,
                     100.0 * row.seconds / (seconds * static_cast<double>(rounds_)));
    }
    const double kernels = profile.seconds() / static_cast<double>(rounds_);
    text += format("\nkernels {:.1f} ms of a pass of {:.1f} ms\n", kernels * 1e3, seconds * 1e3);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  void print_json(const Device& device, const Yardsticks& yardsticks, const KernelProfile& profile,
                  double seconds) const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const KernelRow& row : profile.rows()) {
      const KernelLimit limit = limit_of(row.work, yardsticks);
      rows.push_back({{"kernel", row.kernel},
                      {"dtype", name_of(row.dtype)},
                      {"shape", row.work.shape},
                      {"calls", row.calls / rounds_},
                      {"median_seconds", row.median},
                      {"fastest_seconds", row.fastest},
                      {"flops", row.work.flops},
                      {"bytes", row.work.bytes()},
                      {"limit_seconds", limit.seconds},
                      {"limit", by_text(limit)},
                      {"percent", 100.0 * limit.seconds / row.median},
                      {"share", row.seconds / (seconds * static_cast<double>(rounds_))}});
    }
    nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
    for (const Bandwidth& block : yardsticks.bandwidths) {
      blocks.push_back(
          {{"bytes", block.bytes}, {"copy", block.copy}, {"update", block.update}, {"read", block.read}});
    }
    const nlohmann::ordered_json document = {{"device", device.description()},
                                             {"pass", pass_},
                                             {"model", model_text()},
                                             {"threads", yardsticks.threads},
                                             {"multiply_add_flops", yardsticks.multiply_add},
                                             {"bandwidths", blocks},
                                             {"pass_seconds", seconds},
                                             {"kernels", rows}};
    const std::string text = document.dump(1) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  static const char* by_text(const KernelLimit& limit) {
    return limit.by == KernelLimit::By::arithmetic ? "flops" : "bytes";
  }

  TrainOptions options_;
  std::string pass_;
  std::string filter_;
  std::int64_t rounds_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_kernels_command() {
  return std::make_unique<BenchKernelsCommand>();
}

}  // namespace megalith
