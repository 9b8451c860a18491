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

/// Upper and lower halves of the 64-bit products of every lane with one factor.
template <class D>
HWY_INLINE void multiply_wide(D d, hn::Vec<D> a, std::uint32_t factor, hn::Vec<D>& upper, hn::Vec<D>& lower) {
#if HWY_TARGET == HWY_SCALAR
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * factor;
  upper = hn::Set(d, static_cast<std::uint32_t>(product >> 32));
  lower = hn::Set(d, static_cast<std::uint32_t>(product));
#else
  const auto b = hn::Set(d, factor);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::DupOdd(a), b);
  upper = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  lower = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
#endif
}

/// philox() on every lane: the counters are replaced by the random words.
template <class D>
HWY_INLINE void philox_lanes(D d, PhiloxKey key, hn::Vec<D>& c0, hn::Vec<D>& c1, hn::Vec<D>& c2,
                             hn::Vec<D>& c3) {
  for (int round = 0; round < 10; ++round) {
    auto upper0 = c0;
    auto lower0 = c0;
    auto upper1 = c0;
    auto lower1 = c0;
    multiply_wide(d, c0, 0xD2511F53, upper0, lower0);
    multiply_wide(d, c2, 0xCD9E8D57, upper1, lower1);
    c0 = hn::Xor(hn::Xor(upper1, c1), hn::Set(d, key[0]));
    c1 = lower1;
    c2 = hn::Xor(hn::Xor(upper0, c3), hn::Set(d, key[1]));
    c3 = lower0;
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}

/// The dropout words of one row: words[i] = dropout_bits(key, sample, head, row, 4 * first_block + i) for
/// i < 4 * blocks rounded up to 4 * Lanes; `words` has room for that (dropout_words_room).
inline void dropout_words(PhiloxKey key, std::uint64_t sample, std::uint32_t head, std::uint32_t row,
                          std::uint32_t first_block, std::size_t blocks, std::uint32_t* HWY_RESTRICT words) {
  const hn::ScalableTag<std::uint32_t> d;
  const std::uint32_t third = head | (static_cast<std::uint32_t>(sample >> 32) << 16);
  for (std::size_t block = 0; block < blocks; block += hn::Lanes(d)) {
    auto c0 = hn::Iota(d, first_block + static_cast<std::uint32_t>(block));
    auto c1 = hn::Set(d, row);
    auto c2 = hn::Set(d, third);
    auto c3 = hn::Set(d, static_cast<std::uint32_t>(sample));
    philox_lanes(d, key, c0, c1, c2, c3);
    hn::StoreInterleaved4(c0, c1, c2, c3, d, words + 4 * block);
  }
}

/// Elements that dropout_words may write for this many blocks.
inline std::size_t dropout_words_room(std::size_t blocks) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<std::uint32_t>());
  return 4 * ((blocks + lanes - 1) / lanes * lanes);
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
