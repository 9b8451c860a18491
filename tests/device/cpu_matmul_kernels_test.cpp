// The cpu device's matrix products that no library computes.
#include "tests/device/support/vectorised_kernels.h"

namespace megalith::kernel_test {
namespace {

TEST(CpuKernels, ProductsOfFewRows) {
  for (const DType type : compute_types) {
    for (const std::int64_t rows : {1, 2, 5, 8, 13, 16}) {
      expect_equal_on_all_targets(
          format("{} rows of {}", rows, name_of(type)), tolerance_of(type), [&](Memory& memory) {
            const Tensor a = memory.random(type, {rows, 165}, 40);
            const Tensor w = memory.random(type, {150, 165}, 41);
            const Tensor bias = memory.random(type, {150}, 42);
            const Tensor c = memory.poisoned(type, {rows, 150});
            memory.device().matmul(queue, {.a = {a}, .b = {w, true}, .c = c, .bias = bias});
            const Tensor added = memory.random(type, {rows, 150}, 43);
            memory.device().matmul(queue,
                                   {.a = {a}, .b = {w, true}, .c = added, .alpha = 0.5, .accumulate = true});
            return std::vector<Values>{memory.get(c), memory.get(added)};
          });
    }
  }
}

/// A sequence's text must not depend on what else is in its batch.
TEST(CpuKernels, RowsOfFewDoNotDependOnEachOther) {
  for (const DType type : compute_types) {
    Values first;
    for (const std::int64_t rows : {1, 2, 3, 7, 8, 9, 16}) {
      const std::unique_ptr<Device> device =
          make_cpu_device({.name = "cpu", .threads = rows % 2 == 0 ? 3 : 1});
      Memory memory(*device);
      const Tensor a = memory.random(type, {16, 1165}, 40).sliced(0, 0, rows);
      const Tensor w = memory.random(type, {731, 1165}, 41);
      const Tensor c = memory.poisoned(type, {rows, 731});
      device->matmul(queue, {.a = {a}, .b = {w, true}, .c = c});
      Values row = memory.get(c);
      row.resize(731);
      if (first.empty()) first = row;
      EXPECT_EQ(row, first) << rows << " rows of " << name_of(type);
    }
  }
}

}  // namespace
}  // namespace megalith::kernel_test
