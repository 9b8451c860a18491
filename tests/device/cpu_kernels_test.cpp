// The cpu device's vectorised kernels against the reference device, on every instruction set of this machine
// and on several numbers of threads: awkward shapes, unaligned addresses, outputs poisoned with NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/philox.h"
#include "device/cpu/cpu_device.h"
#include "device/device.h"
#include "hwy/highway.h"

namespace megalith {
namespace {

constexpr QueueKind queue = QueueKind::compute;
using Values = std::vector<double>;

/// Tensors on a device, one element past their alignment, filled from the host.
class Memory {
 public:
  /// `widen`: bfloat16 tensors are held as float32 with bfloat16 values, for a device that computes in
  /// float32 alone.
  explicit Memory(Device& device, bool widen = false) : device_(device), widen_(widen) {}

  Device& device() { return device_; }
  bool widened() const { return widen_; }

  Tensor put(DType dtype, const Shape& shape, Values values) {
    if (widen_ && dtype == DType::bfloat16) {
      for (double& value : values)
        value = static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(value))));
      dtype = DType::float32;
    }
    std::vector<std::byte> bytes(values.size() * size_of(dtype));
    for (std::size_t i = 0; i < values.size(); ++i)
      write(dtype, bytes.data() + i * size_of(dtype), values[i]);
    const Tensor to = allocate(dtype, shape);
    device_.copy_to_device(queue, to, bytes.data());
    device_.synchronize(queue);
    return to;
  }

  /// Uniform numbers in (-scale, scale), the same for equal seeds.
  Tensor random(DType dtype, const Shape& shape, std::uint32_t seed, double scale = 1.0) {
    Values values(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t word = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, {seed, 1})[0];
      values[i] = scale * (static_cast<double>(word) / 2147483648.0 - 1.0);
    }
    return put(dtype, shape, values);
  }

  Tensor poisoned(DType dtype, const Shape& shape) {
    return put(dtype, shape,
               Values(static_cast<std::size_t>(shape.count()), std::numeric_limits<double>::quiet_NaN()));
  }

  Tensor scalar(double value) { return put(DType::float64, {1}, {value}); }

  Tensor numbers(std::int64_t count, std::int64_t bound, std::uint32_t seed) {
    Values values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] =
          philox({static_cast<std::uint32_t>(i), 1, 0, 0}, {seed, 2})[0] % static_cast<std::uint64_t>(bound);
    }
    return put(DType::int32, {count}, values);
  }

  Values get(const Tensor& from) {
    std::vector<std::byte> bytes(from.bytes());
    device_.copy_to_host(queue, bytes.data(), from);
    device_.synchronize(queue);
    Values values(static_cast<std::size_t>(from.count()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = read(from.dtype, bytes.data() + i * size_of(from.dtype));
    return values;
  }

 private:
  Tensor allocate(DType dtype, const Shape& shape) {
    const std::size_t size = size_of(dtype);
    blocks_.emplace_back(device_, (static_cast<std::size_t>(shape.count()) + 1) * size);
    return blocks_.back().tensor(dtype, shape, size);
  }

  template <typename T>
  static void write_as(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof(T));
  }
  static void write(DType dtype, std::byte* to, double value) {
    if (dtype == DType::float64) write_as(to, value);
    if (dtype == DType::float32) write_as(to, static_cast<float>(value));
    if (dtype == DType::bfloat16) write_as(to, BFloat16(static_cast<float>(value)));
    if (dtype == DType::float16) write_as(to, Float16(static_cast<float>(value)));
    if (dtype == DType::int32) write_as(to, static_cast<std::int32_t>(value));
    if (dtype == DType::int64) write_as(to, static_cast<std::int64_t>(value));
  }
  template <typename T>
  static T read_as(const std::byte* from) {
    T value{};
    std::memcpy(static_cast<void*>(&value), from, sizeof(T));
    return value;
  }
  static double read(DType dtype, const std::byte* from) {
    if (dtype == DType::float64) return read_as<double>(from);
    if (dtype == DType::float32) return static_cast<double>(read_as<float>(from));
    if (dtype == DType::bfloat16) return static_cast<double>(static_cast<float>(read_as<BFloat16>(from)));
    if (dtype == DType::float16) return static_cast<double>(static_cast<float>(read_as<Float16>(from)));
    if (dtype == DType::int64) return static_cast<double>(read_as<std::int64_t>(from));
    return read_as<std::int32_t>(from);
  }

  Device& device_;
  bool widen_;
  std::vector<DeviceMemory> blocks_;
};

/// Runs a kernel and returns its outputs.
using Run = std::function<std::vector<Values>(Memory& memory)>;

/// Differences in units of the output's largest value.
void expect_close(const std::vector<Values>& found, const std::vector<Values>& expected, double tolerance,
                  const std::string& where) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t output = 0; output < found.size(); ++output) {
    ASSERT_EQ(found[output].size(), expected[output].size());
    double largest = 1e-30;
    for (const double value : expected[output]) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    for (std::size_t i = 0; i < found[output].size(); ++i) {
      const double a = found[output][i];
      const double b = expected[output][i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      ASSERT_LE(std::abs(a - b) / largest, tolerance)
          << where << ": output " << output << ", element " << i << " is " << a << ", expected " << b;
    }
  }
}

/// Tolerance 0 asks for equal bits; the reference device then works on the same types, else on float32.
void expect_equal_on_all_targets(const std::string& what, double tolerance, const Run& run) {
  const std::unique_ptr<Device> reference = make_device({.name = "reference"});
  Memory reference_memory(*reference, tolerance > 0.0);
  const std::vector<Values> expected = run(reference_memory);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const int threads : {1, 3}) {
      const std::unique_ptr<Device> device = make_cpu_device({.name = "cpu", .threads = threads});
      Memory memory(*device);
      expect_close(run(memory), expected, tolerance,
                   what + " on " + hwy::TargetName(target) + ", " + std::to_string(threads) + " threads");
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

constexpr double tolerance_of(DType dtype) {
  return dtype == DType::float32 ? 2e-6 : 1.0 / 128;
}

struct Extent {
  std::int64_t rows, columns;
};
constexpr Extent extents[] = {{0, 5}, {1, 1}, {7, 3}, {33, 64}, {13, 127}, {2, 1031}, {300, 50}};

const std::vector<DType> compute_types = {DType::float32, DType::bfloat16};

void for_each_case(
    const std::function<void(DType dtype, const Extent& extent, const std::string& name)>& body) {
  for (const DType dtype : compute_types) {
    for (const Extent& extent : extents) {
      body(dtype, extent, format("{} [{}, {}]", name_of(dtype), extent.rows, extent.columns));
    }
  }
}

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
}  // namespace megalith
