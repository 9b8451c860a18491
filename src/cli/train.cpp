// megalith train: trains a GPT.
#include <csignal>
#include <cstdio>

#include "cli/command.h"
#include "core/train_schema.h"
#include "train/trainer.h"

namespace megalith {
namespace {

std::string ending(const RunResult& result, bool evaluates_only) {
  const char* signal = result.signal == SIGINT ? "SIGINT" : "SIGTERM";
  if (evaluates_only && result.end == RunEnd::signal) return format("evaluation stopped by {}", signal);
  switch (result.end) {
    case RunEnd::finished:
      return format("finished at iteration {}", result.iteration);
    case RunEnd::exit_interval:
      return format("stopped at iteration {} (--exit-interval)", result.iteration);
    case RunEnd::exit_duration:
      return format("stopped at iteration {} (--exit-duration-in-mins)", result.iteration);
    case RunEnd::signal:
      return format(
          "stopped at iteration {} by {}: the step was finished and a checkpoint saved; continue with --load",
          result.iteration, signal);
  }
  return "";
}

class TrainCommand : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "Train a GPT on prepared data"; }

  void declare(Schema& schema) override {
    declare_train_settings(schema, options_);
    schema.epilogue(
        "The run folder (--save, else a fresh one under runs/) receives config.toml, metrics.jsonl, "
        "TensorBoard files and "
        "checkpoints. SIGINT and SIGTERM finish the step, save and leave; a second one ends at once.\n"
        "Examples:\n"
        "  megalith train --config configs/gpt2-124m.toml --micro-batch-size 4 --data-path "
        "corpus_text_document\n"
        "  megalith train --config runs/a/config.toml --load runs/a --save runs/a\n");
  }

  int run(Schema& schema, Log& messages) override {
    Log out(stdout, options_.progress);
    Trainer trainer(options_, schema.effective_toml(), out);
    if (options_.dry_run) {
      trainer.dry_run();
      return 0;
    }
    const RunResult result = trainer.run();
    out.line(ending(result, options_.skip_train));
    if (result.end != RunEnd::signal) return 0;
    constexpr int signal_status = 128;
    messages.warn(options_.skip_train ? "the evaluation was interrupted" : "training was interrupted");
    return signal_status + result.signal;
  }

 private:
  TrainOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_train_command() {
  return std::make_unique<TrainCommand>();
}

}  // namespace megalith
