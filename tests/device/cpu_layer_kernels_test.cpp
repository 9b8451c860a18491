// The cpu device's kernels of a layer: activations, norm, dropout, embedding, cross-entropy.
#include "tests/device/support/vectorised_kernels.h"

namespace megalith::kernel_test {
namespace {

TEST(CpuKernels, Activations) {
  for (const Activation kind : {Activation::none, Activation::gelu_tanh, Activation::gelu_erf}) {
    for_each_case([kind](DType type, const Extent& extent, const std::string& name) {
      expect_equal_on_all_targets("activation " + name, 2 * tolerance_of(type), [&](Memory& memory) {
        const Shape shape{extent.rows, extent.columns};
        const Tensor x = memory.random(type, shape, 7, 8.0);
        const Tensor grad = memory.random(type, shape, 8);
        const Tensor y = memory.poisoned(type, shape);
        memory.device().activation_forward(queue, kind, y, x);
        memory.device().activation_backward(queue, kind, grad, grad, x);
        return std::vector<Values>{memory.get(y), memory.get(grad)};
      });
    });
  }
}

TEST(CpuKernels, ActivationsFarFromZero) {
  const Values values = {1e4, -1e4, 1e19, -1e19, 3e38, -3e38, 0.0, -0.0, 1e-30, std::nan(""), 90.0, -90.0};
  for (const Activation kind : {Activation::gelu_tanh, Activation::gelu_erf}) {
    const std::unique_ptr<Device> device = make_cpu_device({.name = "cpu", .threads = 1});
    Memory memory(*device);
    const Tensor x = memory.put(DType::float32, {12}, values);
    const Tensor y = memory.poisoned(DType::float32, {12});
    const Tensor grad = memory.put(DType::float32, {12}, Values(12, 1.0));
    device->activation_forward(queue, kind, y, x);
    device->activation_backward(queue, kind, grad, grad, x);
    const Values found = memory.get(y);
    const Values slopes = memory.get(grad);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(found[i]));
        EXPECT_TRUE(std::isnan(slopes[i]));
      } else if (std::abs(values[i]) > 10.0) {
        EXPECT_EQ(found[i], values[i] > 0.0 ? static_cast<double>(static_cast<float>(values[i])) : 0.0)
            << values[i];
        EXPECT_EQ(slopes[i], values[i] > 0.0 ? 1.0 : 0.0) << values[i];
      } else {
        EXPECT_NEAR(slopes[i], 0.5, 1e-6);
      }
    }
  }
}

TEST(CpuKernels, LayerNorm) {
  for_each_case([](DType type, const Extent& extent, const std::string& name) {
    expect_equal_on_all_targets("layer_norm " + name, 4 * tolerance_of(type), [&](Memory& memory) {
      const Shape shape{extent.rows, extent.columns};
      const Tensor x = memory.random(type, shape, 9);
      const Tensor weight = memory.random(type, {extent.columns}, 10);
      const Tensor bias = memory.random(type, {extent.columns}, 11);
      const Tensor y = memory.poisoned(type, shape);
      const Tensor mean = memory.poisoned(DType::float32, {extent.rows});
      const Tensor rstd = memory.poisoned(DType::float32, {extent.rows});
      memory.device().layer_norm_forward(
          queue,
          {.x = x, .weight = weight, .bias = bias, .y = y, .mean = mean, .rstd = rstd, .epsilon = 1e-3});
      const Tensor y_grad = memory.random(type, shape, 12);
      const Tensor residual = memory.random(type, shape, 13);
      const Tensor weight_grad = memory.random(DType::float32, {extent.columns}, 14);
      const Tensor bias_grad = memory.random(DType::float32, {extent.columns}, 15);
      const LayerNormBackwardArgs args{.y_grad = y_grad,
                                       .x = x,
                                       .weight = weight,
                                       .mean = mean,
                                       .rstd = rstd,
                                       .residual = residual,
                                       .x_grad = residual,
                                       .weight_grad = weight_grad,
                                       .bias_grad = bias_grad};
      memory.device().layer_norm_backward(queue, args);
      LayerNormBackwardArgs input_only = args;
      input_only.residual = {};
      input_only.weight_grad = {};
      input_only.bias_grad = {};
      input_only.x_grad = y_grad;
      memory.device().layer_norm_backward(queue, input_only);
      return std::vector<Values>{memory.get(y),        memory.get(mean),        memory.get(rstd),
                                 memory.get(residual), memory.get(weight_grad), memory.get(bias_grad),
                                 memory.get(y_grad)};
    });
  });
}

TEST(CpuKernels, DropoutDropsTheSameElements) {
  for_each_case([](DType type, const Extent& extent, const std::string& name) {
    for (const double probability : {0.0, 0.3}) {
      expect_equal_on_all_targets("dropout " + name, tolerance_of(type), [&](Memory& memory) {
        const Shape shape{2, extent.rows, extent.columns};
        DropoutArgs dropout{.probability = probability, .key = {5, 6}, .first_row = 9, .first_column = 6};
        if (probability > 0.0) dropout.samples = memory.put(DType::int64, {2}, {7, 8589934592.0 * 5 + 3});
        const Tensor x = memory.random(type, shape, 16);
        const Tensor bias = memory.random(type, {extent.columns}, 17);
        const Tensor residual = memory.random(type, shape, 18);
        const Tensor y = memory.poisoned(type, shape);
        memory.device().dropout_add_forward(
            queue, {.x = x, .bias = bias, .residual = residual, .y = y, .dropout = dropout});
        dropout.first_column = 0;
        memory.device().dropout_add_forward(queue,
                                            {.x = x, .bias = {}, .residual = {}, .y = x, .dropout = dropout});
        dropout.first_column = 2;
        memory.device().dropout_add_forward(
            queue, {.x = x, .bias = bias, .residual = {}, .y = x, .dropout = dropout});
        memory.device().dropout_backward(queue, residual, residual, dropout);
        return std::vector<Values>{memory.get(y), memory.get(x), memory.get(residual)};
      });
    }
  });
}

TEST(CpuKernels, Embedding) {
  for_each_case([](DType type, const Extent& extent, const std::string& name) {
    for (const bool accumulate : {false, true}) {
      expect_equal_on_all_targets(
          "embedding " + name, type == DType::float32 ? 0.0 : tolerance_of(type), [&](Memory& memory) {
            // Tokens 0..10 of which this table holds 3..8; rows repeat.
            const Tensor table = memory.random(type, {6, extent.columns}, 19);
            const Tensor tokens = memory.numbers(extent.rows, 11, 20);
            const Tensor rows = memory.random(type, {extent.rows, extent.columns}, 21);
            const Tensor grad = memory.random(DType::float32, {6, extent.columns}, 22);
            memory.device().embedding_backward(
                queue, {.tokens = tokens, .rows_grad = rows, .table_grad = grad, .first_row = 3});
            memory.device().embedding_forward(
                queue,
                {.tokens = tokens, .table = table, .rows = rows, .first_row = 3, .accumulate = accumulate});
            return std::vector<Values>{memory.get(grad), memory.get(rows)};
          });
    }
  });
}

TEST(CpuKernels, CrossEntropy) {
  for_each_case([](DType type, const Extent& extent, const std::string& name) {
    expect_equal_on_all_targets("cross_entropy " + name, tolerance_of(type), [&](Memory& memory) {
      // Wider storage than logits, three padding columns, targets on both sides of the columns held here.
      const Tensor storage = memory.random(type, {extent.rows, extent.columns + 8}, 23, 12.0);
      const Tensor logits = storage.sliced(1, 2, extent.columns + 5);
      const Tensor targets = memory.numbers(extent.rows, extent.columns + 4, 24);
      const Tensor row_max = memory.poisoned(DType::float32, {extent.rows});
      const Tensor row_sum = memory.poisoned(DType::float32, {extent.rows});
      const Tensor target_logit = memory.poisoned(DType::float32, {extent.rows});
      const Tensor losses = memory.poisoned(DType::float32, {extent.rows});
      memory.device().cross_entropy_forward(queue, {.logits = logits,
                                                    .targets = targets,
                                                    .first_column = 2,
                                                    .columns = extent.columns,
                                                    .row_max = row_max,
                                                    .row_sum = row_sum,
                                                    .target_logit = target_logit});
      memory.device().cross_entropy_loss(
          queue, {.row_max = row_max, .row_sum = row_sum, .target_logit = target_logit, .losses = losses});
      Values mask(static_cast<std::size_t>(extent.rows), 1.0);
      for (std::size_t i = 2; i < mask.size(); i += 3) mask[i] = 0.0;
      const Tensor weights = memory.put(DType::float32, {extent.rows}, mask);
      memory.device().cross_entropy_backward(queue, {.logits = logits,
                                                     .targets = targets,
                                                     .first_column = 2,
                                                     .columns = extent.columns,
                                                     .row_max = row_max,
                                                     .row_sum = row_sum,
                                                     .weights = weights,
                                                     .scale = memory.scalar(0.01)});
      const Tensor total = memory.scalar(0.5);
      memory.device().add_weighted_sum(queue, total, losses, weights);
      return std::vector<Values>{memory.get(row_max), memory.get(row_sum), memory.get(target_logit),
                                 memory.get(losses),  memory.get(storage), memory.get(total)};
    });
  });
}

TEST(CpuKernels, CrossEntropyOfExtremeLogits) {
  const double infinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t columns = 5000;  // more than one block
  Values logits(5 * columns, -3.0);
  for (std::int64_t c = 0; c < columns; ++c)
    logits[static_cast<std::size_t>(c)] = c < 3000 ? -infinity : 80000.0;
  logits[columns + 4500] = std::nan("");  // row 1: NaN in the last block
  logits[columns + 10] = 5.0;
  logits[2 * columns + 17] = std::nan("");  // row 2: NaN in the first
  logits[2 * columns + 4600] = 5.0;
  for (std::int64_t c = 0; c < columns; ++c) logits[static_cast<std::size_t>(3 * columns + c)] = -infinity;
  logits[4 * columns + 4999] = 1e30;
  expect_equal_on_all_targets("extreme logits", 2e-6, [&](Memory& memory) {
    const Tensor row_max = memory.poisoned(DType::float32, {5});
    const Tensor row_sum = memory.poisoned(DType::float32, {5});
    const Tensor target_logit = memory.poisoned(DType::float32, {5});
    memory.device().cross_entropy_forward(queue, {.logits = memory.put(DType::float32, {5, columns}, logits),
                                                  .targets = memory.put(DType::int32, {5}, Values(5, 4999.0)),
                                                  .columns = columns,
                                                  .row_max = row_max,
                                                  .row_sum = row_sum,
                                                  .target_logit = target_logit});
    return std::vector<Values>{memory.get(row_max), memory.get(row_sum), memory.get(target_logit)};
  });
}

}  // namespace
}  // namespace megalith::kernel_test
