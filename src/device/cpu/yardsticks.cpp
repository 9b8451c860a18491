// The yardsticks, as vectors of the best instruction set this processor has measure them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/yardsticks.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Ten independent chains hide the latency of multiply-add (4 or 5 cycles, two a cycle).
constexpr int chains = 10;

// Returns the FLOPs done.
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

// Reads [words, words + count), count a multiple of four pages: in four streams a page apart, which keeps
// more requests on their way than one, and asking for the next four pages before they are needed.
constexpr std::size_t page_words = 512;

std::uint64_t combine(const std::uint64_t* words, std::size_t count) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  auto c0 = hn::Zero(d);
  auto c1 = hn::Zero(d);
  auto c2 = hn::Zero(d);
  auto c3 = hn::Zero(d);
  for (std::size_t block = 0; block + 4 * page_words <= count; block += 4 * page_words) {
    const std::uint64_t* const pages = words + block;
    for (std::size_t i = 0; i < page_words; i += lanes) {
      for (std::size_t stream = 4; stream < 8; ++stream) hwy::Prefetch(pages + stream * page_words + i);
      c0 = hn::Xor(c0, hn::LoadU(d, pages + i));
      c1 = hn::Xor(c1, hn::LoadU(d, pages + page_words + i));
      c2 = hn::Xor(c2, hn::LoadU(d, pages + 2 * page_words + i));
      c3 = hn::Xor(c3, hn::LoadU(d, pages + 3 * page_words + i));
    }
  }
  return hn::GetLane(hn::Xor(hn::Xor(c0, c1), hn::Xor(c2, c3)));
}

// Changes every word of [words, words + count) in place; count a multiple of four vectors.
void change(std::uint64_t* words, std::size_t count) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto one = hn::Set(d, 1);
  for (std::size_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    for (std::size_t part = 0; part < 4; ++part) {
      std::uint64_t* const place = words + i + part * lanes;
      hn::StoreU(hn::Xor(one, hn::LoadU(d, place)), d, place);
    }
  }
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "device/cpu/aligned_memory.h"
#include "device/parallel_for.h"
#include "device/yardsticks.h"

namespace megalith {

HWY_EXPORT(multiply_add);
HWY_EXPORT(combine);
HWY_EXPORT(change);

namespace {

/// The best rate that `work`, which returns how much it did, reaches in repetitions of `seconds` in all.
template <typename Work>
double best_rate(double seconds, const Work& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0.0;
  for (double spent = 0.0; spent < seconds;) {
    const auto begin = Clock::now();
    const double done = work();
    const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, done / elapsed);
    spent += elapsed;
  }
  return best;
}

double multiply_add_rate(ThreadTeam& team) {
  constexpr std::size_t rounds = 1000000;
  std::vector<double> flops(static_cast<std::size_t>(team.threads()));
  std::vector<float> results(flops.size());
  return best_rate(0.3, [&] {
    team.run_parts(team.threads(), [&](int part) {
      float result = 0.0F;
      flops[static_cast<std::size_t>(part)] = HWY_DYNAMIC_DISPATCH(multiply_add)(rounds, &result);
      results[static_cast<std::size_t>(part)] = result;
    });
    double total = 0.0;
    for (const double part : flops) total += part;
    return total;
  });
}

constexpr std::int64_t four_pages = 2048;  // words

/// Calls move(part, first word, words) on each thread for its part of a block of `words` in all, often enough
/// that starting the threads does not count.
template <typename Move>
double block_rate(ThreadTeam& team, std::int64_t words, const Move& move) {
  constexpr std::int64_t least = std::int64_t{1} << 20;
  const std::int64_t repeats = std::max<std::int64_t>(1, least / words);
  const std::int64_t share = words / team.threads() / four_pages * four_pages;
  return best_rate(0.04, [&] {
    team.run_parts(team.threads(), [&](int part) {
      for (std::int64_t i = 0; i < repeats; ++i) move(part, part * share, share);
    });
    return static_cast<double>(repeats * share * team.threads()) * sizeof(std::uint64_t);
  });
}

}  // namespace

Yardsticks measure_yardsticks(int threads) {
  constexpr std::int64_t largest = std::int64_t{64} << 20;  // words: 512 MiB
  const auto bytes_of = [](std::int64_t count) { return static_cast<double>(count) * sizeof(std::uint64_t); };
  ThreadTeam team(threads);
  Yardsticks yardsticks;
  yardsticks.threads = threads;
  yardsticks.multiply_add = multiply_add_rate(team);

  // Where tensors lie too: on huge pages, where the system gives them.
  const AlignedMemory memory = allocate_aligned(static_cast<std::size_t>(largest) * sizeof(std::uint64_t));
  auto* const words = reinterpret_cast<std::uint64_t*>(memory.get());
  team.parallel_for(largest, 512,
                    [&](std::int64_t begin, std::int64_t end) { std::fill(words + begin, words + end, 1); });
  std::vector<std::uint64_t> combined(static_cast<std::size_t>(threads));
  // From 64 KiB a thread.
  for (std::int64_t count = threads * 4 * four_pages; yardsticks.memory().bytes < bytes_of(largest);
       count *= 4) {
    count = std::min(count, largest);
    Bandwidth block{.bytes = bytes_of(count)};
    block.copy = block_rate(team, count, [&](int, std::int64_t first, std::int64_t share) {
      const std::int64_t half = share / 2;
      std::memcpy(words + first + half, words + first,
                  static_cast<std::size_t>(half) * sizeof(std::uint64_t));
    });
    block.update = 2.0 * block_rate(team, count, [&](int, std::int64_t first, std::int64_t share) {
                     HWY_DYNAMIC_DISPATCH(change)(words + first, static_cast<std::size_t>(share));
                   });
    block.read = block_rate(team, count, [&](int part, std::int64_t first, std::int64_t share) {
      combined[static_cast<std::size_t>(part)] ^=
          HWY_DYNAMIC_DISPATCH(combine)(words + first, static_cast<std::size_t>(share));
    });
    yardsticks.bandwidths.push_back(block);
  }
  return yardsticks;
}

}  // namespace megalith
#endif
