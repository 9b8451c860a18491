// Philox4x32-10 (core/philox.h) on Highway vectors: the same words, many counters at once.
// Included after hwy/highway.h by files that compile themselves once per instruction set.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_PHILOX_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_PHILOX_H
#undef MEGALITH_DEVICE_CPU_SIMD_PHILOX_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_PHILOX_H
#endif

#include <cstddef>
#include <cstdint>

#include "core/philox.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
/// Upper and lower halves of the 64-bit products of every lane with one factor.
template <class D>
HWY_INLINE void multiply_wide(D d, hn::Vec<D> a, std::uint32_t factor, hn::Vec<D>& upper, hn::Vec<D>& lower) {
  const auto b = hn::Set(d, factor);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::DupOdd(a), b);
  upper = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  lower = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

#endif

/// The dropout words of one row: words[i] = dropout_bits(key, sample, head, row, 4 * first_block + i) for
/// i < 4 * blocks rounded up to 4 * Lanes; `words` has room for that (dropout_words_room).
inline void dropout_words(PhiloxKey key, std::uint64_t sample, std::uint32_t head, std::uint32_t row,
                          std::uint32_t first_block, std::size_t blocks, std::uint32_t* HWY_RESTRICT words) {
#if HWY_TARGET == HWY_SCALAR
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const std::uint32_t column = 4 * (first_block + i);
    for (std::uint32_t k = 0; k < 4; ++k) words[4 * i + k] = dropout_bits(key, sample, head, row, column + k);
  }
#else
  const hn::ScalableTag<std::uint32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::uint32_t third = head | (static_cast<std::uint32_t>(sample >> 32) << 16);
  for (std::size_t block = 0; block < blocks; block += lanes) {
    auto c0 = hn::Iota(d, first_block + static_cast<std::uint32_t>(block));
    auto c1 = hn::Set(d, row);
    auto c2 = hn::Set(d, third);
    auto c3 = hn::Set(d, static_cast<std::uint32_t>(sample));
    std::uint32_t key0 = key[0];
    std::uint32_t key1 = key[1];
    for (int round = 0; round < 10; ++round) {
      auto upper0 = c0;
      auto lower0 = c0;
      auto upper1 = c0;
      auto lower1 = c0;
      multiply_wide(d, c0, 0xD2511F53, upper0, lower0);
      multiply_wide(d, c2, 0xCD9E8D57, upper1, lower1);
      c0 = hn::Xor(hn::Xor(upper1, c1), hn::Set(d, key0));
      c1 = lower1;
      c2 = hn::Xor(hn::Xor(upper0, c3), hn::Set(d, key1));
      c3 = lower0;
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, words + 4 * block);
  }
#endif
}

/// Elements that dropout_words may write for this many blocks.
inline std::size_t dropout_words_room(std::size_t blocks) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<std::uint32_t>());
  return 4 * ((blocks + lanes - 1) / lanes * lanes);
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
