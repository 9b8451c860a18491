// Attention at the shapes that count in training, with and without dropout.
#include <cmath>

#include "bench/workspace.h"

namespace megalith::bench {
namespace {

constexpr QueueKind queue = QueueKind::compute;

struct AttentionSize {
  const char* name;
  std::int64_t sequences;
  std::int64_t positions;
  std::int64_t heads;
  std::int64_t groups;
  std::int64_t head_size;
};

constexpr AttentionSize sizes[] = {
    {"1x1024", 1, 1024, 12, 12, 64},         // GPT-2 124M, one sequence
    {"4x1024", 4, 1024, 12, 12, 64},         // GPT-2 124M, a microbatch
    {"4x256", 4, 256, 12, 12, 64},           // the same, short sequences
    {"350m_4x512", 4, 512, 16, 16, 64},      // GPT-2 350M
    {"head128_1x1024", 1, 1024, 6, 6, 128},  // wider heads
    {"grouped_1x1024", 1, 1024, 12, 3, 64},  // four heads share keys and values
    {"one_head_1x4096", 1, 4096, 1, 1, 64},  // fewer heads than threads may be
};

AttentionArgs attention_args(Workspace& space, DType type, const AttentionSize& size, bool dropout) {
  const Shape queries{size.sequences, size.positions, size.heads, size.head_size};
  const Shape keys{size.sequences, size.positions, size.groups, size.head_size};
  AttentionArgs args{
      .query = space.random(type, queries),
      .key = space.random(type, keys),
      .value = space.random(type, keys),
      .out = space.filled(type, queries, 0.0),
      .log_sum_exp = space.filled(sum_type(type), {size.sequences, size.heads, size.positions}, 0.0),
      .scale = 1.0 / std::sqrt(static_cast<double>(size.head_size)),
      .causal = true};
  if (dropout) args.dropout = space.dropout(size.sequences);
  return args;
}

/// Two products of [S, S, D] forward, five backward, half of each hidden by the causal mask.
double product_flops(const AttentionSize& size) {
  return static_cast<double>(size.sequences * size.heads * size.head_size) *
         static_cast<double>(size.positions * size.positions);
}

void time_forward(benchmark::State& state, Device& device, DType type, const AttentionSize& size,
                  bool dropout) {
  Workspace space(device);
  const AttentionArgs args = attention_args(space, type, size, dropout);
  time_kernel(state, device, {.flops = 2 * product_flops(size)},
              [&] { device.attention_forward(queue, args); });
}

void time_backward(benchmark::State& state, Device& device, DType type, const AttentionSize& size,
                   bool dropout) {
  Workspace space(device);
  const AttentionArgs forward = attention_args(space, type, size, dropout);
  const AttentionBackwardArgs args{.forward = forward,
                                   .out_grad = space.random(type, forward.query.shape),
                                   .query_grad = space.filled(type, forward.query.shape, 0.0),
                                   .key_grad = space.filled(type, forward.key.shape, 0.0),
                                   .value_grad = space.filled(type, forward.key.shape, 0.0),
                                   .row_dots = space.filled(sum_type(type), forward.log_sum_exp.shape, 0.0)};
  device.attention_forward(queue, args.forward);
  time_kernel(state, device, {.flops = 5 * product_flops(size)},
              [&] { device.attention_backward(queue, args); });
}

}  // namespace

void add_attention_cases(Device& device, DType compute) {
  for (const AttentionSize& size : sizes) {
    for (const bool dropout : {false, true}) {
      const std::string name =
          std::string(dropout ? "_dropout/" : "/") + size.name + "/" + std::string(name_of(compute));
      add_case("attention_forward" + name, device, [=](benchmark::State& state, Device& target) {
        time_forward(state, target, compute, size, dropout);
      });
      add_case("attention_backward" + name, device, [=](benchmark::State& state, Device& target) {
        time_backward(state, target, compute, size, dropout);
      });
    }
  }
}

}  // namespace megalith::bench
