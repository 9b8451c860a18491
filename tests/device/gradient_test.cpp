// The float64 reference device's backward kernels against finite differences of its forward kernels. Other
// devices' backward kernels are compared with these (kernel_test.cpp).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/device/support/cases.h"

namespace megalith {
namespace {

using testing_support::KernelCase;
using testing_support::PlacedCase;
using testing_support::uniform;
using testing_support::Use;

/// Runs a case on the float64 reference device and returns all its arguments' values.
std::vector<std::vector<double>> run(const KernelCase& kernel_case) {
  const auto device = make_device({.name = "reference"});
  PlacedCase placed(kernel_case, *device, DType::float64, 0);
  placed.enqueue();
  placed.finish();
  EXPECT_EQ(placed.damage(), "");
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < kernel_case.arguments.size(); ++i) values.push_back(placed.values(i));
  return values;
}

std::size_t index_of(const KernelCase& kernel_case, std::string_view name) {
  for (std::size_t i = 0; i < kernel_case.arguments.size(); ++i) {
    if (kernel_case.arguments[i].name == name) return i;
  }
  ADD_FAILURE() << kernel_case.name << " has no argument " << name;
  return 0;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Checks `gradient` of dot(output, out_grad) with respect to `input`, by central differences of fourth order
/// at up to 60 elements.
void expect_gradient(KernelCase forward, std::string_view input, std::string_view output,
                     const std::vector<double>& out_grad, const std::vector<double>& gradient) {
  SCOPED_TRACE(format("{}: gradient of {}", forward.name, input));
  const std::size_t in = index_of(forward, input);
  const std::size_t out = index_of(forward, output);
  std::vector<double>& values = forward.arguments[in].values;
  ASSERT_EQ(values.size(), gradient.size());
  const double step = 1e-3;
  const std::size_t stride = values.size() / 60 + 1;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    const double before = values[i];
    const auto loss_at = [&](double shift) {
      values[i] = before + shift;
      return dot(run(forward)[out], out_grad);
    };
    const double near = loss_at(step) - loss_at(-step);
    const double far = loss_at(2.0 * step) - loss_at(-2.0 * step);
    values[i] = before;
    EXPECT_NEAR(gradient[i], (8.0 * near - far) / (12.0 * step), 2e-8 * (1.0 + std::fabs(gradient[i])))
        << input << "[" << i << "]";
  }
}

void expect_attention_gradients(const testing_support::AttentionShape& shape) {
  const KernelCase forward = attention_forward_case(shape, 77);
  const KernelCase backward = attention_backward_case(shape, 77);
  const auto results = run(backward);
  const std::vector<double>& out_grad = results[index_of(backward, "out_grad")];
  for (const std::string_view input : {"query", "key", "value"}) {
    expect_gradient(forward, input, "out", out_grad, results[index_of(backward, format("{}_grad", input))]);
  }
}

TEST(Gradients, Attention) {
  expect_attention_gradients({.batch = 2, .queries = 5, .keys = 5, .heads = 4, .groups = 2, .head_size = 6});
  expect_attention_gradients(
      {.queries = 4, .keys = 7, .heads = 2, .head_size = 5, .causal = false, .strided = true});
  expect_attention_gradients({.queries = 6, .keys = 5, .query_offset = 1, .key_offset = 3});
  expect_attention_gradients(
      {.queries = 9, .keys = 9, .heads = 2, .head_size = 4, .cu_seqlens = {0, 4, 4, 9}});
  expect_attention_gradients(
      {.batch = 2, .queries = 6, .keys = 6, .heads = 2, .head_size = 4, .dropout = 0.4});
}

TEST(Gradients, LayerNorm) {
  for (const auto& [rows, hidden] : {std::pair{3, 7}, {1, 2}, {5, 16}}) {
    const KernelCase forward = testing_support::layer_norm_forward_case(rows, hidden, 50);
    KernelCase backward = testing_support::layer_norm_backward_case(rows, hidden, false, true, true,
                                                                    testing_support::Inplace::none, 60);
    const auto statistics = run(forward);
    for (const std::string_view name : {"x", "weight"}) {
      backward.arguments[index_of(backward, name)].values = forward.arguments[index_of(forward, name)].values;
    }
    for (const std::string_view name : {"mean", "rstd"}) {
      backward.arguments[index_of(backward, name)].values = statistics[index_of(forward, name)];
    }
    for (const std::string_view name : {"weight_grad", "bias_grad"}) {
      backward.arguments[index_of(backward, name)].values.assign(static_cast<std::size_t>(hidden), 0.0);
    }
    const auto results = run(backward);
    const std::vector<double>& y_grad = results[index_of(backward, "y_grad")];
    for (const std::string_view name : {"x", "weight", "bias"}) {
      expect_gradient(forward, name, "y", y_grad, results[index_of(backward, format("{}_grad", name))]);
    }
  }
}

TEST(Gradients, Activations) {
  for (const testing_support::KernelGroup& group : testing_support::activation_groups()) {
    if (group.kernel != "activation_backward") continue;
    for (const KernelCase& backward : group.cases()) {
      if (backward.arguments.size() < 3 || backward.arguments[0].shape[0] != 17) continue;
      KernelCase forward = backward;
      forward.arguments[0].values = uniform({17}, -4.0, 4.0, 3);
      KernelCase same_inputs = backward;
      same_inputs.arguments[0].values = forward.arguments[0].values;
      // "activation K backward": the kind stands in the name, the forward kernel takes it from there.
      const auto kind = static_cast<Activation>(backward.name[11] - '0');
      forward.enqueue = [kind](Device& device, QueueKind queue, std::span<const Tensor> t) {
        device.activation_forward(queue, kind, t[2], t[0]);
      };
      const auto results = run(same_inputs);
      expect_gradient(forward, "x", "x_grad", results[1], results[2]);
    }
  }
}

TEST(Gradients, Dropout) {
  const testing_support::DropoutShape shape{
      .batch = 2, .rows = 3, .hidden = 9, .probability = 0.3, .first_row = 2};
  const KernelCase forward = testing_support::dropout_add_case(shape, 80);
  const KernelCase backward = testing_support::dropout_backward_case(shape, 81);
  const auto results = run(backward);
  expect_gradient(forward, "x", "y", results[index_of(backward, "y_grad")],
                  results[index_of(backward, "x_grad")]);
  expect_gradient(forward, "residual", "y", results[index_of(backward, "y_grad")],
                  results[index_of(backward, "y_grad")]);
}

TEST(Gradients, Embedding) {
  KernelCase forward = testing_support::embedding_forward_case(11, 5, 3, 2, false, 90);
  KernelCase backward = testing_support::embedding_backward_case(11, 5, 3, 2, 90);
  backward.arguments[2].values.assign(15, 0.0);
  const auto results = run(backward);
  expect_gradient(forward, "table", "rows", results[index_of(backward, "rows_grad")],
                  results[index_of(backward, "table_grad")]);
}

// loss = sum of weights * (ln row_sum + row_max - target_logit) * scale over one rank's whole vocabulary.
TEST(Gradients, CrossEntropy) {
  const testing_support::CrossEntropyShape shape{.rows = 4, .columns = 11, .padding = 3};
  KernelCase forward = testing_support::cross_entropy_forward_case(shape, 95);
  KernelCase backward = testing_support::cross_entropy_backward_case(shape, 95);
  const auto statistics = run(forward);
  backward.arguments[index_of(backward, "row_max")].values = statistics[index_of(forward, "row_max")];
  backward.arguments[index_of(backward, "row_sum")].values = statistics[index_of(forward, "row_sum")];
  const auto results = run(backward);
  const std::vector<double>& weights = results[index_of(backward, "weights")];
  const double scale = results[index_of(backward, "scale")][0];
  const std::vector<double>& gradient = results[index_of(backward, "logits")];
  const auto loss = [&](const KernelCase& at) {
    const auto values = run(at);
    double sum = 0.0;
    for (std::size_t row = 0; row < weights.size(); ++row) {
      sum += weights[row] * scale *
             (std::log(values[index_of(at, "row_sum")][row]) + values[index_of(at, "row_max")][row] -
              values[index_of(at, "target_logit")][row]);
    }
    return sum;
  };
  std::vector<double>& logits = forward.arguments[0].values;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double before = logits[i];
    const auto loss_at = [&](double shift) {
      logits[i] = before + shift;
      const double value = loss(forward);
      logits[i] = before;
      return value;
    };
    const double step = 1e-3;
    const double slope =
        (8.0 * (loss_at(step) - loss_at(-step)) - (loss_at(2.0 * step) - loss_at(-2.0 * step))) /
        (12.0 * step);
    EXPECT_NEAR(gradient[i], slope, 1e-9) << i;
  }
}

// c = a b: a's gradient is c_grad b^T and b's a^T c_grad, both products that training asks for.
TEST(Gradients, MatmulWithActivation) {
  const testing_support::MatmulShape shape{.m = 3,
                                           .n = 4,
                                           .k = 5,
                                           .b_transposed = true,
                                           .bias = true,
                                           .activation = Activation::gelu_tanh,
                                           .pre_activation = true};
  const KernelCase forward = testing_support::matmul_case(shape, 40);
  const auto values = run(forward);
  const std::vector<double> out_grad = uniform({3, 4}, -1, 1, 41);
  const auto device = make_device({.name = "reference"});
  const auto upload = [&](const std::vector<double>& host, const Shape& extents) {
    DeviceMemory memory(*device, host.size() * sizeof(double));
    device->copy_to_device(QueueKind::compute, memory.tensor(DType::float64, extents), host.data());
    return memory;
  };
  const auto download = [&](const Tensor& from) {
    std::vector<double> host(static_cast<std::size_t>(from.count()));
    device->copy_to_host(QueueKind::compute, host.data(), from);
    device->synchronize(QueueKind::compute);
    return host;
  };
  const auto tensor = [](const DeviceMemory& memory, const Shape& extents) {
    return memory.tensor(DType::float64, extents);
  };
  const DeviceMemory a = upload(values[0], {3, 5});
  const DeviceMemory b = upload(values[1], {4, 5});
  const DeviceMemory pre = upload(values[index_of(forward, "pre_activation")], {3, 4});
  const DeviceMemory grad = upload(out_grad, {3, 4});
  const DeviceMemory a_grad(*device, 15 * sizeof(double));
  const DeviceMemory b_grad(*device, 20 * sizeof(double));
  const DeviceMemory bias_grad = upload(std::vector<double>(4, 0.0), {4});
  device->activation_backward(QueueKind::compute, shape.activation, tensor(grad, {3, 4}),
                              tensor(grad, {3, 4}), tensor(pre, {3, 4}));
  MatmulArgs for_a;
  for_a.a = {.data = tensor(grad, {3, 4})};
  for_a.b = {.data = tensor(b, {4, 5})};
  for_a.c = tensor(a_grad, {3, 5});
  device->matmul(QueueKind::compute, for_a);
  MatmulArgs for_b;
  for_b.a = {.data = tensor(grad, {3, 4}), .transposed = true};
  for_b.b = {.data = tensor(a, {3, 5})};
  for_b.c = tensor(b_grad, {4, 5});
  device->matmul(QueueKind::compute, for_b);
  device->add_column_sums(QueueKind::compute, tensor(bias_grad, {4}), tensor(grad, {3, 4}));
  expect_gradient(forward, "a", "c", out_grad, download(tensor(a_grad, {3, 5})));
  expect_gradient(forward, "b", "c", out_grad, download(tensor(b_grad, {4, 5})));
  expect_gradient(forward, "bias", "c", out_grad, download(tensor(bias_grad, {4})));
}

}  // namespace
}  // namespace megalith
