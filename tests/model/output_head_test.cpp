// The head in chunks of rows against the head in one piece.
#include "model/output_head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/support/tiny_gpt.h"

namespace megalith {
namespace {

using testing::open_device;
using testing::read;
using testing::tiny_config;
using testing::TinyGpt;

struct HeadResult {
  double loss_sum = 0;
  std::vector<double> losses;
  std::vector<double> norm_gradient;
  std::vector<double> weight_gradient;
};

// Two microbatches through the head alone, `chunk` rows at a time.
HeadResult run_head(Device& device, TinyGpt& gpt, std::int64_t chunk, Pass pass) {
  const GptConfig& config = gpt.config;
  HeadActivations kept;
  HeadScratch scratch;
  const auto allocate = [&](Arena& arena) {
    kept = allocate_head_activations(arena, "head", config, 2);
    scratch = allocate_head_scratch(arena, "scratch", config, chunk);
  };
  Arena counting;
  allocate(counting);
  Arena arena(device, counting.bytes());
  allocate(arena);
  const OutputHead head(config, gpt.store);
  gpt.store.zero_gradients();
  gpt.batches.clear_loss();
  for (const std::int64_t sample : {0, 2}) {
    head.forward_loss(device, gpt.batches.load(sample, 0.125), pass, kept, scratch, gpt.stage.output(0));
  }
  HeadResult result;
  result.loss_sum = gpt.batches.loss_sum();
  result.losses = read(device, kept.losses);
  result.norm_gradient = read(device, kept.norm);
  if (pass == Pass::training) {
    const int row = gpt.store.row("output_layer.weight");
    result.weight_gradient = read(device, gpt.store.gradient(row));
  }
  return result;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double most) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], most) << i;
}

TEST(OutputHead, ChunksOfRowsAddUp) {
  for (const DeviceStatus& status : list_devices()) {
    if (!status.available) continue;
    SCOPED_TRACE(status.name);
    const auto device = open_device(status.name);
    GptConfig config = tiny_config();
    if (!device->supports(DType::float64)) config.compute = DType::float32;
    const double most = config.compute == DType::float64 ? 1e-13 : 1e-5;
    TinyGpt gpt(*device, config, 2);
    gpt.stage.forward(0, gpt.batches.load(0, 1.0), Pass::evaluation);
    const HeadResult whole = run_head(*device, gpt, 20, Pass::training);
    for (const std::int64_t chunk : {1, 7, 10}) {
      SCOPED_TRACE(chunk);
      const HeadResult parts = run_head(*device, gpt, chunk, Pass::training);
      EXPECT_NEAR(parts.loss_sum, whole.loss_sum, 20 * most);
      expect_near(parts.losses, whole.losses, most);
      expect_near(parts.norm_gradient, whole.norm_gradient, most);
      expect_near(parts.weight_gradient, whole.weight_gradient, most);
    }
    const HeadResult evaluated = run_head(*device, gpt, 7, Pass::evaluation);
    EXPECT_EQ(evaluated.losses, run_head(*device, gpt, 7, Pass::training).losses);
  }
}

TEST(OutputHead, LogitsOfOneChunkAreAllThatExist) {
  GptConfig config = tiny_config();
  Arena few;
  allocate_head_scratch(few, "scratch", config, head_chunk_rows(config.compute));
  Arena many;
  allocate_head_scratch(many, "scratch", config, 100 * head_chunk_rows(config.compute));
  EXPECT_EQ(many.bytes(), few.bytes());
}

}  // namespace
}  // namespace megalith
