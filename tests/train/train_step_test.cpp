#include "train/train_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/schema.h"
#include "core/train_schema.h"

namespace megalith {
namespace {

// Samples of a fixed pattern, so that every read of a sample gives the same tokens.
class Pattern : public SampleSource {
 public:
  std::int64_t size() const override { return 1000; }
  void read(std::int64_t index, std::span<Token> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<Token>((static_cast<std::size_t>(index) * 7 + i * i) % 23);
    }
  }
};

std::vector<double> all_weights(Device& device, const ParameterStore& store) {
  std::vector<double> values;
  for (const LogicalTensor& weight : store.weights()) {
    std::vector<double> part(static_cast<std::size_t>(weight.local.count()));
    device.copy_to_host(QueueKind::compute, part.data(), weight.local);
    device.synchronize(QueueKind::compute);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

class TrainStep : public testing::Test {
 protected:
  // A float64 run on the reference device with the flags of a tiny model and `flags`.
  void open(std::vector<std::string> flags) {
    std::vector<std::string> arguments{"--num-layers",
                                       "1",
                                       "--hidden-size",
                                       "8",
                                       "--num-attention-heads",
                                       "2",
                                       "--seq-length",
                                       "6",
                                       "--max-position-embeddings",
                                       "6",
                                       "--vocab-size",
                                       "23",
                                       "--fp64",
                                       "--device",
                                       "reference",
                                       "--mock-data",
                                       "--train-iters",
                                       "10",
                                       "--optimizer",
                                       "sgd",
                                       "--sgd-momentum",
                                       "0",
                                       "--lr",
                                       "1e-4",
                                       "--lr-decay-style",
                                       "constant",
                                       "--clip-grad",
                                       "0",
                                       "--weight-decay",
                                       "0",
                                       "--hidden-dropout",
                                       "0",
                                       "--attention-dropout",
                                       "0",
                                       "--micro-batch-size",
                                       "2",
                                       "--global-batch-size",
                                       "4"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Schema schema("train", "test");
    options = {};
    declare_train_settings(schema, options);
    schema.parse(arguments);
    config = gpt_config(options, 23);
    state.reset();
    device = make_device({"reference", 1, false, 1});
    state = std::make_unique<TrainingState>(*device, options, config);
    state->store.initialize(5);
    rules = {DocumentRules{}, options.seq_length, options.micro_batch_size, options.calculate_per_token_loss};
  }

  TrainOptions options;
  GptConfig config;
  std::unique_ptr<Device> device;
  std::unique_ptr<TrainingState> state;
  StepRules rules;
  Pattern source;
};

class TrainStepOf : public TrainStep, public testing::WithParamInterface<std::string> {};

// To first order an SGD step changes the loss by -|step|^2 / lr if, and only if, the step is the loss's
// gradient: a gradient counted twice, left out or scaled breaks the equality.
TEST_P(TrainStepOf, AnSgdStepFollowsTheGradientOfTheLossItReports) {
  std::vector<std::string> flags;
  if (!GetParam().empty()) flags.push_back(GetParam());
  open(flags);
  const std::vector<double> before = all_weights(*device, state->store);
  const StepResult first = train_step(*state, source, 4, rules);
  const std::vector<double> after = all_weights(*device, state->store);
  const StepResult second = train_step(*state, source, 4, rules);
  ASSERT_TRUE(first.applied);
  double squared = 0;
  for (std::size_t i = 0; i < before.size(); ++i) squared += (after[i] - before[i]) * (after[i] - before[i]);
  const double expected = -squared / options.lr;
  EXPECT_NEAR((second.loss - first.loss) / expected, 1.0, 1e-3);
  EXPECT_NEAR(first.grad_norm, std::sqrt(squared) / options.lr, 1e-9 * first.grad_norm);
}

INSTANTIATE_TEST_SUITE_P(Models, TrainStepOf,
                         testing::Values("", "--untie-embeddings-and-output-weights",
                                         "--no-calculate-per-token-loss", "--recompute-activations"));

TEST_F(TrainStep, TheBatchNotItsMicrobatchesDefinesTheStep) {
  std::vector<std::vector<double>> results;
  for (const char* micro_batch : {"1", "2", "4"}) {
    open({"--micro-batch-size", micro_batch});
    train_step(*state, source, 4, rules);
    results.push_back(all_weights(*device, state->store));
  }
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_NEAR(results[1][i], results[0][i], 1e-13);
    EXPECT_NEAR(results[2][i], results[0][i], 1e-13);
  }
}

TEST(ReadBatch, DocumentRulesFollowTheEndOfDocument) {
  class Documents : public SampleSource {
   public:
    std::int64_t size() const override { return 1; }
    void read(std::int64_t, std::span<Token> tokens) const override {
      const std::vector<Token> fixed{5, 6, 0, 7, 0, 8, 9};
      std::copy(fixed.begin(), fixed.end(), tokens.begin());
    }
  };
  const Documents source;
  const HostBatch plain = read_batch(source, 0, 1, 6, {});
  EXPECT_EQ(plain.targets, (std::vector<Token>{6, 0, 7, 0, 8, 9}));
  EXPECT_EQ(plain.positions, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(plain.unmasked, 6);
  EXPECT_TRUE(plain.cu_seqlens.empty());
  HostBatch numbered = read_batch(source, 0, 2, 6, {});
  number_words(numbered);
  ASSERT_EQ(numbered.word_numbers.size(), numbered.tokens.size());
  for (std::size_t i = 0; i < numbered.tokens.size(); ++i) {
    EXPECT_EQ(numbered.words[static_cast<std::size_t>(numbered.word_numbers[i])], numbered.tokens[i]);
  }
  std::sort(numbered.words.begin(), numbered.words.end());
  EXPECT_EQ(std::adjacent_find(numbered.words.begin(), numbered.words.end()), numbered.words.end());

  const HostBatch cut = read_batch(source, 0, 1, 6, {0, true, true, true});
  EXPECT_EQ(cut.positions, (std::vector<std::int32_t>{0, 1, 2, 0, 1, 0}));
  EXPECT_EQ(cut.loss_mask, (std::vector<double>{1, 1, 0, 1, 0, 1}));
  EXPECT_EQ(cut.unmasked, 4);
  EXPECT_EQ(cut.cu_seqlens, (std::vector<std::int32_t>{0, 3, 5, 6, 6, 6, 6}));
}

}  // namespace
}  // namespace megalith
