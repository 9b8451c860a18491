#include "model/gpt_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/gpt_memory.h"
#include "tests/model/support/tiny_gpt.h"

namespace megalith {
namespace {

using testing::open_device;
using testing::read;
using testing::tiny_config;
using testing::TinyGpt;
using testing::write;

using Gradients = std::map<std::string, std::vector<double>>;

std::string layer_of(const std::string& name) {
  const std::string prefix = "decoder.layers.";
  if (name.rfind(prefix, 0) != 0) return name;
  return name.substr(0, name.find('.', prefix.size()));
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// max|a-b| / max(max|b|, 1e-3 * the largest gradient of that layer), the worst of all parameters.
double difference(const Gradients& a, const Gradients& b) {
  std::map<std::string, double> layer_largest;
  for (const auto& [name, values] : b) {
    double& most = layer_largest[layer_of(name)];
    most = std::max(most, largest(values));
  }
  double worst = 0.0;
  for (const auto& [name, values] : b) {
    const std::vector<double>& other = a.at(name);
    const double scale = std::max(largest(values), 1e-3 * layer_largest[layer_of(name)]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::abs(other[i] - values[i]) / scale);
    }
  }
  return worst;
}

GptConfig with_dropout(GptConfig config) {
  config.hidden_dropout = 0.2;
  config.attention_dropout = 0.15;
  return config;
}

struct Place {
  std::string device;
  DType compute;
  bool strict = false;
};

std::vector<Place> places() {
  std::vector<Place> all = {{"reference", DType::float64}, {"reference", DType::float32}};
  for (const DeviceStatus& status : list_devices()) {
    if (status.name == "reference" || !status.available) continue;
    all.push_back({status.name, DType::float32});
    all.push_back({status.name, DType::bfloat16});
  }
  return all;
}

// Central differences of the loss along random single elements of every parameter, dropout on.
void check_finite_differences(const GptConfig& config) {
  const auto device = open_device("reference");
  TinyGpt gpt(*device, config, 2);
  gpt.accumulate(3, 2, 2);
  gpt.store.finish_gradients();
  const Gradients gradients = gpt.gradients();
  for (const int row : gpt.store.owning_rows()) {
    const Parameter& parameter = gpt.store.table()[row];
    const Tensor weight = gpt.store.held(gpt.store.master(row), row);
    std::vector<double> values = read(*device, weight);
    const std::vector<double>& gradient = gradients.at(parameter.name);
    const double scale = std::max(largest(gradient), 1e-4);
    for (int trial = 0; trial < 3; ++trial) {
      const std::size_t i =
          testing::test_word(parameter.name, trial) % static_cast<std::uint32_t>(values.size());
      const double kept = values[i];
      const double h = 1e-5;
      values[i] = kept + h;
      write(*device, weight, values);
      const double above = gpt.loss(3, 2);
      values[i] = kept - h;
      write(*device, weight, values);
      const double below = gpt.loss(3, 2);
      values[i] = kept;
      write(*device, weight, values);
      EXPECT_NEAR((above - below) / (2 * h), gradient[i], 1e-6 * scale + 1e-9) << parameter.name << " " << i;
    }
  }
}

TEST(GptStage, GradientsMatchFiniteDifferences) {
  GptConfig config = with_dropout(tiny_config());
  check_finite_differences(config);
  config.tied = false;
  config.activation = Activation::gelu_erf;
  config.hidden_dropout = 0.0;
  check_finite_differences(config);
}

TEST(GptStage, DropoutDependsOnSampleAndSite) {
  const auto device = open_device("reference");
  TinyGpt plain(*device, tiny_config(), 1);
  TinyGpt dropped(*device, with_dropout(tiny_config()), 1);
  EXPECT_NE(plain.loss(0, 1), dropped.loss(0, 1));
  EXPECT_EQ(dropped.loss(0, 1), dropped.loss(0, 1));
  // Evaluation has no dropout.
  dropped.batches.clear_loss();
  dropped.stage.forward(0, dropped.batches.load(0, 1.0), Pass::evaluation);
  EXPECT_EQ(dropped.batches.loss_sum() / dropped.batches.unmasked(0, 1), plain.loss(0, 1));
  // The same tokens under another sample number meet another mask.
  const double first = dropped.loss(0, 1);
  dropped.batches.load(0, 1.0);
  const std::int64_t other = 77;
  device->copy_to_device(QueueKind::compute, dropped.batches.batch().samples, &other);
  dropped.batches.clear_loss();
  dropped.stage.forward(0, dropped.batches.batch(), Pass::training);
  EXPECT_NE(dropped.batches.loss_sum() / dropped.batches.unmasked(0, 1), first);
}

// The same gradients, to the last bit, whatever is recomputed.
TEST(GptStage, RecomputationChangesNoBit) {
  for (const Place& place : places()) {
    SCOPED_TRACE(place.device + " " + std::string(name_of(place.compute)));
    const auto device = open_device(place.device);
    GptConfig config = with_dropout(tiny_config());
    config.layers = 3;
    config.compute = place.compute;
    TinyGpt kept(*device, config, 2);
    const double loss = kept.accumulate(0, 4, 2);
    const Gradients expected = kept.gradients();
    const auto compare = [&](GptConfig other) {
      TinyGpt gpt(*device, other, 2);
      EXPECT_EQ(gpt.accumulate(0, 4, 2), loss);
      EXPECT_EQ(gpt.gradients(), expected);
      EXPECT_LT(gpt.stage.bytes(), kept.stage.bytes());
    };
    config.recompute = RecomputeGranularity::selective;
    compare(config);
    config.recompute = RecomputeGranularity::full;
    config.recompute_layers = 1;
    compare(config);
    config.recompute_layers = 2;  // groups of 2 and 1
    compare(config);
    config.recompute_method = RecomputeMethod::block;
    compare(config);
  }
}

TEST(GptStage, MicrobatchSplitDoesNotMatter) {
  const auto device = open_device("reference");
  const GptConfig config = with_dropout(tiny_config());
  TinyGpt whole(*device, config, 4);
  const double loss = whole.accumulate(8, 4, 4);
  const Gradients expected = whole.gradients();
  for (const std::int64_t micro_batch : {1, 2}) {
    TinyGpt gpt(*device, config, micro_batch);
    EXPECT_NEAR(gpt.accumulate(8, 4, micro_batch), loss, 1e-12);
    EXPECT_LT(difference(gpt.gradients(), expected), 1e-10);
  }
  // The measure notices a wrong scale: gradients of another number of tokens.
  TinyGpt wrong(*device, config, 2);
  wrong.accumulate(8, 2, 2);
  EXPECT_GT(difference(wrong.gradients(), expected), 1e-2);
}

TEST(GptStage, VocabularyPaddingIsStorageOnly) {
  const auto device = open_device("reference");
  for (const bool tied : {true, false}) {
    GptConfig config = tiny_config();
    config.tied = tied;
    TinyGpt padded(*device, config, 2);
    config.padded_vocabulary = config.vocabulary;
    TinyGpt exact(*device, config, 2);
    EXPECT_NEAR(padded.accumulate(0, 2, 2), exact.accumulate(0, 2, 2), 1e-13);
    EXPECT_LT(difference(padded.gradients(), exact.gradients()), 1e-12);
    const int row = padded.store.row("output_layer.weight");
    const Tensor gradient = padded.store.gradient(row);
    EXPECT_EQ(largest(read(*device, gradient.sliced(0, config.vocabulary, gradient.shape[0]))), 0.0);
  }
}

TEST(GptStage, SplitBackwardEqualsBackward) {
  for (const bool dropout : {true, false}) {
    const auto device = open_device("reference");
    const GptConfig config = dropout ? with_dropout(tiny_config()) : tiny_config();
    TinyGpt gpt(*device, config, 2);
    gpt.accumulate(0, 4, 2);
    TinyGpt split(*device, config, 2, /*split_backward=*/true);
    // Two microbatches in flight: both inputs' gradients before any weight's.
    GptStage stage(*device, config, split.store, StageRange::whole(config), {2, 2, true, true});
    const double scale = 1.0 / split.batches.unmasked(0, 4);
    testing::Batches second(*device, config, 2);
    stage.forward(0, split.batches.load(0, scale), Pass::training);
    stage.forward(1, second.load(2, scale), Pass::training);
    stage.backward_input(0, split.batches.batch());
    stage.backward_input(1, second.batch());
    stage.backward_weight(0);
    stage.backward_weight(1);
    EXPECT_EQ(split.gradients(), gpt.gradients());
  }
}

TEST(GptStage, TwoStagesEqualOne) {
  const auto device = open_device("reference");
  const GptConfig config = with_dropout(tiny_config());
  TinyGpt whole(*device, config, 2);
  whole.accumulate(0, 2, 2);
  const Gradients expected = whole.gradients();
  whole.store.zero_gradients();
  GptStage first(*device, config, whole.store, {true, 0, 1, false}, {2});
  GptStage last(*device, config, whole.store, {false, 1, 1, true}, {2});
  const MicroBatch& batch = whole.batches.batch();
  first.forward(0, batch, Pass::training);
  device->copy(QueueKind::compute, last.input(0), first.output(0));
  last.forward(0, batch, Pass::training);
  last.backward(0, batch);
  device->copy(QueueKind::compute, first.output_gradient(0), last.input_gradient(0));
  first.backward(0, batch);
  EXPECT_EQ(whole.gradients(), expected);
}

// A store whose embedding gradient has a row for each word of the step, against one with all rows.
TEST(GptStage, GradientsOfTheStepsWordsAreThoseOfAll) {
  for (const Place& place : places()) {
    SCOPED_TRACE(place.device + " " + std::string(name_of(place.compute)));
    const auto device = open_device(place.device);
    GptConfig config = tiny_config();
    config.compute = place.compute;
    TinyGpt gpt(*device, config, 2);
    gpt.accumulate(0, 4, 2);
    gpt.store.finish_gradients();

    std::vector<std::int32_t> words;
    std::vector<std::int32_t> numbers;
    for (std::int64_t sample = 0; sample < 4; ++sample) {
      for (std::int64_t i = 0; i < config.sequence; ++i) {
        const std::int32_t token = gpt.batches.tokens_of(sample)[static_cast<std::size_t>(i)];
        const auto found = std::find(words.begin(), words.end(), token);
        numbers.push_back(static_cast<std::int32_t>(found - words.begin()));
        if (found == words.end()) words.push_back(token);
      }
    }
    const std::int64_t count = static_cast<std::int64_t>(words.size());
    ParameterStore store(*device, build_gpt_parameter_table(config), /*with_gradients=*/true, count + 3);
    const int row = store.row("embedding.word_embeddings.weight");
    ASSERT_TRUE(store.has_word_gradient(row));
    EXPECT_EQ(store.gradient(row).shape, (Shape{count + 3, config.hidden}));
    store.initialize(config.seed);
    testing::randomise_vectors(store);
    GptStage stage(*device, config, store, StageRange::whole(config), {2});
    const DeviceMemory memory(*device, (words.size() + numbers.size()) * sizeof(std::int32_t));
    const Tensor of_step = memory.tensor(DType::int32, {count});
    const Tensor of_tokens = memory.tensor(DType::int32, {40}, words.size() * sizeof(std::int32_t));
    device->copy_to_device(QueueKind::compute, of_step, words.data());
    device->copy_to_device(QueueKind::compute, of_tokens, numbers.data());
    store.zero_gradients(of_step);
    const double scale = 1.0 / gpt.batches.unmasked(0, 4);
    for (std::int64_t sample = 0; sample < 4; sample += 2) {
      MicroBatch batch = gpt.batches.load(sample, scale);
      batch.word_numbers = of_tokens.sliced(0, sample * 10, sample * 10 + 20);
      stage.forward(0, batch, Pass::training);
      stage.backward(0, batch);
    }
    store.finish_gradients();
    for (const int owner : store.owning_rows()) {
      EXPECT_EQ(read(*device, store.total_gradient(owner)), read(*device, gpt.store.total_gradient(owner)))
          << store.table()[owner].name;
    }
  }
}

// Documents packed into one sequence with reset positions and attention lose exactly what they lose alone.
TEST(GptStage, DocumentBoundariesSeparate) {
  const auto device = open_device("reference");
  const GptConfig config = tiny_config();
  TinyGpt gpt(*device, config, 2);
  const std::vector<std::int32_t> a = gpt.batches.tokens_of(0);
  const std::vector<std::int32_t> b = gpt.batches.tokens_of(1);
  // Sequence 0: 4 tokens of a, then 6 of b; sequence 1: b alone.
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> positions;
  for (int i = 0; i < 10; ++i) {
    const std::size_t from = static_cast<std::size_t>(i < 4 ? i : i - 4);
    const std::vector<std::int32_t>& document = i < 4 ? a : b;
    tokens.push_back(document[from]);
    targets.push_back(document[from + 1]);
    positions.push_back(static_cast<std::int32_t>(from));
  }
  for (std::size_t i = 0; i < 10; ++i) {
    tokens.push_back(b[i]);
    targets.push_back(b[i + 1]);
    positions.push_back(static_cast<std::int32_t>(i));
  }
  const std::vector<std::int32_t> boundaries = {0, 4, 10, 10, 0, 10, 10, 10};
  const DeviceMemory memory(*device, boundaries.size() * sizeof(std::int32_t));
  gpt.batches.upload(tokens, targets, positions, std::vector<double>(20, 1.0), {0, 1}, 1.0);
  MicroBatch batch = gpt.batches.batch();
  batch.cu_seqlens = memory.tensor(DType::int32, {2, 4});
  device->copy_to_device(QueueKind::compute, batch.cu_seqlens, boundaries.data());
  gpt.stage.forward(0, batch, Pass::training);
  const std::vector<double> packed = read(*device, gpt.stage.losses(0));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(packed[4 + i], packed[10 + i], 1e-12);
  gpt.stage.backward(0, batch);
  const Gradients together = gpt.gradients();

  // Without boundaries the second document sees the first.
  gpt.stage.forward(0, gpt.batches.batch(), Pass::training);
  const std::vector<double> mixed = read(*device, gpt.stage.losses(0));
  EXPECT_GT(std::abs(mixed[4] - packed[4]), 1e-3);
  for (std::size_t i = 10; i < 20; ++i) EXPECT_NEAR(mixed[i], packed[i], 1e-12);

  // Gradients: the two documents of sequence 0 in sequences of their own, the rest masked, and sequence 1
  // once more.
  gpt.store.zero_gradients();
  for (const std::vector<std::int32_t>* document : {&a, &b}) {
    const std::size_t length = document == &a ? 4 : 6;
    std::vector<double> mask(20, 0.0);
    for (std::size_t i = 0; i < length; ++i) mask[i] = 1.0;
    if (document == &b) std::fill(mask.begin() + 10, mask.end(), 1.0);
    std::vector<std::int32_t> ids(document->begin(), document->begin() + 10);
    std::vector<std::int32_t> next(document->begin() + 1, document->begin() + 11);
    ids.insert(ids.end(), b.begin(), b.begin() + 10);
    next.insert(next.end(), b.begin() + 1, b.begin() + 11);
    std::vector<std::int32_t> order(positions.begin() + 10, positions.end());
    order.insert(order.end(), positions.begin() + 10, positions.end());
    gpt.batches.upload(ids, next, order, mask, {0, 1}, 1.0);
    gpt.stage.forward(0, gpt.batches.batch(), Pass::training);
    gpt.stage.backward(0, gpt.batches.batch());
  }
  EXPECT_LT(difference(together, gpt.gradients()), 1e-10);
}

TEST(GptStage, MemoryIsWhatWasPlanned) {
  const auto device = open_device("reference");
  for (const RecomputeGranularity granularity :
       {RecomputeGranularity::none, RecomputeGranularity::selective, RecomputeGranularity::full}) {
    GptConfig config = with_dropout(tiny_config());
    config.compute = DType::float32;
    config.recompute = granularity;
    const ParameterTable table = build_gpt_parameter_table(config);
    const StageRange range = StageRange::whole(config);
    const StageCapacity capacity{2};
    const GptMemory memory = gpt_memory(config, table, range, capacity);
    const std::size_t before = device->allocated_bytes();
    ParameterStore store(*device, table);
    EXPECT_EQ(device->allocated_bytes() - before, memory.master_weights + memory.gradients);
    GptStage stage(*device, config, store, range, capacity);
    EXPECT_EQ(device->allocated_bytes() - before, memory.total());
    EXPECT_EQ(stage.bytes(), memory.activations);
    testing::Batches batches(*device, config, 2);
    const std::size_t peak = device->peak_bytes();
    store.initialize(1);
    store.zero_gradients();
    stage.forward(0, batches.load(0, 1.0), Pass::training);
    stage.backward(0, batches.batch());
    device->synchronize(QueueKind::compute);
    EXPECT_EQ(device->peak_bytes(), peak) << "a step took memory";
  }
}

// What one more layer keeps, by hand: norm_1, norm_2, middle, input [R, H]; qkv, attended [R, 4 Q];
// preactivation, activated [R, F]; four statistics [R]; log-sum-exp [B, N, S]. Sizes are multiples of 64
// bytes here.
TEST(GptStage, ActivationMemoryOfALayerIsTheFormula) {
  GptConfig config = tiny_config();
  config.compute = DType::float32;
  config.hidden = 32;
  config.ffn = 64;
  config.heads = 2;
  config.head_size = 16;
  config.sequence = 16;
  config.max_positions = 16;
  const std::int64_t rows = 32;
  const auto bytes_of = [&](RecomputeGranularity granularity, std::int64_t layers) {
    GptConfig with = config;
    with.recompute = granularity;
    with.layers = layers;
    return static_cast<std::int64_t>(stage_bytes(with, StageRange::whole(with), {2}));
  };
  const auto grows = [&](RecomputeGranularity granularity) {
    return bytes_of(granularity, 5) - bytes_of(granularity, 4);
  };
  const std::int64_t all = 4 * rows * (4 * 32 + 4 * 32 + 2 * 64 + 4 + 2);
  EXPECT_EQ(grows(RecomputeGranularity::none), all);
  EXPECT_EQ(grows(RecomputeGranularity::selective), all - 4 * rows * (2 * 32 + 64));
  EXPECT_EQ(grows(RecomputeGranularity::full), 4 * rows * 32);
}

TEST(GptStage, Bfloat16FollowsFloat32) {
  for (const Place& place : places()) {
    if (place.compute != DType::bfloat16) continue;
    const auto device = open_device(place.device);
    GptConfig config = tiny_config();
    config.init_std = 0.1;
    config.compute = DType::float32;
    TinyGpt exact(*device, config, 2);
    const double loss = exact.accumulate(0, 4, 2);
    config.compute = DType::bfloat16;
    TinyGpt rounded(*device, config, 2);
    EXPECT_NEAR(rounded.accumulate(0, 4, 2), loss, 0.02);
    // Eight bits of mantissa through some ten roundings.
    EXPECT_LT(difference(rounded.gradients(), exact.gradients()), 0.1);
  }
}

// The reference device's strict mode: addresses without access rights, queues late and out of step.
TEST(GptStage, RunsInStrictMode) {
  const GptConfig config = with_dropout(tiny_config());
  const auto device = open_device("reference");
  TinyGpt gpt(*device, config, 2);
  const auto strict = open_device("reference", /*strict=*/true);
  TinyGpt other(*strict, config, 2);
  EXPECT_EQ(other.accumulate(0, 4, 2), gpt.accumulate(0, 4, 2));
  EXPECT_EQ(other.gradients(), gpt.gradients());
}

TEST(GptStage, CpuFollowsTheReference) {
  for (const Place& place : places()) {
    if (place.device == "reference" || place.compute != DType::float32) continue;
    for (const bool dropout : {true, false}) {
      GptConfig config = dropout ? with_dropout(tiny_config()) : tiny_config();
      const auto reference = open_device("reference");
      TinyGpt exact(*reference, config, 2);
      const double loss = exact.accumulate(0, 4, 2);
      config.compute = DType::float32;
      const auto device = open_device(place.device);
      TinyGpt gpt(*device, config, 2);
      EXPECT_NEAR(gpt.accumulate(0, 4, 2), loss, 1e-5);
      EXPECT_LT(difference(gpt.gradients(), exact.gradients()), 1e-5);
    }
  }
}

TEST(GptStage, RefusesABatchOfAnotherSize) {
  const auto device = open_device("reference");
  TinyGpt gpt(*device, tiny_config(), 2);
  testing::Batches larger(*device, tiny_config(), 3);
  EXPECT_THROW(gpt.stage.forward(0, larger.load(0, 1.0), Pass::training), Error);
}

}  // namespace
}  // namespace megalith
