// Rules over several keys, and derived defaults. Where Megatron-LM has a rule for the same flags, it is the
// same.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/format.h"
#include "core/train_schema.h"

namespace megalith {
namespace {

constexpr std::int64_t longest_rampup = 10'000'000;
constexpr double most_evaluation_samples = 1e15;

class Resolver {
 public:
  Resolver(Schema& schema, TrainOptions& options, SettingsUse use, std::vector<std::string>& errors)
      : schema_(schema), options_(options), errors_(errors), train_(use == SettingsUse::train) {}

  void run() {
    resolve_model();
    resolve_batches();
    resolve_length();
    resolve_recompute();
    if (train_) resolve_learning_rate();
    resolve_weight_decay();
    check_precision();
    check_parallel();
    check_data();
    check_rest();
  }

 private:
  template <typename... Args>
  void complain(std::string_view key, FormatString<Args...> text, Args&&... args) {
    errors_.push_back(format("{}: {}", schema_.describe(key), format(text, std::forward<Args>(args)...)));
  }
  bool usable(std::initializer_list<std::string_view> names) const { return schema_.usable(names); }

  /// Fills a field that neither file nor flag has set.
  template <typename T>
  void derive(std::string_view name, T& field, T value, bool keep = false) {
    if (schema_.given(name) && field != T{}) return;
    field = std::move(value);
    schema_.mark_derived(name, keep);
  }

  /// Whether a key was given with a value other than "none".
  template <typename T>
  bool set(std::string_view name, const T& field) const {
    return schema_.given(name) && field != T{};
  }

  void exclude(std::string_view first, std::string_view second, std::string_view why) {
    errors_.push_back(format("{} and {}: {}", schema_.describe(first), schema_.describe(second), why));
  }

  void resolve_model() {
    TrainOptions& o = options_;
    if (usable({"hidden_size", "num_attention_heads"})) {
      if (!set("kv_channels", o.kv_channels) && o.hidden_size % o.num_attention_heads != 0) {
        const std::int64_t lower = o.hidden_size / o.num_attention_heads * o.num_attention_heads;
        const std::string nearest = lower > 0 ? format("{} or {}", lower, lower + o.num_attention_heads)
                                              : format("{}", o.num_attention_heads);
        complain("hidden_size", "must be a multiple of num_attention_heads ({}); the nearest is {}",
                 o.num_attention_heads, nearest);
      } else {
        derive("kv_channels", o.kv_channels,
               std::max<std::int64_t>(1, o.hidden_size / o.num_attention_heads));
      }
    }
    if (usable({"hidden_size", "ffn_hidden_size"}))
      derive("ffn_hidden_size", o.ffn_hidden_size, 4 * o.hidden_size);
    if (usable({"seq_length", "max_position_embeddings"})) {
      derive("max_position_embeddings", o.max_position_embeddings, o.seq_length);
      if (o.seq_length > o.max_position_embeddings) {
        complain("seq_length", "is more than max_position_embeddings ({}); the nearest is {}",
                 o.max_position_embeddings, o.max_position_embeddings);
      }
    }
    if (!o.bias_gelu_fusion && !schema_.given("activation")) {
      o.activation = "gelu_erf";
      schema_.mark_derived("activation");
    }
  }

  void resolve_batches() {
    TrainOptions& o = options_;
    if (!usable({"micro_batch_size", "global_batch_size"})) return;
    if (!train_ && o.micro_batch_size == 0) derive("micro_batch_size", o.micro_batch_size, std::int64_t{1});
    derive("global_batch_size", o.global_batch_size, o.micro_batch_size, true);
    if (o.global_batch_size % o.micro_batch_size != 0) {
      const std::int64_t lower = o.global_batch_size / o.micro_batch_size * o.micro_batch_size;
      complain("global_batch_size", "must be a multiple of micro_batch_size ({}); the nearest is {}",
               o.micro_batch_size,
               lower > 0 ? format("{} or {}", lower, lower + o.micro_batch_size)
                         : format("{}", o.micro_batch_size));
    }
    check_rampup();
  }

  void check_rampup() {
    TrainOptions& o = options_;
    if (o.rampup_batch_size.empty() || !usable({"rampup_batch_size"})) return;
    if (o.rampup_batch_size.size() != 3) {
      complain("rampup_batch_size", "needs three numbers: start, increment, samples (such as 16 8 300000)");
      return;
    }
    const std::int64_t start = o.rampup_batch_size[0];
    const std::int64_t increment = o.rampup_batch_size[1];
    if (start < 1 || increment < 1) {
      complain("rampup_batch_size", "start and increment must be at least 1");
      return;
    }
    if (start > o.global_batch_size) {
      complain("rampup_batch_size", "starts above global_batch_size ({})", o.global_batch_size);
    } else if ((o.global_batch_size - start) % increment != 0) {
      complain("rampup_batch_size", "the increment must divide global_batch_size - start ({})",
               o.global_batch_size - start);
    }
    if (start % o.micro_batch_size != 0 || increment % o.micro_batch_size != 0) {
      complain("rampup_batch_size", "start and increment must be multiples of micro_batch_size ({})",
               o.micro_batch_size);
    }
    if (set("train_iters", o.train_iters)) {
      exclude("rampup_batch_size", "train_iters",
              "a batch ramp-up needs a run given in samples: use train_samples");
    }
  }

  /// Iterations of a run of train_samples, as Megatron-LM counts them: incomplete batches at the end are
  /// dropped.
  std::int64_t iterations_of_samples() {
    const TrainOptions& o = options_;
    if (o.rampup_batch_size.size() != 3) return o.train_samples / o.global_batch_size;
    const std::int64_t start = o.rampup_batch_size[0];
    const std::int64_t increment = o.rampup_batch_size[1];
    const std::int64_t samples = o.rampup_batch_size[2];
    const std::int64_t steps = (o.global_batch_size - start) / increment;
    const double samples_per_step = steps > 0 ? static_cast<double>(samples) / static_cast<double>(steps) : 0;
    std::int64_t consumed = 0;
    std::int64_t iterations = 0;
    while (consumed <= samples) {
      const std::int64_t step =
          samples_per_step > 0 ? static_cast<std::int64_t>(static_cast<double>(consumed) / samples_per_step)
                               : steps;
      consumed += std::min(o.global_batch_size, start + std::min(step, steps) * increment);
      if (++iterations > longest_rampup) {
        complain("rampup_batch_size",
                 "takes more than {} iterations; fewer samples or a larger start are needed", longest_rampup);
        return 1;
      }
    }
    return iterations + std::max<std::int64_t>(0, o.train_samples - consumed) / o.global_batch_size;
  }

  void resolve_length() {
    TrainOptions& o = options_;
    if (!usable({"train_iters", "train_samples"})) return;
    const bool iterations = set("train_iters", o.train_iters);
    const bool samples = set("train_samples", o.train_samples);
    if (iterations && samples) {
      exclude("train_iters", "train_samples", "give one of them; the other follows");
      return;
    }
    if (!iterations && !samples) {
      if (train_ && !o.skip_train) {
        errors_.emplace_back(
            "train_iters: the length of the run is missing; give --train-iters N or --train-samples N");
        return;
      }
      // An evaluation alone needs no length, but everything that follows from one must have a value.
      if (train_) derive("train_iters", o.train_iters, std::int64_t{1});
      return;
    }
    if (!usable({"micro_batch_size", "global_batch_size", "rampup_batch_size"}) || o.global_batch_size == 0)
      return;
    if (samples) {
      const std::size_t errors_before = errors_.size();
      const bool rampup_is_sound =
          o.rampup_batch_size.empty() ||
          (o.rampup_batch_size.size() == 3 && o.rampup_batch_size[0] > 0 && o.rampup_batch_size[1] > 0 &&
           o.rampup_batch_size[0] <= o.global_batch_size);
      if (!rampup_is_sound) return;
      derive("train_iters", o.train_iters, iterations_of_samples());
      if (o.train_iters < 1 && errors_.size() == errors_before) {
        complain("train_samples", "is less than one global batch ({})", o.global_batch_size);
      }
    }
    const double most = static_cast<double>(o.train_iters) * static_cast<double>(o.global_batch_size);
    if (usable({"seq_length"}) && most * static_cast<double>(o.seq_length) > 4e18) {
      complain(samples ? "train_samples" : "train_iters", "asks for more than 4e18 tokens in all");
    }
  }

  void resolve_recompute() {
    TrainOptions& o = options_;
    if (o.recompute_activations) {
      if (o.recompute_granularity == "full") {
        exclude("recompute_activations", "recompute_granularity",
                "the first means selective; give one of them");
      }
      derive("recompute_granularity", o.recompute_granularity, std::string("selective"));
    }
    if (!usable({"recompute_granularity", "recompute_method", "recompute_num_layers", "num_layers"})) return;
    if (o.recompute_granularity != "full") {
      if (set("recompute_method", o.recompute_method)) {
        complain("recompute_method", "needs recompute_granularity full, which is {}",
                 o.recompute_granularity.empty() ? "not set" : o.recompute_granularity);
      }
      if (set("recompute_num_layers", o.recompute_num_layers)) {
        complain("recompute_num_layers", "needs recompute_granularity full, which is {}",
                 o.recompute_granularity.empty() ? "not set" : o.recompute_granularity);
      }
      return;
    }
    derive("recompute_method", o.recompute_method, std::string("uniform"));
    if (o.recompute_method == "block" && !set("recompute_num_layers", o.recompute_num_layers)) {
      complain("recompute_method", "block needs recompute_num_layers, from 1 to num_layers ({})",
               o.num_layers);
    }
    derive("recompute_num_layers", o.recompute_num_layers, std::int64_t{1});
    if (o.recompute_num_layers > o.num_layers) {
      complain("recompute_num_layers", "is more than num_layers; the nearest is {}", o.num_layers);
    }
  }

  void resolve_learning_rate() {
    TrainOptions& o = options_;
    if (!usable({"lr", "min_lr", "lr_warmup_init"})) return;
    if (o.lr == 0 && !o.skip_train) errors_.emplace_back("lr: is required; give --lr X (such as 6e-4)");
    if (o.lr > 0 && o.min_lr > o.lr) complain("min_lr", "is more than lr ({})", o.lr);
    if (o.lr > 0 && o.lr_warmup_init > o.lr) complain("lr_warmup_init", "is more than lr ({})", o.lr);
    resolve_schedule();
  }

  void resolve_schedule() {
    TrainOptions& o = options_;
    const bool in_samples = set("train_samples", o.train_samples);
    const std::pair<std::string_view, bool> wrong[] = {
        {"lr_decay_iters", in_samples && set("lr_decay_iters", o.lr_decay_iters)},
        {"lr_warmup_iters", in_samples && set("lr_warmup_iters", o.lr_warmup_iters)},
        {"lr_wsd_decay_iters", in_samples && set("lr_wsd_decay_iters", o.lr_wsd_decay_iters)},
        {"lr_decay_samples", !in_samples && set("lr_decay_samples", o.lr_decay_samples)},
        {"lr_warmup_samples", !in_samples && set("lr_warmup_samples", o.lr_warmup_samples)},
        {"lr_wsd_decay_samples", !in_samples && set("lr_wsd_decay_samples", o.lr_wsd_decay_samples)}};
    bool mixed = false;
    for (const auto& [name, is_wrong] : wrong) {
      if (!is_wrong) continue;
      mixed = true;
      std::string other(name);
      other.replace(other.rfind('_') + 1, std::string::npos, in_samples ? "samples" : "iters");
      complain(name, "the run's length is given in {}; use {}", in_samples ? "samples" : "iterations", other);
    }
    if (o.lr_warmup_fraction != 0) {
      for (const std::string_view name : {"lr_warmup_iters", "lr_warmup_samples"}) {
        const bool given =
            name == "lr_warmup_iters" ? set(name, o.lr_warmup_iters) : set(name, o.lr_warmup_samples);
        if (given) exclude("lr_warmup_fraction", name, "give one of them");
      }
    }
    if (mixed || o.train_iters == 0 || o.global_batch_size == 0) return;
    if (!usable({"lr_decay_iters", "lr_decay_samples", "lr_warmup_iters", "lr_warmup_samples",
                 "lr_wsd_decay_iters", "lr_wsd_decay_samples", "lr_warmup_fraction", "train_iters",
                 "train_samples", "global_batch_size"})) {
      return;
    }
    if (in_samples) {
      derive("lr_decay_samples", o.lr_decay_samples, o.train_samples);
      derive("lr_decay_iters", o.lr_decay_iters,
             std::max<std::int64_t>(1, o.lr_decay_samples / o.global_batch_size));
      derive("lr_warmup_iters", o.lr_warmup_iters, o.lr_warmup_samples / o.global_batch_size);
      derive("lr_wsd_decay_iters", o.lr_wsd_decay_iters, o.lr_wsd_decay_samples / o.global_batch_size);
    } else {
      derive("lr_decay_iters", o.lr_decay_iters, o.train_iters);
      derive("lr_decay_samples", o.lr_decay_samples, o.lr_decay_iters * o.global_batch_size);
      derive("lr_warmup_samples", o.lr_warmup_samples, o.lr_warmup_iters * o.global_batch_size);
      derive("lr_wsd_decay_samples", o.lr_wsd_decay_samples, o.lr_wsd_decay_iters * o.global_batch_size);
    }
    const std::string unit = in_samples ? "samples" : "iters";
    if (o.lr_warmup_samples >= o.lr_decay_samples && o.lr_warmup_fraction == 0) {
      complain("lr_warmup_" + unit, "must be less than lr_decay_{} ({})", unit,
               in_samples ? o.lr_decay_samples : o.lr_decay_iters);
    }
    if (o.lr_decay_style == "WSD") {
      if (o.lr_wsd_decay_samples == 0) {
        complain("lr_decay_style", "needs lr_wsd_decay_{}, the length of the final decay", unit);
      } else if (o.lr_wsd_decay_samples > o.lr_decay_samples) {
        complain("lr_wsd_decay_" + unit, "is more than lr_decay_{} ({})", unit,
                 in_samples ? o.lr_decay_samples : o.lr_decay_iters);
      }
    }
    if (o.override_opt_param_scheduler && o.use_checkpoint_opt_param_scheduler) {
      exclude("override_opt_param_scheduler", "use_checkpoint_opt_param_scheduler",
              "they contradict each other");
    }
  }

  void resolve_weight_decay() {
    TrainOptions& o = options_;
    if (!usable({"weight_decay", "start_weight_decay", "end_weight_decay", "weight_decay_incr_style"}))
      return;
    const bool start = schema_.given("start_weight_decay");
    const bool end = schema_.given("end_weight_decay");
    if (o.weight_decay_incr_style == "constant") {
      for (const std::string_view name : {"start_weight_decay", "end_weight_decay"}) {
        const double value = name == "start_weight_decay" ? o.start_weight_decay : o.end_weight_decay;
        if (schema_.given(name) && value != o.weight_decay) {
          complain(
              name,
              "differs from weight_decay ({}), but weight_decay_incr_style is constant; use linear or cosine",
              o.weight_decay);
        }
      }
    } else if (!start || !end) {
      complain("weight_decay_incr_style", "needs both start_weight_decay and end_weight_decay");
    } else if (o.end_weight_decay < o.start_weight_decay) {
      complain("end_weight_decay", "is less than start_weight_decay ({})", o.start_weight_decay);
    }
    if (!start) derive("start_weight_decay", o.start_weight_decay, o.weight_decay);
    if (!end) derive("end_weight_decay", o.end_weight_decay, o.weight_decay);
  }

  void check_precision() {
    const TrainOptions& o = options_;
    const int formats = static_cast<int>(o.bf16) + static_cast<int>(o.fp16) + static_cast<int>(o.fp64);
    if (formats > 1) {
      std::string given;
      for (const auto& [name, on] :
           {std::pair("bf16", o.bf16), std::pair("fp16", o.fp16), std::pair("fp64", o.fp64)}) {
        if (on) given += format("{}{}", given.empty() ? "" : ", ", schema_.describe(name));
      }
      errors_.push_back(format("{}: exclude each other; give one", given));
    }
    if (o.fp16) {
      complain(
          "fp16",
          "is refused: float16 with loss scaling needs a GPU, which this version does not use; use bf16, "
          "which needs no loss scale");
    }
    if (!usable({"device"})) return;
    if (o.bf16 && o.device == "reference") {
      exclude("bf16", "device",
              "the reference device computes in float32 and float64; use the cpu device for bf16");
    }
    if (o.fp64 && o.device != "reference") complain("fp64", "needs device reference; device is {}", o.device);
    if (o.strict && o.device != "reference")
      complain("strict", "needs device reference; device is {}", o.device);
    if (!o.accumulate_allreduce_grads_in_fp32) {
      complain("accumulate_allreduce_grads_in_fp32",
               "gradients always accumulate in float32 here; leave it out");
    }
  }

  void check_parallel() {
    for (const std::string_view name : {"tensor_model_parallel_size", "pipeline_model_parallel_size",
                                        "context_parallel_size", "expert_model_parallel_size"}) {
      if (!usable({name}) || schema_.setting(name).value() == SettingValue(std::int64_t{1})) continue;
      complain(name,
               "needs ranks: this version trains on one device; use 1 (the result is the same by design)");
    }
  }

  /// Prefixes, or weight prefix weight prefix ...
  void check_blend(std::string_view name, const std::vector<std::string>& words) {
    if (words.size() < 2) return;
    const auto is_number = [](const std::string& word, double& number) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      return error == std::errc() && end == word.data() + word.size();
    };
    double weight = 0;
    bool any_weight = false;
    for (std::size_t i = 0; i < words.size(); i += 2) any_weight = any_weight || is_number(words[i], weight);
    if (!any_weight) return;
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const std::string& word = words[i];
      if (!is_number(word, weight)) {
        complain(name, "a blend is weight prefix weight prefix ...; '{}' should be a weight", word);
        return;
      }
      if (!std::isfinite(weight) || weight <= 0) {
        complain(name, "weight {} must be more than 0; leave the data set out instead", word);
        return;
      }
    }
    if (words.size() % 2 != 0) complain(name, "the last weight ({}) has no prefix", words.back());
  }

  void check_split() {
    std::vector<double> shares;
    const std::string& text = options_.split;
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t end = std::min(text.find_first_of(",/", start), text.size());
      double share = 0;
      const auto [stop, error] = std::from_chars(text.data() + start, text.data() + end, share);
      if (error != std::errc() || stop != text.data() + end || !std::isfinite(share) || share < 0) {
        complain("split", "must be up to three numbers of at least 0, such as 969,30,1");
        return;
      }
      shares.push_back(share);
      start = end + 1;
    }
    double sum = 0;
    for (const double share : shares) sum += share;
    if (shares.size() > 3 || sum <= 0)
      complain("split", "must be up to three numbers with a positive sum, such as 969,30,1");
    if (train_ && !options_.skip_train && !shares.empty() && shares[0] == 0 && !options_.data_path.empty()) {
      complain("split", "leaves nothing for training");
    }
  }

  void check_data() {
    const TrainOptions& o = options_;
    check_blend("data_path", o.data_path);
    check_blend("train_data_path", o.train_data_path);
    check_blend("valid_data_path", o.valid_data_path);
    check_blend("test_data_path", o.test_data_path);
    check_split();
    const bool apart = !o.train_data_path.empty() || !o.valid_data_path.empty() || !o.test_data_path.empty();
    if (apart && !o.data_path.empty()) {
      errors_.push_back(format("{}: excludes train_data_path, valid_data_path and test_data_path",
                               schema_.describe("data_path")));
    }
    if (o.mock_data && (apart || !o.data_path.empty())) {
      complain("mock_data", "excludes data files; leave out one of them");
    }
    if (train_ && !o.mock_data && o.data_path.empty() &&
        (o.skip_train ? !apart : o.train_data_path.empty())) {
      errors_.emplace_back(
          "data_path: is required; give --data-path PREFIX (of PREFIX.bin and PREFIX.idx), "
          "--train-data-path PREFIX, or --mock-data");
    }
    check_tokenizer();
  }

  void check_tokenizer() {
    const TrainOptions& o = options_;
    if (!usable({"tokenizer_type", "vocab_size"})) return;
    const auto need = [this](std::string_view name, const std::string& value) {
      if (value.empty()) complain("tokenizer_type", "needs {}", name);
    };
    if (o.tokenizer_type == "GPT2BPETokenizer") {
      need("vocab_file", o.vocab_file);
      need("merge_file", o.merge_file);
    } else if (o.tokenizer_type == "HuggingFaceTokenizer") {
      need("tokenizer_model", o.tokenizer_model);
    } else if (o.tokenizer_type == "NullTokenizer") {
      if (o.vocab_size == 0) complain("tokenizer_type", "needs vocab_size");
    } else if (o.vocab_file.empty() != o.merge_file.empty()) {
      complain(o.vocab_file.empty() ? "merge_file" : "vocab_file", "needs {} beside it",
               o.vocab_file.empty() ? "vocab_file" : "merge_file");
    } else if (!o.vocab_file.empty()) {
      derive("tokenizer_type", options_.tokenizer_type, std::string("GPT2BPETokenizer"));
    } else if (!o.tokenizer_model.empty()) {
      derive("tokenizer_type", options_.tokenizer_type, std::string("HuggingFaceTokenizer"));
    } else if (o.vocab_size == 0) {
      errors_.emplace_back(
          "vocab_size: is not known; give a tokenizer (--vocab-file and --merge-file, or "
          "--tokenizer-model) or --vocab-size N");
    }
    if (!o.tokenizer_type.empty()) return;
    if (!o.sample_prompt.empty()) complain("sample_prompt", "needs a tokenizer");
    for (const auto& [name, on] : {std::pair("reset_position_ids", o.reset_position_ids),
                                   std::pair("reset_attention_mask", o.reset_attention_mask),
                                   std::pair("eod_mask_loss", o.eod_mask_loss)}) {
      if (on) complain(name, "needs a tokenizer, which knows the end-of-document token");
    }
  }

  void check_rest() {
    const TrainOptions& o = options_;
    if (train_ && usable({"eval_interval", "eval_iters", "train_iters", "global_batch_size"})) {
      const std::int64_t times = o.eval_interval > 0 ? o.train_iters / o.eval_interval + 1 : 1;
      const double samples = static_cast<double>(times) * static_cast<double>(o.eval_iters) *
                             static_cast<double>(o.global_batch_size);
      if (samples > most_evaluation_samples) {
        complain(
            "eval_iters",
            "asks for more than 1e15 validation samples over the run; use fewer, or a longer eval_interval");
      }
    }
    if (o.profile && o.profile_step_end <= o.profile_step_start &&
        usable({"profile_step_start", "profile_step_end"})) {
      complain("profile_step_end", "must be more than profile_step_start ({}); the nearest is {}",
               o.profile_step_start, o.profile_step_start + 1);
    }
    if (o.ckpt_step != 0 && o.load.empty()) complain("ckpt_step", "needs load, the folder of the checkpoint");
    if (o.finetune && o.load.empty() && train_)
      complain("finetune", "needs load, the folder of the checkpoint");
    if (o.save_retain_interval != 0 && o.save_retain == 0 &&
        usable({"save_retain", "save_retain_interval"})) {
      // Megatron-LM's meaning: all but the multiples and the latest are removed.
      derive("save_retain", options_.save_retain, std::int64_t{1});
    }
  }

  Schema& schema_;
  TrainOptions& options_;
  std::vector<std::string>& errors_;
  bool train_;
};

}  // namespace

void resolve_options(Schema& schema, TrainOptions& options, SettingsUse use,
                     std::vector<std::string>& errors) {
  Resolver(schema, options, use, errors).run();
}

}  // namespace megalith
