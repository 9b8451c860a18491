// The kernels that a layer's activations and logits pass through.
#include "bench/workspace.h"

namespace megalith::bench {
namespace {

constexpr QueueKind queue = QueueKind::compute;

double bytes_of(DType dtype, std::int64_t count) {
  return static_cast<double>(size_of(dtype)) * static_cast<double>(count);
}

void add_layer_norm(Device& target, DType type, const std::string& suffix) {
  add_case("layer_norm_forward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const LayerNormArgs args{.x = space.random(type, {tokens, hidden}),
                             .weight = space.filled(type, {hidden}, 1.0),
                             .bias = space.filled(type, {hidden}, 0.0),
                             .y = space.filled(type, {tokens, hidden}, 0.0),
                             .mean = space.filled(sum_type(type), {tokens}, 0.0),
                             .rstd = space.filled(sum_type(type), {tokens}, 1.0)};
    time_kernel(state, device, {.bytes = 2 * bytes_of(type, tokens * hidden)},
                [&] { device.layer_norm_forward(queue, args); });
  });
  add_case("layer_norm_backward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const LayerNormBackwardArgs args{.y_grad = space.random(type, {tokens, hidden}),
                                     .x = space.random(type, {tokens, hidden}),
                                     .weight = space.filled(type, {hidden}, 1.0),
                                     .mean = space.filled(sum_type(type), {tokens}, 0.0),
                                     .rstd = space.filled(sum_type(type), {tokens}, 1.0),
                                     .residual = space.random(type, {tokens, hidden}),
                                     .x_grad = space.filled(type, {tokens, hidden}, 0.0),
                                     .weight_grad = space.filled(sum_type(type), {hidden}, 0.0),
                                     .bias_grad = space.filled(sum_type(type), {hidden}, 0.0)};
    time_kernel(state, device, {.bytes = 4 * bytes_of(type, tokens * hidden)},
                [&] { device.layer_norm_backward(queue, args); });
  });
}

void add_gelu(Device& target, DType type, const std::string& suffix, const std::string& name,
              Activation kind) {
  add_case(name + "_forward" + suffix, target, [type, kind](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor x = space.random(type, {tokens, ffn_hidden});
    const Tensor y = space.filled(type, {tokens, ffn_hidden}, 0.0);
    time_kernel(state, device, {.bytes = 2 * bytes_of(type, tokens * ffn_hidden)},
                [&] { device.activation_forward(queue, kind, y, x); });
  });
  add_case(name + "_backward" + suffix, target, [type, kind](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor x = space.random(type, {tokens, ffn_hidden});
    const Tensor y_grad = space.random(type, {tokens, ffn_hidden});
    const Tensor x_grad = space.filled(type, {tokens, ffn_hidden}, 0.0);
    time_kernel(state, device, {.bytes = 3 * bytes_of(type, tokens * ffn_hidden)},
                [&] { device.activation_backward(queue, kind, x_grad, y_grad, x); });
  });
}

void add_dropout(Device& target, DType type, const std::string& suffix) {
  add_case("dropout_add_forward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const DropoutAddArgs args{.x = space.random(type, {1, tokens, hidden}),
                              .bias = space.random(type, {hidden}),
                              .residual = space.random(type, {1, tokens, hidden}),
                              .y = space.filled(type, {1, tokens, hidden}, 0.0),
                              .dropout = space.dropout(1)};
    time_kernel(state, device, {.bytes = 3 * bytes_of(type, tokens * hidden)},
                [&] { device.dropout_add_forward(queue, args); });
  });
  add_case("dropout_backward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor y_grad = space.random(type, {1, tokens, hidden});
    const Tensor x_grad = space.filled(type, {1, tokens, hidden}, 0.0);
    const DropoutArgs dropout = space.dropout(1);
    time_kernel(state, device, {.bytes = 2 * bytes_of(type, tokens * hidden)},
                [&] { device.dropout_backward(queue, x_grad, y_grad, dropout); });
  });
}

void add_embedding(Device& target, DType type, const std::string& suffix) {
  add_case("embedding_forward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const EmbeddingArgs args{.tokens = space.numbers(tokens, vocabulary),
                             .table = space.filled(type, {padded_vocabulary, hidden}, 1.0),
                             .rows = space.filled(type, {tokens, hidden}, 0.0)};
    time_kernel(state, device, {.bytes = 2 * bytes_of(type, tokens * hidden)},
                [&] { device.embedding_forward(queue, args); });
  });
  add_case("embedding_backward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const EmbeddingBackwardArgs args{
        .tokens = space.numbers(tokens, vocabulary),
        .rows_grad = space.random(type, {tokens, hidden}),
        .table_grad = space.filled(sum_type(type), {padded_vocabulary, hidden}, 0.0)};
    time_kernel(state, device,
                {.bytes = bytes_of(type, tokens * hidden) + 2 * bytes_of(sum_type(type), tokens * hidden)},
                [&] { device.embedding_backward(queue, args); });
  });
}

void add_cross_entropy(Device& target, DType type, const std::string& suffix) {
  add_case("cross_entropy_forward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const CrossEntropyArgs args{.logits = space.random(type, {tokens, padded_vocabulary}),
                                .targets = space.numbers(tokens, vocabulary),
                                .columns = vocabulary,
                                .row_max = space.filled(sum_type(type), {tokens}, 0.0),
                                .row_sum = space.filled(sum_type(type), {tokens}, 0.0),
                                .target_logit = space.filled(sum_type(type), {tokens}, 0.0)};
    time_kernel(state, device, {.bytes = bytes_of(type, tokens * vocabulary)},
                [&] { device.cross_entropy_forward(queue, args); });
  });
  // In place: from the second round on the logits are gradients; the work is the same.
  add_case("cross_entropy_backward" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const CrossEntropyBackwardArgs args{.logits = space.random(type, {tokens, padded_vocabulary}),
                                        .targets = space.numbers(tokens, vocabulary),
                                        .columns = vocabulary,
                                        .row_max = space.filled(sum_type(type), {tokens}, 5.0),
                                        .row_sum = space.filled(sum_type(type), {tokens}, 500.0),
                                        .weights = space.filled(sum_type(type), {tokens}, 1.0),
                                        .scale = space.filled(DType::float64, {1}, 1.0)};
    time_kernel(state, device, {.bytes = 2 * bytes_of(type, tokens * padded_vocabulary)},
                [&] { device.cross_entropy_backward(queue, args); });
  });
}

void add_elementwise(Device& target, DType type, const std::string& suffix) {
  add_case("add" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor a = space.random(type, {tokens, hidden});
    const Tensor b = space.random(type, {tokens, hidden});
    time_kernel(state, device, {.bytes = 3 * bytes_of(type, tokens * hidden)},
                [&] { device.add(queue, a, a, 0.5, b, 0.5); });
  });
  add_case("add_column_sums" + suffix, target, [type](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor x = space.random(type, {tokens, ffn_hidden});
    const Tensor sums = space.filled(sum_type(type), {ffn_hidden}, 0.0);
    time_kernel(state, device, {.bytes = bytes_of(type, tokens * ffn_hidden)},
                [&] { device.add_column_sums(queue, sums, x); });
  });
}

}  // namespace

void add_activation_cases(Device& device, DType compute) {
  const std::string suffix = "/" + std::string(name_of(compute));
  add_elementwise(device, compute, suffix);
  add_layer_norm(device, compute, suffix);
  add_gelu(device, compute, suffix, "gelu_tanh", Activation::gelu_tanh);
  add_gelu(device, compute, suffix, "gelu_erf", Activation::gelu_erf);
  add_dropout(device, compute, suffix);
  add_embedding(device, compute, suffix);
  add_cross_entropy(device, compute, suffix);
}

}  // namespace megalith::bench
