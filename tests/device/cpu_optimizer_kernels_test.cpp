// Norms, clipping and optimizers on the cpu device.
#include "tests/device/support/vectorised_kernels.h"

namespace megalith::kernel_test {
namespace {

TEST(CpuKernels, NormsAndClipFactor) {
  for (const DType type : compute_types) {
    for (const std::int64_t count : {0, 1, 4095, 4096, 4097, 50000}) {
      expect_equal_on_all_targets("block_norms", 1e-13, [&](Memory& memory) {
        const std::int64_t blocks = (count + norm_block - 1) / norm_block;
        const Tensor x = memory.random(type, {count}, 25);
        const Tensor partials = memory.poisoned(DType::float64, {blocks});
        memory.device().block_norms(queue, partials, x);
        std::vector<Values> outputs{memory.get(partials)};
        for (const double max_norm : {0.0, 1.0, 1e6}) {
          const Tensor norm = memory.scalar(std::nan(""));
          const Tensor scale = memory.scalar(std::nan(""));
          memory.device().clip_factor(queue, {.partials = partials,
                                              .inverse_loss_scale = memory.scalar(0.125),
                                              .max_norm = max_norm,
                                              .norm = norm,
                                              .gradient_scale = scale});
          outputs.push_back(memory.get(norm));
          outputs.push_back(memory.get(scale));
        }
        return outputs;
      });
    }
  }
  expect_equal_on_all_targets("clip_factor of an infinite norm", 0.0, [](Memory& memory) {
    const Tensor norm = memory.scalar(0.0);
    const Tensor scale = memory.scalar(0.0);
    memory.device().clip_factor(
        queue, {.partials = memory.put(DType::float64, {2}, {1.0, std::numeric_limits<double>::infinity()}),
                .inverse_loss_scale = memory.scalar(1.0),
                .max_norm = 1.0,
                .norm = norm,
                .gradient_scale = scale});
    return std::vector<Values>{memory.get(norm), memory.get(scale)};
  });
}

// The change of the weights is compared, in units of the learning rate.
TEST(CpuKernels, Optimizers) {
  for (const std::int64_t count : {0, 1, 7, 64, 10007}) {
    for (const double gradient_scale : {0.5, -1.0}) {
      expect_equal_on_all_targets("adamw", 1e-5, [&](Memory& memory) {
        constexpr double rate = 0.25;
        const Shape shape{count};
        const Tensor weights = memory.random(DType::float32, shape, 26);
        const Tensor gradient = memory.random(DType::float32, shape, 27);
        const Tensor first = memory.random(DType::float32, shape, 28);
        const Tensor second =
            memory.put(DType::float32, shape, Values(static_cast<std::size_t>(count), 0.01));
        const Tensor copy = memory.put(DType::bfloat16, shape, Values(static_cast<std::size_t>(count), 3.0));
        memory.device().adamw(queue, {.weights = weights,
                                      .gradient = gradient,
                                      .exp_avg = first,
                                      .exp_avg_sq = second,
                                      .learning_rate = memory.scalar(rate),
                                      .step = memory.put(DType::int64, {1}, {3}),
                                      .gradient_scale = memory.scalar(gradient_scale),
                                      .lr_mult = 0.5,
                                      .weight_decay = 0.1});
        std::vector<Values> outputs{memory.get(weights), memory.get(first), memory.get(second)};
        memory.device().adamw(queue, {.weights = weights,
                                      .gradient = gradient,
                                      .exp_avg = first,
                                      .exp_avg_sq = second,
                                      .compute_copy = copy,
                                      .learning_rate = memory.scalar(rate),
                                      .step = memory.put(DType::int64, {1}, {4}),
                                      .gradient_scale = memory.scalar(gradient_scale)});
        outputs.push_back(memory.get(weights));
        // Rounded: equal to the weights as they are on this device.
        const Values rounded = memory.get(copy);
        for (std::size_t i = 0; !memory.widened() && gradient_scale >= 0.0 && i < rounded.size(); ++i) {
          EXPECT_EQ(rounded[i],
                    static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(outputs.back()[i])))));
        }
        if (gradient_scale < 0.0) outputs.push_back(rounded);
        return outputs;
      });
      for (const double momentum : {0.0, 0.9}) {
        expect_equal_on_all_targets("sgd", 1e-6, [&](Memory& memory) {
          const Shape shape{count};
          const Tensor weights = memory.random(DType::float32, shape, 29);
          const Tensor gradient = memory.random(DType::float32, shape, 30);
          const Tensor buffer = memory.random(DType::float32, shape, 31);
          const Tensor copy = memory.put(DType::float32, shape, Values(static_cast<std::size_t>(count), 3.0));
          memory.device().sgd(queue, {.weights = weights,
                                      .gradient = gradient,
                                      .momentum_buffer = momentum > 0.0 ? buffer : Tensor(),
                                      .compute_copy = copy,
                                      .learning_rate = memory.scalar(0.1),
                                      .gradient_scale = memory.scalar(gradient_scale),
                                      .lr_mult = 2.0,
                                      .momentum = momentum,
                                      .weight_decay = 0.01});
          return std::vector<Values>{memory.get(weights), memory.get(buffer), memory.get(copy)};
        });
      }
    }
  }
}

}  // namespace
}  // namespace megalith::kernel_test
