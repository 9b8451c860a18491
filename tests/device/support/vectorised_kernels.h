// What the tests of the cpu device's vectorised kernels share: each kernel runs against the reference device,
// on every instruction set of this machine and on several numbers of threads, with unaligned addresses.
#pragma once

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

namespace megalith::kernel_test {

inline constexpr QueueKind queue = QueueKind::compute;
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
inline void expect_close(const std::vector<Values>& found, const std::vector<Values>& expected,
                         double tolerance, const std::string& where) {
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
inline void expect_equal_on_all_targets(const std::string& what, double tolerance, const Run& run) {
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
inline constexpr Extent extents[] = {{0, 5}, {1, 1}, {7, 3}, {33, 64}, {13, 127}, {2, 1031}, {300, 50}};

inline const std::vector<DType> compute_types = {DType::float32, DType::bfloat16};

inline void for_each_case(
    const std::function<void(DType dtype, const Extent& extent, const std::string& name)>& body) {
  for (const DType dtype : compute_types) {
    for (const Extent& extent : extents) {
      body(dtype, extent, format("{} [{}, {}]", name_of(dtype), extent.rows, extent.columns));
    }
  }
}

}  // namespace megalith::kernel_test
