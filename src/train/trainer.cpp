#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <system_error>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/files.h"
#include "core/system_memory.h"
#include "generate/tokenizer_files.h"
#include "model/gpt_config_json.h"
#include "train/console_line.h"
#include "train/run_plan.h"
#include "train/sample_text.h"

namespace megalith {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TokenizerOptions tokenizer_options(const TrainOptions& options) {
  return {options.tokenizer_type, options.vocab_file, options.merge_file, options.tokenizer_model,
          options.vocab_size};
}

std::unique_ptr<Tokenizer> open_tokenizer(const TrainOptions& options) {
  if (options.tokenizer_type.empty()) {
    if (options.vocab_size == 0) {
      fail(ErrorKind::usage, "train",
           "the vocabulary's size is unknown: give the tokenizer (--tokenizer-type, --vocab-file and "
           "--merge-file, or --tokenizer-model) or --vocab-size");
    }
    return nullptr;
  }
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(tokenizer_options(options));
  if (options.vocab_size > 0 && tokenizer->vocab_size() > options.vocab_size) {
    fail(ErrorKind::usage, "vocab_size",
         "{}: the tokenizer has {} pieces; leave --vocab-size away or give at least {}", options.vocab_size,
         tokenizer->vocab_size(), tokenizer->vocab_size());
  }
  return tokenizer;
}

DocumentRules document_rules(const TrainOptions& options, const Tokenizer* tokenizer) {
  DocumentRules rules;
  rules.reset_position_ids = options.reset_position_ids;
  rules.reset_attention_mask = options.reset_attention_mask;
  rules.eod_mask_loss = options.eod_mask_loss;
  if (tokenizer != nullptr) rules.eod = tokenizer->eod();
  const bool needs_eod = rules.reset_position_ids || rules.reset_attention_mask || rules.eod_mask_loss;
  if (needs_eod && rules.eod < 0) {
    fail(ErrorKind::usage, "train",
         "--reset-position-ids, --reset-attention-mask and --eod-mask-loss need a tokenizer with an "
         "end-of-document token");
  }
  return rules;
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, std::string effective_config, Log& log)
    : options_(options),
      effective_config_(std::move(effective_config)),
      log_(log),
      tokenizer_(open_tokenizer(options)),
      config_(gpt_config(options, tokenizer_ ? tokenizer_->vocab_size() : options.vocab_size)),
      calculator_(options) {
  rules_ = {document_rules(options, tokenizer_.get()), options.seq_length, options.micro_batch_size,
            options.calculate_per_token_loss};
  identity_.model = gpt_config_json(config_);
  identity_.seed = static_cast<std::uint64_t>(options.seed);
  identity_.options = effective_config_;
}

Trainer::~Trainer() = default;

// A batch ramp-up comes only with train_samples.
std::int64_t Trainer::train_samples() const {
  return options_.train_samples > 0 ? options_.train_samples
                                    : options_.train_iters * options_.global_batch_size;
}

void Trainer::open_data() {
  DatasetOptions data;
  data.data_path = options_.data_path;
  data.train_data_path = options_.train_data_path;
  data.valid_data_path = options_.valid_data_path;
  data.test_data_path = options_.test_data_path;
  data.split = options_.split;
  data.data_cache_path = options_.data_cache_path;
  data.seq_length = options_.seq_length;
  data.seed = static_cast<std::uint64_t>(options_.seed);
  data.vocab_size = options_.vocab_size > 0 ? options_.vocab_size : tokenizer_->vocab_size();
  data.mock_data = options_.mock_data;
  data.train_samples = options_.skip_train ? 0 : train_samples();
  const bool evaluates = options_.eval_iters > 0 && (options_.eval_interval > 0 || options_.skip_train);
  if (evaluates) {
    const std::int64_t times =
        options_.eval_interval > 0 ? options_.train_iters / options_.eval_interval + 1 : 1;
    data.valid_samples = times * options_.eval_iters * options_.global_batch_size;
    data.test_samples = options_.eval_iters * options_.global_batch_size;
  }
  data_ = build_datasets(data, log_);
  if (evaluates && !data_.valid)
    log_.warn("there is no validation data (--split, --valid-data-path): no evaluation");
}

void Trainer::check_folder() const {
  if (!options_.load.empty() || options_.save.empty()) return;
  const std::vector<std::int64_t> iterations = committed_iterations(options_.save);
  if (iterations.empty()) return;
  fail(ErrorKind::usage, "save",
       "{} already holds checkpoints up to iteration {}; add --load {} to continue that run, or choose "
       "another --save",
       options_.save, iterations.back(), options_.save);
}

bool Trainer::loads_from_run_folder() const {
  std::error_code ignored;
  const std::filesystem::path load = std::filesystem::absolute(options_.load, ignored).lexically_normal();
  const std::filesystem::path parent = (load.has_filename() ? load : load.parent_path()).parent_path();
  return std::filesystem::equivalent(load, folder_->path(), ignored) ||
         std::filesystem::equivalent(parent, folder_->path(), ignored);
}

// Checkpoints of the run folder that lie after the start belong to another course of training: --load would
// take the newest of them, and retention would remove this run's own in their favour.
void Trainer::leave_later_checkpoints(bool is_loaded) {
  const std::vector<std::int64_t> iterations = committed_iterations(folder_->path());
  if (iterations.empty() || iterations.back() <= state_->iteration) return;
  if (!is_loaded || options_.finetune || options_.skip_train || !loads_from_run_folder()) {
    fail(ErrorKind::usage, "save",
         "{} holds checkpoints up to iteration {}, later than iteration {} where this run starts; choose "
         "another --save",
         folder_->path().string(), iterations.back(), state_->iteration);
  }
  const std::vector<std::int64_t> later = set_later_aside(folder_->path(), state_->iteration);
  log_.warn(
      format("going back to iteration {}: the {} later checkpoint{} (up to iteration {}) {} now named "
             "iter_N.superseded in {}",
             state_->iteration, later.size(), later.size() == 1 ? "" : "s", later.back(),
             later.size() == 1 ? "is" : "are", folder_->path().string()));
}

// A run that cannot fit is refused before it spends minutes on filling memory.
void Trainer::check_memory() const {
  const SystemMemory memory = read_system_memory();
  // A device's memory is the machine's so far.
  const std::size_t planned = planned_device_bytes(options_, config_) + planned_host_bytes(options_, config_);
  if (memory.total == 0) return;
  const auto gibibytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 0x1p30; };
  if (planned > memory.total) {
    fail(ErrorKind::environment, "train",
         "this run needs {:.1f} GiB, the machine has {:.1f} GiB; lower --micro-batch-size, give "
         "--recompute-granularity full, "
         "or train a smaller model",
         gibibytes(planned), gibibytes(memory.total));
  }
  if (planned > memory.available) {
    log_.warn(format("this run needs {:.1f} GiB, only {:.1f} GiB of memory are free now", gibibytes(planned),
                     gibibytes(memory.available)));
  }
}

void Trainer::dry_run() {
  check_folder();
  open_data();
  print_run_plan(options_, config_, calculator_, train_samples(), log_);
  check_memory();
  if (!options_.load.empty()) check_loadable(options_, identity_, tokenizer_.get());
  log_.line("dry run: nothing was trained, no file was written but the data's index cache");
}

// Opens everything in the order in which it can fail cheaply: folder, data, device memory, checkpoint.
void Trainer::start() {
  check_folder();
  open_data();
  device_ =
      make_device({options_.device, static_cast<int>(options_.num_threads), options_.strict, identity_.seed});
  if (options_.profile) device_ = profiler_.emplace(options_, log_).wrap(std::move(device_));
  identity_.device = device_->description();
  print_run_plan(options_, config_, calculator_, train_samples(), log_);
  log_.line(format("device: {}", identity_.device));
  check_memory();
  if (!options_.sample_prompt.empty() && options_.eval_interval == 0) {
    log_.warn("--sample-prompt prints at evaluations; without --eval-interval only the start is shown");
  }
  folder_.emplace(options_.save);
  log_.line(format("run folder: {}", folder_->path().string()));

  state_ = std::make_unique<TrainingState>(*device_, options_, config_);
  const bool is_loaded =
      !options_.load.empty() && load_training(*device_, options_, identity_, *state_, tokenizer_.get(), log_);
  if (!is_loaded) state_->store.initialize(identity_.seed);
  leave_later_checkpoints(is_loaded);
  // Only now, so that a run that is refused leaves the folder's own config and tokenizer as they are.
  // An evaluation of a run is not that run's config.
  std::error_code ignored;
  if (!options_.skip_train || !std::filesystem::exists(folder_->config(), ignored)) {
    write_file_atomically(folder_->config(), effective_config_);
  }
  if (tokenizer_)
    identity_.tokenizer = store_tokenizer(folder_->path(), tokenizer_options(options_), *tokenizer_);
  const bool is_saved = is_loaded && !options_.finetune && loads_from_run_folder();
  saver_.emplace(*device_, folder_->path(), options_, identity_, *state_, is_saved ? state_->iteration : -1,
                 log_);
  reporter_.emplace(options_, config_, *folder_, *state_, log_);
}

RunResult Trainer::run() {
  stop_.emplace([this](int) {
    log_.line(" finishing this step, then saving; a second signal ends at once without saving");
  });
  started_seconds_ = now_seconds();
  start();
  RunResult result;
  if (!options_.skip_train) {
    if (state_->iteration == 0) print_samples();
    while (state_->iteration < options_.train_iters) {
      if (profiler_) profiler_->at_iteration(state_->iteration, folder_->trace());
      iterate();
      if (should_stop(result)) break;
    }
  }
  if (profiler_) profiler_->finish(folder_->trace());
  log_.clear_progress();
  if (result.end == RunEnd::finished) {
    final_evaluation();
    if (stop_->signal() != 0) result.end = RunEnd::signal;
  }
  result.signal = stop_->signal();
  const bool is_saved = options_.skip_train || saver_->save_last();
  print_memory();
  if (!is_saved) {
    fail(ErrorKind::environment, folder_->path().string(),
         "the last checkpoint (iteration {}) could not be written; {}", state_->iteration,
         saver_->saved_at() >= 0 ? format("the newest one there is of iteration {}", saver_->saved_at())
                                 : "there is none of this run");
  }
  result.iteration = state_->iteration;
  result.validation_loss = validation_loss_;
  return result;
}

void Trainer::iterate() {
  const Region region(*device_, "iteration");
  const double begin = now_seconds();
  const std::int64_t samples = calculator_.global_batch_size(state_->consumed_samples);
  const StepResult step =
      train_step(*state_, *data_.train, samples, rules_, [this] { saver_->before_update(); });
  if (!step.applied && options_.nan_loss != "skip") stop_at_bad_loss(step);
  ++state_->iteration;
  state_->consumed_samples += samples;
  const double seconds = now_seconds() - begin;
  {
    const Region logging(*device_, "logging");
    reporter_->step_done(*state_, step, seconds);
  }
  const bool is_last = state_->iteration == options_.train_iters;
  if (options_.eval_interval > 0 && (is_last || state_->iteration % options_.eval_interval == 0)) evaluate();
  {
    const Region metrics(*device_, "metrics");
    reporter_->write_row(*state_);
  }
  const Region saving(*device_, "save");
  saver_->poll();
  if (options_.save_interval > 0 && state_->iteration % options_.save_interval == 0) saver_->save(seconds);
}

void Trainer::stop_at_bad_loss(const StepResult& result) {
  log_.clear_progress();
  saver_->wait();
  const std::string what = std::isfinite(result.loss) ? "the gradient's norm" : "the loss";
  const std::string last = saver_->saved_at() >= 0 ? format("the last good checkpoint is iteration {} in {}",
                                                            saver_->saved_at(), folder_->path().string())
                                                   : "no checkpoint was saved before it";
  fail(ErrorKind::training, "train",
       "{} is not finite at iteration {}; no weight was changed by it and {}. Lower --lr, raise "
       "--lr-warmup-iters, look at the data "
       "of samples {} to {}, or give --nan-loss skip to leave such steps out",
       what, state_->iteration + 1, last, state_->consumed_samples,
       state_->consumed_samples + result.samples - 1);
}

bool Trainer::should_stop(RunResult& result) const {
  if (stop_->signal() != 0) {
    result.end = RunEnd::signal;
    return true;
  }
  if (state_->iteration == options_.train_iters) return false;
  if (options_.exit_interval > 0 && state_->iteration % options_.exit_interval == 0) {
    result.end = RunEnd::exit_interval;
    return true;
  }
  if (options_.exit_duration_in_mins > 0 &&
      now_seconds() - started_seconds_ > options_.exit_duration_in_mins * 60) {
    result.end = RunEnd::exit_duration;
    return true;
  }
  return false;
}

std::int64_t Trainer::valid_first_sample() const {
  const std::int64_t earlier =
      options_.eval_interval > 0 ? std::max<std::int64_t>(0, (state_->iteration - 1) / options_.eval_interval)
                                 : 0;
  return earlier * options_.eval_iters * options_.global_batch_size;
}

// Whoever stops a run waits for its checkpoint, not for an evaluation.
std::optional<double> Trainer::loss_of(const SampleSource& source, std::int64_t first) {
  const std::optional<double> loss =
      evaluate_loss(*state_, source, first, options_.eval_iters, options_.global_batch_size, rules_,
                    [this] { return stop_->signal() != 0; });
  if (!loss) log_.line(format(" the evaluation of iteration {} is left out", state_->iteration));
  return loss;
}

void Trainer::evaluate() {
  if (!data_.valid || options_.eval_iters == 0) return;
  const Region region(*device_, "evaluation");
  const double begin = now_seconds();
  const std::optional<double> loss = loss_of(*data_.valid, valid_first_sample());
  if (!loss) return;
  validation_loss_ = loss;
  reporter_->evaluated(*state_, *loss, now_seconds() - begin);
  print_samples();
}

void Trainer::final_evaluation() {
  if (options_.skip_train) {
    evaluate();
    reporter_->write_row(*state_);
  }
  if (data_.test && options_.eval_iters > 0) {
    if (const std::optional<double> loss = loss_of(*data_.test, 0)) reporter_->test_loss(*state_, *loss);
  }
}

void Trainer::print_samples() {
  if (options_.sample_prompt.empty()) return;
  if (!tokenizer_) {
    log_.warn("--sample-prompt needs a tokenizer: no samples are printed");
    return;
  }
  print_sample_texts(*device_, config_, state_->store, *tokenizer_, options_, state_->iteration, log_);
}

void Trainer::print_memory() const {
  const std::size_t planned = planned_device_bytes(options_, config_);
  const std::size_t measured = device_->peak_bytes();
  log_.line(format(
      " device memory: planned {:.1f} MiB, measured at most {:.1f} MiB; the whole process at most {:.1f} MiB",
      static_cast<double>(planned) / 0x1p20, static_cast<double>(measured) / 0x1p20,
      static_cast<double>(peak_process_memory()) / 0x1p20));
  if (options_.async_save) {
    log_.line(format(" host memory of --async-save: planned {:.1f} MiB, used at most {:.1f} MiB",
                     static_cast<double>(planned_host_bytes(options_, config_)) / 0x1p20,
                     static_cast<double>(saver_->copy_bytes()) / 0x1p20));
  }
}

}  // namespace megalith
