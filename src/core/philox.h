// Philox4x32-10, a counter-based random generator: the same (key, counter) gives the same numbers on every
// device and layout. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
//
// The polynomials of normal_from_bits are our own and use only correctly rounded operations (+, *, fixed
// order, no fused multiply-add), so that every device and compiler produces equal bits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace megalith {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Ten rounds of Philox4x32: four 32-bit random words.
inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// A key from the run's seed and the name of what is random: a parameter ("init:NAME") or a dropout site
/// ("dropout:NAME"). FNV-1a over the name, then mixed with the seed (SplitMix64's finaliser).
PhiloxKey philox_key(std::uint64_t seed, std::string_view name);

/// Two standard normal numbers from two random words (Box-Muller, computed in float64). Element i of a tensor
/// takes number i%4 of the four that the words of counter {i/4 low, i/4 high, 0, 0} give.
std::array<double, 2> normal_from_bits(std::uint32_t first, std::uint32_t second);

/// Coefficients of normal_from_bits, highest power first. ln((1+s)/(1-s)) / (2s), sin(x) / x and cos(x) in
/// powers of s^2 and x^2.
inline constexpr std::array<double, 11> natural_log_series = {
    1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
inline constexpr std::array<double, 8> sine_series = {
    -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
    -1.0 / 5040,          1.0 / 120,        -1.0 / 6,        1.0};
inline constexpr std::array<double, 9> cosine_series = {1.0 / 20922789888000,
                                                        -1.0 / 87178291200,
                                                        1.0 / 479001600,
                                                        -1.0 / 3628800,
                                                        1.0 / 40320,
                                                        -1.0 / 720,
                                                        1.0 / 24,
                                                        -0.5,
                                                        1.0};

/// Dropout: element (sample, head, row, column) is kept where dropout_bits(...) >= dropout_threshold(p).
/// Counter: {column / 4, row, head | (sample >> 32) << 16, sample low}; word column % 4.
/// For a mask without heads (hidden states) head is 0, row the position in the sequence, column the channel.
inline std::uint32_t dropout_bits(PhiloxKey key, std::uint64_t sample, std::uint32_t head, std::uint32_t row,
                                  std::uint32_t column) {
  const PhiloxCounter words =
      philox({column / 4, row, head | (static_cast<std::uint32_t>(sample >> 32) << 16),
              static_cast<std::uint32_t>(sample)},
             key);
  return words[column % 4];
}

/// The smallest word that survives dropout of probability p in [0, 1).
inline std::uint32_t dropout_threshold(double p) {
  return static_cast<std::uint32_t>(p * 4294967296.0);
}

}  // namespace megalith
