#include "optim/optimizer_param_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace megalith {
namespace {

template <typename Style>
using Names = std::vector<std::pair<std::string_view, Style>>;

const Names<DecayStyle>& decay_names() {
  static const Names<DecayStyle> names = {{"constant", DecayStyle::constant},
                                          {"linear", DecayStyle::linear},
                                          {"cosine", DecayStyle::cosine},
                                          {"inverse-square-root", DecayStyle::inverse_square_root},
                                          {"WSD", DecayStyle::wsd}};
  return names;
}

const Names<WsdDecayStyle>& wsd_names() {
  static const Names<WsdDecayStyle> names = {{"exponential", WsdDecayStyle::exponential},
                                             {"linear", WsdDecayStyle::linear},
                                             {"cosine", WsdDecayStyle::cosine},
                                             {"minus_sqrt", WsdDecayStyle::minus_sqrt}};
  return names;
}

const Names<WeightDecayStyle>& weight_decay_names() {
  static const Names<WeightDecayStyle> names = {{"constant", WeightDecayStyle::constant},
                                                {"linear", WeightDecayStyle::linear},
                                                {"cosine", WeightDecayStyle::cosine}};
  return names;
}

template <typename Style>
Style style_of(const Names<Style>& names, std::string_view text, std::string_view key, Style if_empty) {
  if (text.empty()) return if_empty;
  std::string choices;
  for (const auto& [name, style] : names) {
    if (name == text) return style;
    choices += format("{}{}", choices.empty() ? "" : ", ", name);
  }
  fail(ErrorKind::usage, key, "\"{}\" is unknown; choose one of {}", text, choices);
}

template <typename Style>
std::string name_of_style(const Names<Style>& names, Style style) {
  for (const auto& [name, value] : names) {
    if (value == style) return std::string(name);
  }
  return "";
}

double cosine_coefficient(double ratio) {
  return 0.5 * (std::cos(std::numbers::pi * ratio) + 1.0);
}

double wsd_coefficient(const ParamSchedule& schedule, std::int64_t steps) {
  const std::int64_t anneal_start = schedule.decay_steps - schedule.wsd_decay_steps;
  if (steps <= anneal_start) return 1.0;
  const double ratio =
      static_cast<double>(steps - anneal_start) / static_cast<double>(schedule.wsd_decay_steps);
  switch (schedule.wsd_decay_style) {
    case WsdDecayStyle::linear:
      return 1.0 - ratio;
    case WsdDecayStyle::cosine:
      return cosine_coefficient(ratio);
    case WsdDecayStyle::exponential:
      return 2.0 * std::pow(0.5, ratio) - 1.0;
    case WsdDecayStyle::minus_sqrt:
      return 1.0 - std::sqrt(ratio);
  }
  return 1.0;
}

void check(const ParamSchedule& schedule) {
  if (!(schedule.min_lr >= 0.0))
    fail(ErrorKind::usage, "min_lr", "is {}; expected 0 or more", schedule.min_lr);
  if (!(schedule.max_lr >= schedule.min_lr)) {
    fail(ErrorKind::usage, "lr", "is {}, below min_lr {}", schedule.max_lr, schedule.min_lr);
  }
  if (!(schedule.init_lr <= schedule.max_lr)) {
    fail(ErrorKind::usage, "lr_warmup_init", "is {}, above lr {}", schedule.init_lr, schedule.max_lr);
  }
  if (schedule.decay_steps <= 0) {
    fail(ErrorKind::usage, "lr_decay_iters", "give {} samples; expected more than 0", schedule.decay_steps);
  }
  if (!(schedule.warmup_steps < static_cast<double>(schedule.decay_steps))) {
    fail(ErrorKind::usage, "lr_warmup_iters",
         "{} samples of warm-up do not end before the {} of lr_decay_iters", schedule.warmup_steps,
         schedule.decay_steps);
  }
  if (schedule.decay_style == DecayStyle::wsd &&
      (schedule.wsd_decay_steps <= 0 || schedule.wsd_decay_steps > schedule.decay_steps)) {
    fail(ErrorKind::usage, "lr_wsd_decay_iters", "give {} samples; WSD needs 1 to the {} of lr_decay_iters",
         schedule.wsd_decay_steps, schedule.decay_steps);
  }
  if (!(schedule.start_weight_decay >= 0.0 && schedule.end_weight_decay >= schedule.start_weight_decay)) {
    fail(ErrorKind::usage, "start_weight_decay",
         "{} to end_weight_decay {}; weight decay is not negative and grows", schedule.start_weight_decay,
         schedule.end_weight_decay);
  }
  if (schedule.weight_decay_style == WeightDecayStyle::constant &&
      schedule.start_weight_decay != schedule.end_weight_decay) {
    fail(ErrorKind::usage, "weight_decay_incr_style", "is constant, but weight decay goes from {} to {}",
         schedule.start_weight_decay, schedule.end_weight_decay);
  }
}

}  // namespace

ParamSchedule param_schedule(const TrainOptions& options) {
  ParamSchedule schedule;
  schedule.init_lr = options.lr_warmup_init;
  schedule.max_lr = options.lr;
  schedule.min_lr = options.min_lr;
  schedule.decay_style =
      style_of(decay_names(), options.lr_decay_style, "lr_decay_style", DecayStyle::linear);
  schedule.wsd_decay_style =
      style_of(wsd_names(), options.lr_wsd_decay_style, "lr_wsd_decay_style", WsdDecayStyle::exponential);
  schedule.weight_decay_style = style_of(weight_decay_names(), options.weight_decay_incr_style,
                                         "weight_decay_incr_style", WeightDecayStyle::constant);
  const bool constant_decay = schedule.weight_decay_style == WeightDecayStyle::constant;
  schedule.start_weight_decay = constant_decay ? options.weight_decay : options.start_weight_decay;
  schedule.end_weight_decay = constant_decay ? options.weight_decay : options.end_weight_decay;
  double warmup = 0.0;
  if (options.train_samples > 0) {
    schedule.weight_decay_steps = options.train_samples;
    schedule.decay_steps = options.lr_decay_samples > 0 ? options.lr_decay_samples : options.train_samples;
    schedule.wsd_decay_steps = options.lr_wsd_decay_samples;
    warmup = static_cast<double>(options.lr_warmup_samples);
  } else {
    const std::int64_t batch = options.global_batch_size;
    schedule.weight_decay_steps = options.train_iters * batch;
    schedule.decay_steps =
        (options.lr_decay_iters > 0 ? options.lr_decay_iters : options.train_iters) * batch;
    schedule.wsd_decay_steps = options.lr_wsd_decay_iters * batch;
    warmup = static_cast<double>(options.lr_warmup_iters * batch);
  }
  if (options.lr_warmup_fraction > 0.0) {
    warmup = options.lr_warmup_fraction * static_cast<double>(schedule.decay_steps);
  }
  schedule.warmup_steps = warmup;
  check(schedule);
  return schedule;
}

double learning_rate(const ParamSchedule& schedule, std::int64_t steps) {
  const auto now = static_cast<double>(steps);
  if (schedule.warmup_steps > 0.0 && now <= schedule.warmup_steps) {
    return schedule.init_lr + (schedule.max_lr - schedule.init_lr) * now / schedule.warmup_steps;
  }
  if (schedule.decay_style == DecayStyle::constant) return schedule.max_lr;
  if (steps > schedule.decay_steps) return schedule.min_lr;
  if (schedule.decay_style == DecayStyle::inverse_square_root) {
    const double rate =
        schedule.max_lr * std::sqrt(std::max(schedule.warmup_steps, 1.0)) / std::sqrt(std::max(now, 1.0));
    return std::max(schedule.min_lr, rate);
  }
  const double ratio =
      (now - schedule.warmup_steps) / (static_cast<double>(schedule.decay_steps) - schedule.warmup_steps);
  double coefficient = 1.0 - ratio;
  if (schedule.decay_style == DecayStyle::cosine) coefficient = cosine_coefficient(ratio);
  if (schedule.decay_style == DecayStyle::wsd) coefficient = wsd_coefficient(schedule, steps);
  return schedule.min_lr + coefficient * (schedule.max_lr - schedule.min_lr);
}

double weight_decay(const ParamSchedule& schedule, std::int64_t steps) {
  if (steps > schedule.weight_decay_steps || schedule.weight_decay_style == WeightDecayStyle::constant) {
    return schedule.end_weight_decay;
  }
  const double ratio = static_cast<double>(steps) / static_cast<double>(schedule.weight_decay_steps);
  const double coefficient =
      schedule.weight_decay_style == WeightDecayStyle::linear ? ratio : cosine_coefficient(1.0 - ratio);
  return schedule.start_weight_decay +
         coefficient * (schedule.end_weight_decay - schedule.start_weight_decay);
}

nlohmann::json OptimizerParamScheduler::state() const {
  return {{"num_steps", steps_},
          {"init_lr", schedule_.init_lr},
          {"max_lr", schedule_.max_lr},
          {"min_lr", schedule_.min_lr},
          {"lr_warmup_steps", schedule_.warmup_steps},
          {"lr_decay_steps", schedule_.decay_steps},
          {"lr_decay_style", name_of_style(decay_names(), schedule_.decay_style)},
          {"wsd_decay_steps", schedule_.wsd_decay_steps},
          {"lr_wsd_decay_style", name_of_style(wsd_names(), schedule_.wsd_decay_style)},
          {"start_wd", schedule_.start_weight_decay},
          {"end_wd", schedule_.end_weight_decay},
          {"wd_incr_steps", schedule_.weight_decay_steps},
          {"wd_incr_style", name_of_style(weight_decay_names(), schedule_.weight_decay_style)}};
}

void OptimizerParamScheduler::load(const nlohmann::json& state, bool override_checkpoint,
                                   bool use_checkpoint) {
  ParamSchedule stored;
  std::int64_t steps = 0;
  try {
    steps = state.at("num_steps").get<std::int64_t>();
    stored.init_lr = state.at("init_lr").get<double>();
    stored.max_lr = state.at("max_lr").get<double>();
    stored.min_lr = state.at("min_lr").get<double>();
    stored.warmup_steps = state.at("lr_warmup_steps").get<double>();
    stored.decay_steps = state.at("lr_decay_steps").get<std::int64_t>();
    stored.wsd_decay_steps = state.at("wsd_decay_steps").get<std::int64_t>();
    stored.start_weight_decay = state.at("start_wd").get<double>();
    stored.end_weight_decay = state.at("end_wd").get<double>();
    stored.weight_decay_steps = state.at("wd_incr_steps").get<std::int64_t>();
    stored.decay_style = style_of(decay_names(), state.at("lr_decay_style").get<std::string>(),
                                  "lr_decay_style", DecayStyle::linear);
    stored.wsd_decay_style = style_of(wsd_names(), state.at("lr_wsd_decay_style").get<std::string>(),
                                      "lr_wsd_decay_style", WsdDecayStyle::exponential);
    stored.weight_decay_style = style_of(weight_decay_names(), state.at("wd_incr_style").get<std::string>(),
                                         "wd_incr_style", WeightDecayStyle::constant);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::input, "checkpoint", "its learning-rate schedule is damaged: {}", error.what());
  }
  if (steps < 0) fail(ErrorKind::input, "checkpoint", "its schedule stands at {} samples", steps);
  if (use_checkpoint && !override_checkpoint) {
    check(stored);
    schedule_ = stored;
  } else if (!override_checkpoint) {
    const nlohmann::json mine = this->state();
    std::string differences;
    for (const auto& [key, value] : mine.items()) {
      if (key == "num_steps" || state.at(key) == value) continue;
      differences += format("{}{} is {} there and {} here", differences.empty() ? "" : ", ", key,
                            state.at(key).dump(), value.dump());
    }
    if (!differences.empty()) {
      fail(ErrorKind::usage, "checkpoint",
           "its learning-rate schedule differs: {}; give --override-opt-param-scheduler to use this run's or "
           "--use-checkpoint-opt-param-scheduler to use the checkpoint's",
           differences);
    }
  }
  steps_ = steps;
}

}  // namespace megalith
