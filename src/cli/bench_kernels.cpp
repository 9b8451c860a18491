// megalith bench kernels: every kernel that a pass through a model calls, with its time and the least time it
// could take, and the pass itself.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/bench_passes.h"
#include "cli/command.h"
#include "core/error.h"
#include "core/train_schema.h"
#include "device/kernel_profile.h"
#include "device/parallel_for.h"
#include "device/tracing_device.h"

namespace megalith {
namespace {

/// Seconds of `work`, run `rounds` times; the median.
double median_seconds(std::int64_t rounds, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// What was measured, for both ways of showing it.
struct Measurement {
  std::string device;
  Yardsticks yardsticks;
  KernelLimit pass_limit;
  double pass_seconds = 0.0;
  double traced_seconds = 0.0;
  std::vector<KernelRow> rows;
};

const char* by_text(const KernelLimit& limit) {
  return limit.by == KernelLimit::By::arithmetic ? "flops" : "bytes";
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
        .one_of({"training", "evaluation", "prompt", "generation"});
    schema
        .add("rounds", &rounds_, std::int64_t{2},
             "Passes timed as a whole, then as many kernel by kernel, after one that is not timed")
        .at_least(1)
        .at_most(10000);
    schema
        .add("filter", &filter_, std::string(),
             "Show only kernels whose \"KERNEL TYPE SHAPE\" this regular expression finds")
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
        "Without settings the model is GPT-2 124M, 4 sequences of 256 tokens; for the reference device "
        "choose a "
        "small one.\n"
        "Examples:\n"
        "  megalith bench kernels --filter matmul\n"
        "  megalith bench kernels --config configs/gpt2-355m.toml --micro-batch-size 1 --bf16\n"
        "  megalith bench kernels --pass generation --micro-batch-size 1 --seq-length 1024\n");
  }

  int run(Schema& /*schema*/, Log& messages) override {
    const std::regex filter = read_filter();
    const GptConfig config = gpt_config(options_, options_.vocab_size);
    std::unique_ptr<Device> inner =
        make_device({.name = options_.device, .threads = static_cast<int>(options_.num_threads)});
    if (!inner->supports(config.compute)) {
      fail(ErrorKind::usage, "device", "the {} device does not compute in {}", inner->name(),
           name_of(config.compute));
    }
    messages.line(format("device: {}", inner->description()));
    Measurement measured;
    measured.device = inner->description();
    measured.yardsticks = measure_yardsticks(threads_of(*inner));

    Trace trace = make_device_trace();
    const std::unique_ptr<Device> device = make_tracing_device(std::move(inner), trace);
    const std::unique_ptr<BenchPass> pass = make_bench_pass(pass_, *device, options_, config, messages);
    pass->run();
    measured.pass_limit = pass->limit(measured.yardsticks);
    measured.pass_seconds = median_seconds(rounds_, [&] { pass->run(); });
    trace.start();
    measured.traced_seconds = median_seconds(rounds_, [&] { pass->run(); });
    for (KernelRow& row : profile_kernels(trace.spans())) {
      if (std::regex_search(format("{} {}", row.kernel, row.work.shape), filter))
        measured.rows.push_back(std::move(row));
    }
    const std::string text = json_ ? json_text(measured) : table_text(measured);
    std::fwrite(text.data(), 1, text.size(), stdout);
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

  int threads_of(const Device& device) const {
    if (device.name() == "reference") return 1;
    return options_.num_threads > 0 ? static_cast<int>(options_.num_threads) : usable_processors();
  }

  std::string model_text() const {
    return format("{} layers, hidden {}, {} heads, vocabulary {}, {} sequences of {} tokens, {}",
                  options_.num_layers, options_.hidden_size, options_.num_attention_heads,
                  options_.vocab_size, options_.micro_batch_size, options_.seq_length,
                  options_.bf16   ? "bfloat16"
                  : options_.fp64 ? "float64"
                                  : "float32");
  }

  double share_of_pass(const KernelRow& row, const Measurement& measured) const {
    return row.seconds / (measured.traced_seconds * static_cast<double>(rounds_));
  }

  std::string table_text(const Measurement& measured) const {
    const Yardsticks& yardsticks = measured.yardsticks;
    const Bandwidth memory = yardsticks.memory();
    std::string text = format(
        "yardsticks, {} threads: float32 multiply-adds {:.1f} GFLOP/s; memory: copying {:.1f}, changing "
        "{:.1f}, "
        "reading {:.1f} GB/s\n",
        yardsticks.threads, yardsticks.multiply_add * 1e-9, memory.copy * 1e-9, memory.update * 1e-9,
        memory.read * 1e-9);
    text += format("{}: {}\n\n", pass_, model_text());
    text += format("{:<22} {:<38} {:>6} {:>10} {:>10} {:<5} {:>8} {:>7}\n", "kernel", "type and shape",
                   "calls", "median us", "limit us", "by", "of limit", "of pass");
    double kernels = 0.0;
    for (const KernelRow& row : measured.rows) {
      const KernelLimit limit = limit_of(row.work, yardsticks);
      text +=
          format("{:<22} {:<38} {:>6} {:>10.1f} {:>10.1f} {:<5} {:>7.1f}% {:>6.1f}%\n", row.kernel,
                 row.work.shape, row.calls / rounds_, row.median * 1e6, limit.seconds * 1e6, by_text(limit),
                 100.0 * limit.seconds / row.median, 100.0 * share_of_pass(row, measured));
      kernels += row.seconds / static_cast<double>(rounds_);
    }
    text += format("\nkernels shown: {:.1f} ms of a pass of {:.1f} ms when each is waited for\n",
                   kernels * 1e3, measured.traced_seconds * 1e3);
    text += format("pass: {:.1f} ms, limit {:.1f} ms ({}): {:.1f}%\n", measured.pass_seconds * 1e3,
                   measured.pass_limit.seconds * 1e3, by_text(measured.pass_limit),
                   100.0 * measured.pass_limit.seconds / measured.pass_seconds);
    return text;
  }

  std::string json_text(const Measurement& measured) const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const KernelRow& row : measured.rows) {
      const KernelLimit limit = limit_of(row.work, measured.yardsticks);
      rows.push_back({{"kernel", row.kernel},
                      {"shape", row.work.shape},
                      {"calls", row.calls / rounds_},
                      {"median_seconds", row.median},
                      {"fastest_seconds", row.fastest},
                      {"flops", row.work.flops},
                      {"bytes", row.work.bytes()},
                      {"limit_seconds", limit.seconds},
                      {"limit", by_text(limit)},
                      {"percent", 100.0 * limit.seconds / row.median},
                      {"share", share_of_pass(row, measured)}});
    }
    nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
    for (const Bandwidth& block : measured.yardsticks.bandwidths) {
      blocks.push_back(
          {{"bytes", block.bytes}, {"copy", block.copy}, {"update", block.update}, {"read", block.read}});
    }
    const nlohmann::ordered_json document = {
        {"device", measured.device},
        {"pass", pass_},
        {"model", model_text()},
        {"threads", measured.yardsticks.threads},
        {"multiply_add_flops", measured.yardsticks.multiply_add},
        {"bandwidths", blocks},
        {"pass_seconds", measured.pass_seconds},
        {"pass_limit_seconds", measured.pass_limit.seconds},
        {"pass_limit", by_text(measured.pass_limit)},
        {"pass_percent", 100.0 * measured.pass_limit.seconds / measured.pass_seconds},
        {"kernels", rows}};
    return document.dump(1) + "\n";
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
