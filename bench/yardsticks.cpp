// What this machine can do at most: float32 multiply-adds in registers, and copying and reading memory larger
// than the caches.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/yardsticks.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace megalith::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Ten independent chains hide the latency of multiply-add (4 or 5 cycles, two a cycle).
constexpr int chains = 10;

double multiply_add(std::size_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999F);
  const auto b = hn::Set(d, 0.001F);
  auto c0 = hn::Set(d, 0.1F);
  auto c1 = hn::Set(d, 0.2F);
  auto c2 = hn::Set(d, 0.3F);
  auto c3 = hn::Set(d, 0.4F);
  auto c4 = hn::Set(d, 0.5F);
  auto c5 = hn::Set(d, 0.6F);
  auto c6 = hn::Set(d, 0.7F);
  auto c7 = hn::Set(d, 0.8F);
  auto c8 = hn::Set(d, 0.9F);
  auto c9 = hn::Set(d, 1.0F);
  for (std::size_t round = 0; round < rounds; ++round) {
    c0 = hn::MulAdd(c0, a, b);
    c1 = hn::MulAdd(c1, a, b);
    c2 = hn::MulAdd(c2, a, b);
    c3 = hn::MulAdd(c3, a, b);
    c4 = hn::MulAdd(c4, a, b);
    c5 = hn::MulAdd(c5, a, b);
    c6 = hn::MulAdd(c6, a, b);
    c7 = hn::MulAdd(c7, a, b);
    c8 = hn::MulAdd(c8, a, b);
    c9 = hn::MulAdd(c9, a, b);
  }
  const auto left = hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)), c4);
  const auto right = hn::Add(hn::Add(hn::Add(c5, c6), hn::Add(c7, c8)), c9);
  *sink = hn::GetLane(hn::Add(left, right));
  return 2.0 * chains * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}

// Reads in four streams, a page apart, which keeps more requests on their way than one, and asks for the next
// four pages before they are needed.
void read_all(const float* from, std::size_t count, float* sink) {
  constexpr std::size_t page = 1024;
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  for (std::size_t block = 0; block + 4 * page <= count; block += 4 * page) {
    const float* pages = from + block;
    for (std::size_t i = 0; i < page; i += lanes) {
      for (std::size_t stream = 0; stream < 4; ++stream) hwy::Prefetch(pages + (4 + stream) * page + i);
      sum0 = hn::Add(sum0, hn::LoadU(d, pages + i));
      sum1 = hn::Add(sum1, hn::LoadU(d, pages + page + i));
      sum2 = hn::Add(sum2, hn::LoadU(d, pages + 2 * page + i));
      sum3 = hn::Add(sum3, hn::LoadU(d, pages + 3 * page + i));
    }
  }
  *sink = hn::GetLane(hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

}  // namespace
}  // namespace megalith::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/workspace.h"
#include "device/cpu/aligned_memory.h"
#include "device/parallel_for.h"

namespace megalith::bench {

HWY_EXPORT(multiply_add);
HWY_EXPORT(read_all);

namespace {

void time_multiply_add(benchmark::State& state, int threads) {
  constexpr std::size_t rounds = 1000000;
  ThreadTeam team(threads);
  std::vector<double> flops(static_cast<std::size_t>(threads));
  for ([[maybe_unused]] auto step : state) {
    team.run_parts(threads, [&](int part) {
      float sink = 0.0F;
      flops[static_cast<std::size_t>(part)] = HWY_DYNAMIC_DISPATCH(multiply_add)(rounds, &sink);
      benchmark::DoNotOptimize(sink);
    });
  }
  double total = 0.0;
  for (const double part : flops) total += part;
  state.counters["FLOP/s"] = benchmark::Counter(total, benchmark::Counter::kIsIterationInvariantRate);
}

void time_copy(benchmark::State& state, int threads) {
  constexpr std::int64_t bytes = std::int64_t{256} << 20;
  ThreadTeam team(threads);
  const std::vector<char> from(static_cast<std::size_t>(bytes), 1);
  std::vector<char> to(static_cast<std::size_t>(bytes), 2);
  for ([[maybe_unused]] auto step : state) {
    team.parallel_for(bytes, 4096, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
    });
    benchmark::ClobberMemory();
  }
  const double moved = 2.0 * static_cast<double>(bytes);
  state.counters["bytes/s"] = benchmark::Counter(moved, benchmark::Counter::kIsIterationInvariantRate);
}

void time_read(benchmark::State& state, int threads, std::size_t bytes) {
  ThreadTeam team(threads);
  const AlignedMemory memory = allocate_aligned(bytes);
  auto* const from = reinterpret_cast<float*>(memory.get());
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  team.parallel_for(count, 4096,
                    [&](std::int64_t begin, std::int64_t end) { std::fill(from + begin, from + end, 1.0F); });
  for ([[maybe_unused]] auto step : state) {
    team.parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
      float sink = 0.0F;
      HWY_DYNAMIC_DISPATCH(read_all)(from + begin, static_cast<std::size_t>(end - begin), &sink);
      benchmark::DoNotOptimize(sink);
    });
  }
  state.counters["bytes/s"] =
      benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

void add_yardsticks(int threads) {
  benchmark::RegisterBenchmark("yardstick_float32_multiply_add",
                               [threads](benchmark::State& state) { time_multiply_add(state, threads); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("yardstick_copy_bandwidth",
                               [threads](benchmark::State& state) { time_copy(state, threads); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  // Beyond every cache, and the weights of GPT-2 124M, of which a large cache may keep a part.
  for (const auto& [name, bytes] :
       {std::pair("2GB", std::size_t{2} << 30), std::pair("498MB", std::size_t{498} * 1000 * 1000)}) {
    benchmark::RegisterBenchmark(
        (std::string("yardstick_read_bandwidth/") + name).c_str(),
        [threads, bytes](benchmark::State& state) { time_read(state, threads, bytes); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace megalith::bench
#endif
