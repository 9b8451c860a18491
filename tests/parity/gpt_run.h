// A short training run of a small GPT whose every number is kept: what tests/parity/gpt_oracle.py computes
// again.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "tests/model/support/tiny_gpt.h"

namespace megalith::testing {

struct NamedValues {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

/// Settings by name ("layers" -> "2"); every name must be known.
using RunSettings = std::map<std::string, std::string>;

inline GptConfig run_config(const RunSettings& settings) {
  GptConfig config = tiny_config();
  const auto integer = [&](const char* name, std::int64_t& field) {
    if (const auto found = settings.find(name); found != settings.end()) field = std::stoll(found->second);
  };
  const auto number = [&](const char* name, double& field) {
    if (const auto found = settings.find(name); found != settings.end()) field = std::stod(found->second);
  };
  integer("layers", config.layers);
  integer("hidden", config.hidden);
  integer("ffn", config.ffn);
  integer("heads", config.heads);
  integer("head_size", config.head_size);
  integer("sequence", config.sequence);
  integer("max_positions", config.max_positions);
  integer("vocabulary", config.vocabulary);
  integer("padded_vocabulary", config.padded_vocabulary);
  number("init_std", config.init_std);
  number("hidden_dropout", config.hidden_dropout);
  number("attention_dropout", config.attention_dropout);
  if (settings.count("tied") > 0) config.tied = settings.at("tied") == "1";
  if (settings.count("activation") > 0 && settings.at("activation") == "gelu_erf") {
    config.activation = Activation::gelu_erf;
  }
  if (settings.count("compute") > 0) config.compute = dtype_from_name(settings.at("compute"));
  return config;
}

/// Runs settings["steps"] optimizer steps of settings["global_batch"] samples. Gives "initial/NAME",
/// "tokens", "mask", "logits" and "losses" of the first microbatch, "gradient/NAME" of the first step (each
/// use of a tied weight apart), "loss" and "norm" of every step, "final/NAME" and the optimizer's state at
/// the end.
inline std::map<std::string, NamedValues> record_run(Device& device, const RunSettings& settings) {
  const auto text = [&](const std::string& name, const std::string& otherwise) {
    const auto found = settings.find(name);
    return found == settings.end() ? otherwise : found->second;
  };
  const GptConfig config = run_config(settings);
  const std::int64_t micro_batch = std::stoll(text("micro_batch", "2"));
  const std::int64_t global_batch = std::stoll(text("global_batch", "4"));
  const std::int64_t steps = std::stoll(text("steps", "10"));
  OptimizerConfig optimizer_settings;
  if (text("optimizer", "adamw") == "sgd") optimizer_settings.kind = OptimizerConfig::Kind::sgd;
  optimizer_settings.momentum = std::stod(text("momentum", "0"));
  optimizer_settings.clip_grad = std::stod(text("clip_grad", "1.0"));
  optimizer_settings.epsilon = std::stod(text("epsilon", "1e-8"));
  optimizer_settings.beta2 = std::stod(text("beta2", "0.999"));
  const double rate = std::stod(text("lr", "0.01"));
  const double decay = std::stod(text("weight_decay", "0.01"));

  TinyGpt gpt(device, config, micro_batch);
  Optimizer optimizer(gpt.store, optimizer_settings);
  std::map<std::string, NamedValues> record;
  const auto keep = [&](const std::string& name, std::vector<std::int64_t> shape,
                        std::vector<double> values) { record[name] = {std::move(shape), std::move(values)}; };
  const auto dimensions = [](const Shape& shape) {
    std::vector<std::int64_t> list;
    for (int dim = 0; dim < shape.rank(); ++dim) list.push_back(shape[dim]);
    return list;
  };
  const auto keep_weights = [&](const std::string& prefix) {
    for (const int row : gpt.store.owning_rows()) {
      const Parameter& parameter = gpt.store.table()[row];
      keep(prefix + parameter.name, dimensions(parameter.logical_shape),
           read(device, gpt.store.held(gpt.store.master(row), row)));
    }
  };
  keep_weights("initial/");

  std::vector<double> tokens;
  std::vector<double> mask;
  for (std::int64_t sample = 0; sample < steps * global_batch; ++sample) {
    for (const std::int32_t id : gpt.batches.tokens_of(sample)) tokens.push_back(id);
    for (std::int64_t i = 0; i < config.sequence; ++i) mask.push_back(gpt.batches.mask_of(sample, i));
  }
  keep("tokens", {steps * global_batch, config.sequence + 1}, tokens);
  keep("mask", {steps * global_batch, config.sequence}, mask);

  std::vector<double> losses;
  std::vector<double> norms;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t first = step * global_batch;
    if (step == 0) {
      gpt.stage.forward(0, gpt.batches.load(0, 1.0), Pass::training);
      const std::int64_t rows = micro_batch * config.sequence;
      const std::vector<double> padded = logits_of(device, config, gpt.store, gpt.stage);
      std::vector<double> values;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto start = padded.begin() + r * config.padded_vocabulary;
        values.insert(values.end(), start, start + config.vocabulary);
      }
      keep("logits", {rows, config.vocabulary}, std::move(values));
      keep("losses", {rows}, read(device, gpt.stage.losses(0)));
    }
    losses.push_back(gpt.accumulate(first, global_batch, micro_batch));
    if (step == 0) {
      for (const auto& [name, values] : gpt.gradients()) {
        keep("gradient/" + name, dimensions(gpt.store.table()[gpt.store.row(name)].logical_shape), values);
      }
    }
    norms.push_back(optimizer.step(rate, decay).grad_norm);
  }
  keep("loss", {steps}, losses);
  keep("norm", {steps}, norms);
  keep_weights("final/");
  for (const LogicalTensor& state : optimizer.state()) {
    const Tensor held = prefix_view(state.local, {state.logical_shape.count()});
    keep(state.name, dimensions(state.logical_shape), read(device, held));
  }
  return record;
}

}  // namespace megalith::testing
