// The cpu device's attention on every instruction set, and on several numbers of threads, which cut it into
// different tasks.
#include "tests/device/support/vectorised_kernels.h"

namespace megalith::kernel_test {
namespace {

struct Sizes {
  std::int64_t sequences, positions, heads, groups, head_size;
  double dropout;
};

/// out, log_sum_exp, and the gradients of query, key and value.
std::vector<Values> attend(Memory& memory, DType type, const Sizes& sizes) {
  const Shape queries{sizes.sequences, sizes.positions, sizes.heads, sizes.head_size};
  const Shape keys{sizes.sequences, sizes.positions, sizes.groups, sizes.head_size};
  const Shape statistics{sizes.sequences, sizes.heads, sizes.positions};
  const AttentionArgs forward{
      .query = memory.random(type, queries, 1, 2.0),
      .key = memory.random(type, keys, 2, 2.0),
      .value = memory.random(type, keys, 3),
      .out = memory.poisoned(type, queries),
      .log_sum_exp = memory.poisoned(DType::float32, statistics),
      .scale = 0.3,
      .dropout = {.probability = sizes.dropout,
                  .key = philox_key(5, "dropout:attention"),
                  .samples = memory.put(DType::int64, {sizes.sequences},
                                        Values(static_cast<std::size_t>(sizes.sequences), 9.0)),
                  .first_column = 3}};
  memory.device().attention_forward(queue, forward);
  const AttentionBackwardArgs backward{.forward = forward,
                                       .out_grad = memory.random(type, queries, 4),
                                       .query_grad = memory.poisoned(type, queries),
                                       .key_grad = memory.poisoned(type, keys),
                                       .value_grad = memory.poisoned(type, keys),
                                       .row_dots = memory.poisoned(DType::float32, statistics)};
  memory.device().attention_backward(queue, backward);
  return {memory.get(forward.out), memory.get(forward.log_sum_exp), memory.get(backward.query_grad),
          memory.get(backward.key_grad), memory.get(backward.value_grad)};
}

constexpr Sizes all_sizes[] = {
    {1, 70, 2, 1, 33, 0.0}, {2, 100, 1, 1, 64, 0.2}, {1, 420, 2, 2, 16, 0.1}, {1, 3, 1, 1, 5, 0.3}};

TEST(CpuKernels, Attention) {
  for (const Sizes& sizes : all_sizes) {
    for (const DType type : compute_types) {
      // The reference device holds what the backward pass reads in float32, the cpu device in bfloat16.
      const double tolerance = type == DType::float32 ? 1e-5 : 4 * tolerance_of(type);
      expect_equal_on_all_targets(format("attention of {} positions in {}", sizes.positions, name_of(type)),
                                  tolerance, [&](Memory& memory) { return attend(memory, type, sizes); });
    }
  }
}

// More threads than groups, so that their blocks of keys become tasks of their own; and fewer.
TEST(CpuKernels, AttentionDoesNotDependOnTheNumberOfThreads) {
  for (const Sizes& sizes : {Sizes{1, 900, 2, 1, 8, 0.1}, Sizes{2, 450, 3, 3, 20, 0.0}}) {
    std::vector<Values> expected;
    for (const int threads : {1, 2, 5, 16}) {
      const std::unique_ptr<Device> device = make_cpu_device({.name = "cpu", .threads = threads});
      Memory memory(*device);
      const std::vector<Values> found = attend(memory, DType::float32, sizes);
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace megalith::kernel_test
