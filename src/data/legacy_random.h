// numpy's legacy RandomState, as far as the sample order needs it: the Mersenne Twister seeded with an
// integer, whole numbers by masked rejection, and the shuffle built on them. Matsumoto and Nishimura,
// "Mersenne Twister", ACM TOMACS 8(1), 1998.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace megalith {

class LegacyRandom {
 public:
  explicit LegacyRandom(std::uint32_t seed) : engine_(seed) {}

  /// A whole number of [0, largest]: draws of as many bits as `largest` has, until one is not above it. Takes
  /// one 32-bit draw a try, two (the upper half first) where `largest` needs more than 32 bits.
  std::uint64_t interval(std::uint64_t largest) {
    if (largest == 0) return 0;
    const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(largest);
    std::uint64_t value = 0;
    do {
      value = next32();
      if (largest > 0xffffffffU) value = (value << 32) | next32();
      value &= mask;
    } while (value > largest);
    return value;
  }

  /// Fisher-Yates from the last element down.
  template <typename T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[interval(i)]);
  }

 private:
  std::uint64_t next32() { return static_cast<std::uint64_t>(engine_()) & 0xffffffffU; }

  std::mt19937 engine_;
};

}  // namespace megalith
