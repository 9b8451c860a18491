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

#if HWY_TARGET == HWY_SCALAR

/// As below, without vectors.
template <class D>
HWY_INLINE void philox_lanes(D d, PhiloxKey key, hn::Vec<D>& c0, hn::Vec<D>& c1, hn::Vec<D>& c2,
                             hn::Vec<D>& c3) {
  const PhiloxCounter words =
      philox({hn::GetLane(c0), hn::GetLane(c1), hn::GetLane(c2), hn::GetLane(c3)}, key);
  c0 = hn::Set(d, words[0]);
  c1 = hn::Set(d, words[1]);
  c2 = hn::Set(d, words[2]);
  c3 = hn::Set(d, words[3]);
}

/// As below, without vectors.
class PhiloxRows {
  using V = hn::Vec<hn::ScalableTag<std::uint32_t>>;

 public:
  PhiloxRows(PhiloxKey key, std::uint32_t sample, V row, V head)
      : key_(key), counter_{0, hn::GetLane(row), hn::GetLane(head), sample} {}

  template <typename Body>
  void words(std::uint32_t block, const Body& body) const {
    const PhiloxCounter words = philox({block, counter_[1], counter_[2], counter_[3]}, key_);
    for (const std::uint32_t word : words) body(hn::Set(hn::ScalableTag<std::uint32_t>(), word));
  }

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
};

inline void dropout_words(PhiloxKey key, std::uint64_t sample, std::uint32_t head, std::uint32_t row,
                          std::uint32_t first_block, std::size_t blocks, std::uint32_t* HWY_RESTRICT words) {
  for (std::uint32_t i = 0; i < 4 * blocks; ++i) {
    words[i] = dropout_bits(key, sample, head, row, 4 * first_block + i);
  }
}

#else

/// Rounds first_round to 9 of philox() on the even lanes: the counters are replaced by the random words. Odd
/// lanes may hold anything, and hold nothing of use afterwards: a product of 32 bits by 32 then needs no
/// sorting of halves.
template <class D>
HWY_INLINE void philox_rounds(D d, PhiloxKey key, std::uint32_t first_round, hn::Vec<D>& c0, hn::Vec<D>& c1,
                              hn::Vec<D>& c2, hn::Vec<D>& c3) {
  key[0] += first_round * 0x9E3779B9;
  key[1] += first_round * 0xBB67AE85;
  for (std::uint32_t round = first_round; round < 10; ++round) {
    const auto product0 = hn::MulEven(c0, hn::Set(d, 0xD2511F53));
    const auto product1 = hn::MulEven(c2, hn::Set(d, 0xCD9E8D57));
    c0 = hn::Xor3(hn::BitCast(d, hn::ShiftRight<32>(product1)), c1, hn::Set(d, key[0]));
    c1 = hn::BitCast(d, product1);
    c2 = hn::Xor3(hn::BitCast(d, hn::ShiftRight<32>(product0)), c3, hn::Set(d, key[1]));
    c3 = hn::BitCast(d, product0);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}

/// `even` in the even lanes, the even lanes of `odd` in the odd ones.
template <class D>
HWY_INLINE hn::Vec<D> join_lanes(D d, hn::Vec<D> even, hn::Vec<D> odd) {
  const hn::RepartitionToWide<D> pairs;
  return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(hn::BitCast(pairs, odd))), even);
}

/// The odd lanes, moved to the even ones.
template <class D>
HWY_INLINE hn::Vec<D> odd_lanes(D d, hn::Vec<D> v) {
  const hn::RepartitionToWide<D> pairs;
  return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(pairs, v)));
}

/// philox() on every lane: the counters are replaced by the random words.
template <class D>
HWY_INLINE void philox_lanes(D d, PhiloxKey key, hn::Vec<D>& c0, hn::Vec<D>& c1, hn::Vec<D>& c2,
                             hn::Vec<D>& c3) {
  auto odd0 = odd_lanes(d, c0);
  auto odd1 = odd_lanes(d, c1);
  auto odd2 = odd_lanes(d, c2);
  auto odd3 = odd_lanes(d, c3);
  philox_rounds(d, key, 0, c0, c1, c2, c3);
  philox_rounds(d, key, 0, odd0, odd1, odd2, odd3);
  c0 = join_lanes(d, c0, odd0);
  c1 = join_lanes(d, c1, odd1);
  c2 = join_lanes(d, c2, odd2);
  c3 = join_lanes(d, c3, odd3);
}

/// Upper and lower half of the product of two 32-bit numbers.
struct WideProduct {
  std::uint32_t upper;
  std::uint32_t lower;
};
inline WideProduct multiply_wide(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

/// Random words of counters {block, row, head, sample} with one row and head a lane and one block at a time.
/// Of the first two rounds most depends either on row and head or on block and sample alone: the former is
/// computed once, the latter needs no vectors.
class PhiloxRows {
  using D = hn::ScalableTag<std::uint32_t>;
  using V = hn::Vec<D>;

 public:
  HWY_INLINE PhiloxRows(PhiloxKey key, std::uint32_t sample, V row, V head) : key_(key), sample_(sample) {
    const D d;
    V upper;
    V lower;
    multiply_lanes(d, head, 0xCD9E8D57, upper, lower);
    const V first = hn::Xor3(upper, row, hn::Set(d, key[0]));
    c0_ = hn::Xor(lower, hn::Set(d, key[0] + 0x9E3779B9));
    multiply_lanes(d, first, 0xD2511F53, upper, c3_);
    c2_ = hn::Xor(upper, hn::Set(d, key[1] + 0xBB67AE85));
  }

  /// Calls body(word) for each of the block's four words, a vector of rows.
  template <typename Body>
  HWY_INLINE void words(std::uint32_t block, const Body& body) const {
    const D d;
    const WideProduct first = multiply_wide(block, 0xD2511F53);
    const WideProduct second = multiply_wide(first.upper ^ sample_ ^ key_[1], 0xCD9E8D57);
    V even[4] = {hn::Xor(c0_, hn::Set(d, second.upper)), hn::Set(d, second.lower),
                 hn::Xor(c2_, hn::Set(d, first.lower)), c3_};
    V odd[4] = {odd_lanes(d, even[0]), even[1], odd_lanes(d, even[2]), odd_lanes(d, even[3])};
    philox_rounds(d, key_, 2, even[0], even[1], even[2], even[3]);
    philox_rounds(d, key_, 2, odd[0], odd[1], odd[2], odd[3]);
    for (int i = 0; i < 4; ++i) body(join_lanes(d, even[i], odd[i]));
  }

 private:
  static HWY_INLINE void multiply_lanes(D d, V a, std::uint32_t factor, V& upper, V& lower) {
    const auto b = hn::Set(d, factor);
    const auto even = hn::BitCast(d, hn::MulEven(a, b));
    const auto odd = hn::BitCast(d, hn::MulEven(odd_lanes(d, a), b));
    upper = hn::OddEven(odd, odd_lanes(d, even));
    lower = join_lanes(d, even, odd);
  }

  PhiloxKey key_;
  std::uint32_t sample_;
  V c0_;
  V c2_;
  V c3_;
};

/// The dropout words of one row: words[i] = dropout_bits(key, sample, head, row, 4 * first_block + i) for
/// i < 4 * blocks, and some more: `words` has room for dropout_words_room(blocks).
inline void dropout_words(PhiloxKey key, std::uint64_t sample, std::uint32_t head, std::uint32_t row,
                          std::uint32_t first_block, std::size_t blocks, std::uint32_t* HWY_RESTRICT words) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  const std::size_t lanes = hn::Lanes(pairs);
  // The first two rounds, as far as they are the same for the whole row.
  const WideProduct of_head =
      multiply_wide(head | (static_cast<std::uint32_t>(sample >> 32) << 16), 0xCD9E8D57);
  const WideProduct of_row = multiply_wide(of_head.upper ^ row ^ key[0], 0xD2511F53);
  const auto first_key = hn::Set(d, static_cast<std::uint32_t>(sample) ^ key[1]);
  const auto second_key = hn::Set(d, of_head.lower ^ (key[0] + 0x9E3779B9));
  const auto third_key = hn::Set(d, of_row.upper ^ (key[1] + 0xBB67AE85));
  // Pair 2i holds block i, pair 2i + 1 block lanes / 2 + i: so interleaving gives blocks in order.
  const auto number = hn::Iota(pairs, 0);
  const auto odd = hn::And(number, hn::Set(pairs, 1));
  const auto order =
      hn::BitCast(d, hn::Add(hn::ShiftRight<1>(number),
                             hn::IfThenElseZero(hn::Ne(odd, hn::Zero(pairs)), hn::Set(pairs, lanes / 2))));
  for (std::size_t block = 0; block < blocks; block += lanes) {
    const auto c = hn::Add(order, hn::Set(d, first_block + static_cast<std::uint32_t>(block)));
    const auto product = hn::MulEven(c, hn::Set(d, 0xD2511F53));
    const auto second =
        hn::MulEven(hn::Xor(hn::BitCast(d, hn::ShiftRight<32>(product)), first_key), hn::Set(d, 0xCD9E8D57));
    auto c0 = hn::Xor(hn::BitCast(d, hn::ShiftRight<32>(second)), second_key);
    auto c1 = hn::BitCast(d, second);
    auto c2 = hn::Xor(hn::BitCast(d, product), third_key);
    auto c3 = hn::Set(d, of_row.lower);
    philox_rounds(d, key, 2, c0, c1, c2, c3);
    const auto front = hn::BitCast(pairs, join_lanes(d, c0, c1));
    const auto back = hn::BitCast(pairs, join_lanes(d, c2, c3));
    std::uint32_t* const to = words + 4 * block;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, front, back)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, front, back)), d, to + hn::Lanes(d));
  }
}

#endif

/// Elements that dropout_words may write for this many blocks.
inline std::size_t dropout_words_room(std::size_t blocks) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<std::uint32_t>());
  return 4 * ((blocks + lanes - 1) / lanes * lanes);
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
