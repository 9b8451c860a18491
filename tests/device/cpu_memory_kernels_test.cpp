// Filling, copying, adding and initial weights on the cpu device; and that no result depends on the number of
// threads.
#include "tests/device/support/vectorised_kernels.h"

namespace megalith::kernel_test {
namespace {

TEST(CpuKernels, FillAndCopyAreExactForEveryType) {
  const std::vector<DType> types = {DType::float64, DType::float32, DType::bfloat16, DType::float16};
  for (const DType to : types) {
    for (const DType from : types) {
      for (const Extent& extent : extents) {
        const Shape shape{extent.rows, extent.columns};
        expect_equal_on_all_targets(format("copy {} to {}", name_of(from), name_of(to)), 0.0,
                                    [&](Memory& memory) {
                                      const Tensor source = memory.random(from, shape, 1, 3e4);
                                      const Tensor target = memory.poisoned(to, shape);
                                      memory.device().copy(queue, target, source);
                                      return std::vector<Values>{memory.get(target)};
                                    });
      }
    }
  }
  for (const DType type :
       {DType::float64, DType::float32, DType::bfloat16, DType::float16, DType::int64, DType::int32}) {
    for (const double value : {0.0, -0.0, 3.0, -7.0}) {
      expect_equal_on_all_targets("fill", 0.0, [&](Memory& memory) {
        const Tensor target = memory.put(type, {3, 5, 7}, Values(105, 1.0));
        memory.device().fill(queue, target.sliced(0, 1, 3).sliced(1, 1, 4).sliced(2, 2, 6), value);
        return std::vector<Values>{memory.get(target)};
      });
    }
  }
}

TEST(CpuKernels, CopyKeepsSpecialValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Values values = {
      0.0,        -0.0,       1e-40,    -1e-42,    6e-8,   65519.0,
      65520.0,    1e30,       infinity, -infinity, 3.4e38, std::numeric_limits<double>::quiet_NaN(),
      1.00390625, 1.01171875, 1e-45,    1e-7,      2.0,    3.0};
  for (const DType to : {DType::bfloat16, DType::float16, DType::float32}) {
    expect_equal_on_all_targets("special values", 0.0, [&](Memory& memory) {
      const Tensor source = memory.put(DType::float32, {18}, values);
      const Tensor target = memory.put(to, {18}, Values(18, 5.0));
      memory.device().copy(queue, target, source);
      return std::vector<Values>{memory.get(target)};
    });
  }
}

TEST(CpuKernels, StridedCopies) {
  expect_equal_on_all_targets("strided copy", 0.0, [](Memory& memory) {
    const Tensor source = memory.random(DType::float32, {4, 6, 5, 33}, 2);
    const Tensor target = memory.put(DType::bfloat16, {4, 9, 5, 40}, Values(4 * 9 * 5 * 40, 0.5));
    const Tensor part = source.sliced(1, 2, 5).sliced(3, 1, 32);
    memory.device().copy(queue, target.sliced(1, 4, 7).sliced(3, 9, 40), part);
    Tensor swapped = source;  // [6, 4, 5, 33]: outer dimensions exchanged
    swapped.shape = {6, 4, 5, 33};
    std::swap(swapped.strides[0], swapped.strides[1]);
    const Tensor plain = memory.poisoned(DType::float32, {6, 4, 5, 33});
    memory.device().copy(queue, plain, swapped);
    Tensor column = source.sliced(3, 7, 8);
    const Tensor gathered = memory.poisoned(DType::float32, {4, 6, 5, 1});
    memory.device().copy(queue, gathered, column);
    return std::vector<Values>{memory.get(target), memory.get(plain), memory.get(gathered)};
  });
}

TEST(CpuKernels, Add) {
  for_each_case([](DType type, const Extent& extent, const std::string& name) {
    for (const DType other : compute_types) {
      expect_equal_on_all_targets("add " + name, tolerance_of(type), [&](Memory& memory) {
        const Shape shape{extent.rows, extent.columns};
        const Tensor a = memory.random(type, shape, 3);
        const Tensor b = memory.random(other, shape, 4);
        memory.device().add(queue, a, a, 0.25, b, -1.5);
        return std::vector<Values>{memory.get(a)};
      });
    }
  });
}

TEST(CpuKernels, InitializeNormalGivesTheSameBits) {
  for_each_case([](DType type, const Extent& extent, const std::string& name) {
    expect_equal_on_all_targets("initialize_normal " + name, 0.0, [&](Memory& memory) {
      const Tensor to = memory.poisoned(type, {extent.rows, extent.columns});
      memory.device().initialize_normal(queue, {.to = to,
                                                .first_element = (std::int64_t{1} << 34) + 3,
                                                .row_step = extent.columns + 5,
                                                .key = {11, 12},
                                                .mean = 0.1,
                                                .deviation = 0.02});
      return std::vector<Values>{memory.get(to)};
    });
  });
}

TEST(CpuKernels, AddColumnSums) {
  for_each_case([](DType type, const Extent& extent, const std::string& name) {
    expect_equal_on_all_targets("add_column_sums " + name, 2e-6, [&](Memory& memory) {
      const Tensor x = memory.random(type, {extent.rows, extent.columns}, 5);
      const Tensor sums = memory.random(DType::float32, {extent.columns}, 6);
      memory.device().add_column_sums(queue, sums, x);
      return std::vector<Values>{memory.get(sums)};
    });
  });
}

/// Results must not depend on the number of threads, to the last bit.
TEST(CpuKernels, EqualBitsOnAnyNumberOfThreads) {
  std::vector<std::vector<Values>> found;
  for (const int threads : {1, 2, 5}) {
    const std::unique_ptr<Device> device = make_cpu_device({.name = "cpu", .threads = threads});
    Memory memory(*device);
    const Tensor x = memory.random(DType::float32, {301, 1031}, 32);
    const Tensor partials = memory.poisoned(DType::float64, {(301 * 1031 + norm_block - 1) / norm_block});
    Tensor flat(x.address, x.dtype, {301 * 1031});
    device->block_norms(queue, partials, flat);
    const Tensor sums = memory.put(DType::float32, {1031}, Values(1031, 0.0));
    device->add_column_sums(queue, sums, x);
    const Tensor table_grad = memory.put(DType::float32, {5, 1031}, Values(5 * 1031, 0.0));
    device->embedding_backward(
        queue, {.tokens = memory.numbers(301, 5, 33), .rows_grad = x, .table_grad = table_grad});
    device->activation_forward(queue, Activation::gelu_erf, x, x);
    found.push_back({memory.get(partials), memory.get(sums), memory.get(table_grad), memory.get(x)});
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

}  // namespace
}  // namespace megalith::kernel_test
