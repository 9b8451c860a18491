#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/model/support/tiny_gpt.h"

namespace megalith {
namespace {

using testing::open_device;
using testing::read;
using testing::tiny_config;
using testing::TinyGpt;

std::vector<double> all_weights(TinyGpt& gpt) {
  std::vector<double> all;
  for (const LogicalTensor& weight : gpt.store.weights()) {
    const std::vector<double> values = read(gpt.device, weight.local);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Optimizer, NormCountsATiedWeightOnceAndPaddingNever) {
  const auto device = open_device("reference");
  TinyGpt gpt(*device, tiny_config(), 2);
  Optimizer optimizer(gpt.store, {});
  gpt.accumulate(0, 2, 2);
  const auto gradients = gpt.gradients();
  double squares = 0.0;
  for (const auto& [name, values] : gradients) {
    if (name == "output_layer.weight") continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double value = values[i];
      if (name == "embedding.word_embeddings.weight") value += gradients.at("output_layer.weight")[i];
      squares += value * value;
    }
  }
  const OptimizerResult result = optimizer.step(0.0, 0.0);
  EXPECT_TRUE(result.applied);
  EXPECT_NEAR(result.grad_norm, std::sqrt(squares), 1e-12 * std::sqrt(squares));
}

TEST(Optimizer, ClipsToTheGlobalNorm) {
  const auto device = open_device("reference");
  OptimizerConfig config;
  config.kind = OptimizerConfig::Kind::sgd;
  config.clip_grad = 0.125;
  TinyGpt gpt(*device, tiny_config(), 2);
  Optimizer optimizer(gpt.store, config);
  gpt.accumulate(0, 2, 2);
  const std::vector<double> before = all_weights(gpt);
  const OptimizerResult result = optimizer.step(1.0, 0.0);
  ASSERT_GT(result.grad_norm, config.clip_grad);
  const std::vector<double> after = all_weights(gpt);
  double squares = 0.0;
  for (std::size_t i = 0; i < after.size(); ++i) squares += std::pow(after[i] - before[i], 2);
  EXPECT_NEAR(std::sqrt(squares), config.clip_grad * result.grad_norm / (result.grad_norm + 1e-6), 1e-12);
}

TEST(Optimizer, DecaysMatricesOnly) {
  const auto device = open_device("reference");
  TinyGpt gpt(*device, tiny_config(), 2);
  Optimizer optimizer(gpt.store, {});
  gpt.store.zero_gradients();
  const auto value = [&](const char* name) {
    return read(*device, gpt.store.master(gpt.store.row(name)))[3];
  };
  const double matrix = value("decoder.layers.1.mlp.linear_fc1.weight");
  const double bias = value("decoder.layers.1.mlp.linear_fc1.bias");
  optimizer.step(0.5, 0.1);
  EXPECT_DOUBLE_EQ(value("decoder.layers.1.mlp.linear_fc1.weight"), matrix * (1.0 - 0.5 * 0.1));
  EXPECT_EQ(value("decoder.layers.1.mlp.linear_fc1.bias"), bias);
}

TEST(Optimizer, SkipsAStepWhoseNormIsNotFinite) {
  const auto device = open_device("reference");
  TinyGpt gpt(*device, tiny_config(), 2);
  Optimizer optimizer(gpt.store, {});
  gpt.accumulate(0, 2, 2);
  EXPECT_TRUE(optimizer.step(0.01, 0.01).applied);
  EXPECT_EQ(optimizer.step_count(), 1);
  const std::vector<double> before = all_weights(gpt);
  const std::vector<double> moments = read(*device, optimizer.state().front().local);
  gpt.accumulate(2, 2, 2);
  device->fill(QueueKind::compute, gpt.store.gradient(3).sliced(0, 0, 1),
               std::numeric_limits<double>::quiet_NaN());
  const OptimizerResult result = optimizer.step(0.01, 0.01);
  EXPECT_FALSE(result.applied);
  EXPECT_FALSE(std::isfinite(result.grad_norm));
  EXPECT_EQ(optimizer.step_count(), 1);
  EXPECT_EQ(all_weights(gpt), before);
  EXPECT_EQ(read(*device, optimizer.state().front().local), moments);
}

TEST(Optimizer, ListsItsStateAndContinuesFromIt) {
  const auto device = open_device("reference");
  TinyGpt whole(*device, tiny_config(), 2);
  Optimizer optimizer(whole.store, {});
  const auto step = [](TinyGpt& gpt, Optimizer& with, std::int64_t first) {
    gpt.accumulate(first, 2, 2);
    with.step(0.01, 0.01);
  };
  step(whole, optimizer, 0);
  step(whole, optimizer, 2);
  const std::vector<LogicalTensor> state = optimizer.state();
  EXPECT_EQ(state.size(), 2 * whole.store.owning_rows().size());
  EXPECT_EQ(state[0].name, "optimizer.exp_avg.embedding.word_embeddings.weight");
  EXPECT_EQ(state[1].name, "optimizer.exp_avg_sq.embedding.word_embeddings.weight");
  EXPECT_EQ(state[0].logical_shape, (Shape{37, 20}));

  TinyGpt resumed(*device, tiny_config(), 2);
  Optimizer second(resumed.store, {});
  const auto copy_all = [&](const std::vector<LogicalTensor>& to, const std::vector<LogicalTensor>& from) {
    ASSERT_EQ(to.size(), from.size());
    for (std::size_t i = 0; i < to.size(); ++i) device->copy(QueueKind::compute, to[i].local, from[i].local);
  };
  copy_all(resumed.store.weights(), whole.store.weights());
  copy_all(second.state(), state);
  second.set_step_count(optimizer.step_count());
  step(whole, optimizer, 4);
  step(resumed, second, 4);
  EXPECT_EQ(all_weights(resumed), all_weights(whole));
}

TEST(Optimizer, MemoryIsWhatWasPlanned) {
  const auto device = open_device("reference");
  TinyGpt gpt(*device, tiny_config(), 2);
  for (const OptimizerConfig::Kind kind : {OptimizerConfig::Kind::adamw, OptimizerConfig::Kind::sgd}) {
    OptimizerConfig config;
    config.kind = kind;
    config.momentum = 0.9;
    const std::size_t before = device->allocated_bytes();
    const Optimizer optimizer(gpt.store, config);
    EXPECT_EQ(device->allocated_bytes() - before, optimizer_bytes(gpt.store.table(), config));
    EXPECT_EQ(optimizer.bytes(), optimizer_bytes(gpt.store.table(), config));
  }
}

// Weights after a step do not depend on how the batch is cut or what is padded.
TEST(Optimizer, StepsAgreeAcrossMicrobatchesAndPadding) {
  const auto device = open_device("reference");
  GptConfig config = tiny_config();
  config.hidden_dropout = 0.1;
  TinyGpt whole(*device, config, 4);
  Optimizer whole_optimizer(whole.store, {});
  whole.accumulate(0, 4, 4);
  const double norm = whole_optimizer.step(0.01, 0.01).grad_norm;
  config.padded_vocabulary = 40;
  TinyGpt cut(*device, config, 1);
  Optimizer cut_optimizer(cut.store, {});
  cut.accumulate(0, 4, 1);
  EXPECT_NEAR(cut_optimizer.step(0.01, 0.01).grad_norm, norm, 1e-12 * norm);
  const int row = whole.store.row("embedding.word_embeddings.weight");
  const auto words = [&](TinyGpt& gpt) { return read(*device, gpt.store.held(gpt.store.master(row), row)); };
  const std::vector<double> a = words(whole);
  const std::vector<double> b = words(cut);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-10 * 0.01);
  const Tensor padding = whole.store.master(row).sliced(0, 37, 64);
  for (const double value : read(*device, padding)) EXPECT_EQ(value, 0.0);
}

// The compute copy is the rounded master after every step.
TEST(Optimizer, RefreshesComputeCopies) {
  for (const DeviceStatus& status : list_devices()) {
    if (!status.available) continue;
    const auto device = open_device(status.name);
    if (!device->supports(DType::bfloat16)) continue;
    GptConfig config = tiny_config();
    config.compute = DType::bfloat16;
    TinyGpt gpt(*device, config, 2);
    Optimizer optimizer(gpt.store, {});
    gpt.accumulate(0, 2, 2);
    EXPECT_TRUE(optimizer.step(0.01, 0.01).applied);
    for (const int row : gpt.store.owning_rows()) {
      const std::vector<double> masters = read(*device, gpt.store.master(row));
      const std::vector<double> copies = read(*device, gpt.store.compute(row));
      for (std::size_t i = 0; i < masters.size(); ++i) {
        ASSERT_EQ(copies[i], static_cast<float>(BFloat16(static_cast<float>(masters[i]))));
      }
    }
  }
}

TEST(Optimizer, ReadsOptions) {
  TrainOptions options;
  options.optimizer = "sgd";
  options.sgd_momentum = 0.9;
  options.clip_grad = 0.5;
  EXPECT_EQ(optimizer_config(options).kind, OptimizerConfig::Kind::sgd);
  EXPECT_EQ(optimizer_config(options).clip_grad, 0.5);
  options.optimizer = "lion";
  EXPECT_THROW(optimizer_config(options), Error);
  options.optimizer = "adam";
  options.adam_beta2 = 1.0;
  EXPECT_THROW(optimizer_config(options), Error);
}

}  // namespace
}  // namespace megalith
