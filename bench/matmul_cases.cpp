// Matrix products of one GPT-2 124M layer, and its output projection.
#include "bench/workspace.h"

namespace megalith::bench {
namespace {

constexpr QueueKind queue = QueueKind::compute;

struct Projection {
  const char* name;
  std::int64_t inputs;
  std::int64_t outputs;
};

/// y = x w^T, x_grad = y_grad w, w_grad += y_grad^T x, for w [outputs, inputs].
void add_projection(Device& target, DType type, const std::string& suffix, const Projection& shape) {
  const double flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(shape.inputs) *
                       static_cast<double>(shape.outputs);
  const std::string name = std::string("matmul_") + shape.name;
  add_case(name + "/forward" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const MatmulArgs args{.a = {space.random(type, {tokens, shape.inputs})},
                          .b = {space.random(type, {shape.outputs, shape.inputs}), true},
                          .c = space.filled(type, {tokens, shape.outputs}, 0.0)};
    time_kernel(state, device, {.flops = flops}, [&] { device.matmul(queue, args); });
  });
  add_case(name + "/backward_input" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const MatmulArgs args{.a = {space.random(type, {tokens, shape.outputs})},
                          .b = {space.random(type, {shape.outputs, shape.inputs})},
                          .c = space.filled(type, {tokens, shape.inputs}, 0.0)};
    time_kernel(state, device, {.flops = flops}, [&] { device.matmul(queue, args); });
  });
  add_case(name + "/backward_weight" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const MatmulArgs args{.a = {space.random(type, {tokens, shape.outputs}), true},
                          .b = {space.random(type, {tokens, shape.inputs})},
                          .c = space.filled(sum_type(type), {shape.outputs, shape.inputs}, 0.0),
                          .accumulate = true};
    time_kernel(state, device, {.flops = flops}, [&] { device.matmul(queue, args); });
  });
}

}  // namespace

void add_matmul_cases(Device& device, DType compute) {
  const std::string suffix = "/" + std::string(name_of(compute));
  for (const Projection& projection :
       {Projection{"qkv", hidden, 3 * hidden}, Projection{"attention_out", hidden, hidden},
        Projection{"mlp_in", hidden, ffn_hidden}, Projection{"mlp_out", ffn_hidden, hidden},
        Projection{"logits", hidden, padded_vocabulary}}) {
    add_projection(device, compute, suffix, projection);
  }
  add_case("matmul_mlp_in/forward_bias_gelu" + suffix, device,
           [compute](benchmark::State& state, Device& target) {
             Workspace space(target);
             const MatmulArgs args{.a = {space.random(compute, {tokens, hidden})},
                                   .b = {space.random(compute, {ffn_hidden, hidden}), true},
                                   .c = space.filled(compute, {tokens, ffn_hidden}, 0.0),
                                   .bias = space.random(compute, {ffn_hidden}),
                                   .activation = Activation::gelu_tanh,
                                   .pre_activation = space.filled(compute, {tokens, ffn_hidden}, 0.0)};
             const double flops = 2.0 * static_cast<double>(tokens * hidden * ffn_hidden);
             time_kernel(state, target, {.flops = flops}, [&] { target.matmul(queue, args); });
           });
}

}  // namespace megalith::bench
