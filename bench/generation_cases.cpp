// Generation with GPT-2 124M: products of few rows, bound by reading the weights, and one query over a cache
// of keys and values. Matrices take turns, so that none is found in a cache where a token would not find it.
#include <cstddef>

#include "bench/workspace.h"

namespace megalith::bench {
namespace {

constexpr QueueKind queue = QueueKind::compute;
constexpr std::int64_t heads = 12;
constexpr std::int64_t head_size = 64;

double bytes_of(DType dtype, std::int64_t count) {
  return static_cast<double>(size_of(dtype)) * static_cast<double>(count);
}

void add_product(Device& target, DType type, const std::string& name, std::int64_t rows, std::int64_t inputs,
                 std::int64_t outputs) {
  add_case(name, target, [=](benchmark::State& state, Device& device) {
    // Half a gigabyte of weights, as the model has.
    const std::int64_t layers = 124000000 / (inputs * outputs) + 1;
    Workspace space(device);
    const Tensor weights = space.random(type, {layers, outputs, inputs});
    const Tensor x = space.random(type, {rows, inputs});
    const Tensor y = space.filled(type, {rows, outputs}, 0.0);
    std::int64_t layer = 0;
    const double weight_count = static_cast<double>(inputs * outputs);
    time_kernel(
        state, device,
        {.bytes = bytes_of(type, inputs * outputs), .flops = 2.0 * static_cast<double>(rows) * weight_count},
        [&] {
          device.matmul(queue, {.a = {x},
                                .b = {weights.sliced(0, layer, layer + 1).reshaped({outputs, inputs}), true},
                                .c = y});
          layer = (layer + 1) % layers;
        });
  });
}

/// All heads' keys and values of `keys` tokens are read once.
void add_one_query(Device& target, DType type, const std::string& name, std::int64_t keys) {
  add_case(name, target, [=](benchmark::State& state, Device& device) {
    constexpr std::int64_t layers = 12;
    Workspace space(device);
    const Shape cache{layers, keys, heads, head_size};
    const Tensor key = space.random(type, cache);
    const Tensor value = space.random(type, cache);
    AttentionArgs args;
    args.query = space.random(type, {1, 1, heads, head_size});
    args.out = space.filled(type, {1, 1, heads, head_size}, 0.0);
    args.log_sum_exp = space.filled(sum_type(type), {1, heads, 1}, 0.0);
    args.scale = 0.125;
    args.key_lengths = space.filled(DType::int32, {1}, static_cast<double>(keys));
    std::int64_t layer = 0;
    time_kernel(state, device, {.bytes = 2.0 * bytes_of(type, keys * heads * head_size)}, [&] {
      args.key = key.sliced(0, layer, layer + 1);
      args.value = value.sliced(0, layer, layer + 1);
      device.attention_forward(queue, args);
      layer = (layer + 1) % layers;
    });
  });
}

}  // namespace

void add_generation_cases(Device& device, DType compute) {
  const std::string suffix = "/" + std::string(name_of(compute));
  for (const std::int64_t rows : {1, 2, 4, 8, 16}) {
    const std::string thin = "generation_matmul/rows:" + std::to_string(rows) + "/";
    add_product(device, compute, thin + "attention_out" + suffix, rows, hidden, hidden);
    add_product(device, compute, thin + "mlp_in" + suffix, rows, hidden, ffn_hidden);
    add_product(device, compute, thin + "mlp_out" + suffix, rows, ffn_hidden, hidden);
    add_product(device, compute, thin + "logits" + suffix, rows, hidden, padded_vocabulary);
  }
  for (const std::int64_t keys : {128, 1024}) {
    add_one_query(device, compute, "generation_attention/keys:" + std::to_string(keys) + suffix, keys);
  }
}

}  // namespace megalith::bench
