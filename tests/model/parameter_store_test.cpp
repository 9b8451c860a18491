#include "model/parameter_store.h"

#include <gtest/gtest.h>

#include "tests/model/support/tiny_gpt.h"

namespace megalith {
namespace {

using testing::open_device;
using testing::read;
using testing::tiny_config;

// Element i of a parameter depends on (seed, name, i) and nothing else.
TEST(ParameterStore, InitialisesByElementNumber) {
  const auto device = open_device("reference");
  const GptConfig config = tiny_config();
  ParameterStore store(*device, build_gpt_parameter_table(config));
  store.initialize(5);
  const std::string name = "embedding.word_embeddings.weight";
  const int row = store.row(name);
  const std::vector<double> values = read(*device, store.master(row));
  const PhiloxKey key = philox_key(5, "init:" + name);
  const auto held = static_cast<std::size_t>(config.vocabulary * config.hidden);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i >= held) {
      EXPECT_EQ(values[i], 0.0) << "padding row";
      continue;
    }
    const PhiloxCounter words = philox({static_cast<std::uint32_t>(i / 4), 0, 0, 0}, key);
    const std::size_t pair = i % 4 / 2 * 2;
    const double expected = config.init_std * normal_from_bits(words[pair], words[pair + 1])[i % 2];
    EXPECT_EQ(values[i], expected) << i;
  }
  EXPECT_EQ(read(*device, store.master(store.row("decoder.final_layernorm.weight"))),
            std::vector<double>(static_cast<std::size_t>(config.hidden), 1.0));
}

TEST(ParameterStore, TiesWeightsButNotGradients) {
  const auto device = open_device("reference");
  GptConfig config = tiny_config();
  ParameterStore store(*device, build_gpt_parameter_table(config));
  const int words = store.row("embedding.word_embeddings.weight");
  const int head = store.row("output_layer.weight");
  EXPECT_EQ(store.owner(head), words);
  EXPECT_EQ(store.master(head).address, store.master(words).address);
  EXPECT_NE(store.gradient(head).address, store.gradient(words).address);
  store.zero_gradients();
  device->fill(QueueKind::compute, store.gradient_sink(words).to_add_to(*device), 2.0);
  device->fill(QueueKind::compute, store.gradient_sink(head).to_add_to(*device), 0.5);
  store.finish_gradients();
  EXPECT_EQ(read(*device, store.gradient(words)).front(), 2.5);
  EXPECT_EQ(store.weights().size(), store.owning_rows().size());
  EXPECT_EQ(store.owning_rows().size() + 1, static_cast<std::size_t>(store.table().size()));

  config.tied = false;
  ParameterStore untied(*device, build_gpt_parameter_table(config));
  EXPECT_EQ(untied.owner(head), head);
  EXPECT_NE(untied.master(head).address, untied.master(words).address);
}

TEST(ParameterStore, HeldElementsLeaveOutPadding) {
  const auto device = open_device("reference");
  const GptConfig config = tiny_config();
  ParameterStore store(*device, build_gpt_parameter_table(config));
  const int words = store.row("embedding.word_embeddings.weight");
  EXPECT_EQ(store.master(words).shape, (Shape{config.padded_vocabulary, config.hidden}));
  EXPECT_EQ(store.held(store.master(words), words).shape, Shape{config.vocabulary * config.hidden});
}

TEST(ParameterStore, NeedsNoGradientsForInference) {
  const auto device = open_device("reference");
  const ParameterTable table = build_gpt_parameter_table(tiny_config());
  const std::size_t before = device->allocated_bytes();
  ParameterStore store(*device, table, /*with_gradients=*/false);
  EXPECT_EQ(device->allocated_bytes() - before, parameter_memory(table).master);
  store.zero_gradients();
}

TEST(ParameterStore, KeepsCopiesForSmallerTypes) {
  for (const DeviceStatus& status : list_devices()) {
    if (!status.available) continue;
    const auto device = open_device(status.name);
    if (!device->supports(DType::bfloat16)) continue;
    GptConfig config = tiny_config();
    config.compute = DType::bfloat16;
    ParameterStore store(*device, build_gpt_parameter_table(config));
    store.initialize(5);
    const int row = store.row("decoder.layers.0.mlp.linear_fc1.weight");
    EXPECT_EQ(store.master(row).dtype, DType::float32);
    EXPECT_EQ(store.compute(row).dtype, DType::bfloat16);
    const std::vector<double> masters = read(*device, store.master(row));
    const std::vector<double> copies = read(*device, store.compute(row));
    for (std::size_t i = 0; i < masters.size(); ++i) {
      EXPECT_EQ(copies[i], static_cast<float>(BFloat16(static_cast<float>(masters[i]))));
    }
    EXPECT_EQ(store.gradient(row).dtype, DType::float32);
  }
}

}  // namespace
}  // namespace megalith
