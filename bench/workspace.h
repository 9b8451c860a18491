// What every kernel's benchmark needs: device memory with contents, the timed loop, and the counters.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"

namespace megalith::bench {

/// Sizes of GPT-2 124M and of one step's microbatch.
inline constexpr std::int64_t tokens = 1024;
inline constexpr std::int64_t hidden = 768;
inline constexpr std::int64_t ffn_hidden = 4 * hidden;
inline constexpr std::int64_t heads = 12;
inline constexpr std::int64_t head_size = 64;
inline constexpr std::int64_t vocabulary = 50257;
inline constexpr std::int64_t padded_vocabulary = 50304;
inline constexpr std::int64_t parameters = 124439808;

/// Device memory of one benchmark; freed with it.
class Workspace {
 public:
  explicit Workspace(Device& device) : device_(device) {}

  Device& device() { return device_; }
  /// Normally distributed elements.
  Tensor random(DType dtype, const Shape& shape, double deviation = 1.0);
  /// Every element `value`.
  Tensor filled(DType dtype, const Shape& shape, double value);
  /// int32 numbers spread over [0, bound).
  Tensor numbers(std::int64_t count, std::int64_t bound);
  /// The dropout of a training run: probability 0.1.
  DropoutArgs dropout(std::int64_t sequences);

 private:
  Tensor allocate(DType dtype, const Shape& shape);

  Device& device_;
  std::vector<DeviceMemory> blocks_;
  std::uint32_t next_key_ = 0;
};

/// What one call of a kernel moves and computes at least.
struct Work {
  double bytes = 0.0;
  double flops = 0.0;
};

/// Times `kernel()` on the compute queue; reports bytes and floating-point operations per second.
template <typename Kernel>
void time_kernel(benchmark::State& state, Device& device, const Work& work, const Kernel& kernel) {
  kernel();
  device.synchronize(QueueKind::compute);
  for ([[maybe_unused]] auto step : state) {
    kernel();
    device.synchronize(QueueKind::compute);
  }
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (work.bytes > 0.0) state.counters["bytes/s"] = benchmark::Counter(work.bytes, rate);
  if (work.flops > 0.0) state.counters["FLOP/s"] = benchmark::Counter(work.flops, rate);
}

/// Registers `run(state, device)` under "NAME/DTYPE" or "NAME".
template <typename Run>
void add_case(const std::string& name, Device& device, const Run& run) {
  benchmark::RegisterBenchmark(name.c_str(), [&device, run](benchmark::State& state) { run(state, device); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void add_activation_cases(Device& device, DType compute);
void add_generation_cases(Device& device, DType compute);
void add_attention_cases(Device& device, DType compute);
void add_matmul_cases(Device& device, DType compute);
void add_optimizer_cases(Device& device, DType compute);
/// Float32 multiply-add peak, copy and read bandwidth of this machine's processors.
void add_yardsticks(int threads);

}  // namespace megalith::bench
