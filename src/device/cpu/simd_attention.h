// Parts that attention's forward and backward share. Scores are kept transposed, [keys, rows of queries]: a
// vector holds one key's scores of neighbouring rows, so that maxima, sums and masks need no work across
// lanes, keys are read in their natural layout, and only the queries are transposed, once. Included after
// hwy/highway.h by files that compile themselves once per instruction set.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_ATTENTION_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_H
#undef MEGALITH_DEVICE_CPU_SIMD_ATTENTION_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_ATTENTION_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "device/cpu/attention_layout.h"
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_philox.h"
#include "device/cpu/simd_product.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

/// to[0..count) = factor * from[0..count), then zeros up to `padded`.
template <typename T>
HWY_INLINE void convert_row(const T* from, std::int64_t count, float factor, float* HWY_RESTRICT to,
                            std::int64_t padded) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(scale, load(d, from + i)), d, to + i);
  for (; i < count; ++i) to[i] = factor * static_cast<float>(from[i]);
  for (; i < padded; ++i) to[i] = 0.0F;
}

/// to[0..count) = factor * from[0..count).
template <typename T>
HWY_INLINE void store_row(const float* from, std::int64_t count, float factor, T* to) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(hn::Mul(scale, hn::LoadU(d, from + i)), d, to + i);
  for (; i < count; ++i) to[i] = static_cast<T>(factor * from[i]);
}

/// transposed[column][row] of rows[0..count)[0..columns), zeros for the absent rows of the tile.
HWY_INLINE void transpose_rows(const float* rows, std::int64_t step, std::int64_t count, std::int64_t columns,
                               float* HWY_RESTRICT transposed) {
  for (std::int64_t column = 0; column < columns; ++column) {
    float* to = transposed + column * attention_tile_rows;
    for (std::int64_t row = 0; row < count; ++row) to[row] = rows[row * step + column];
    for (std::int64_t row = count; row < attention_tile_rows; ++row) to[row] = 0.0F;
  }
}

/// Keys or values [first, last) of one group as float32 rows `step` apart, padded with zeros to `step`.
template <typename T>
HWY_INLINE void load_keys(const AttentionLayout& layout, const Tensor& tensor, std::int64_t sequence,
                          std::int64_t group, KeyRange keys, float* HWY_RESTRICT to, std::int64_t step) {
  const T* base = pointer_to<T>(tensor);
  for (std::int64_t key = keys.first; key < keys.last; ++key) {
    convert_row(base + layout.key_offset(tensor, sequence, key, group), layout.head_size(), 1.0F,
                to + (key - keys.first) * step, step);
  }
}

/// Which rows of a vector see key `key`.
template <class D>
HWY_INLINE hn::Mask<D> sees_key(D d, const AttentionRows& rows, std::int64_t column, std::int64_t key) {
  const hn::RebindToSigned<D> integers;
  const auto first = hn::LoadU(integers, rows.key_first.data() + column);
  const auto last = hn::LoadU(integers, rows.key_last.data() + column);
  const auto number = hn::Set(integers, static_cast<std::int32_t>(key));
  return hn::RebindMask(d, hn::AndNot(hn::Gt(first, number), hn::Gt(last, number)));
}

/// Dropout of the scores of keys [keys.first, keys.last) for rows [column, column + lanes): calls
/// body(key - keys.first, kept) with the mask of rows that keep the key.
template <typename Body>
HWY_INLINE void for_each_kept(const DropoutArgs& dropout, const AttentionRows& rows, std::uint64_t sample,
                              KeyRange keys, std::int64_t column, const Body& body) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> words;
  const auto threshold = hn::Set(words, dropout_threshold(dropout.probability));
  const auto row = hn::LoadU(words, rows.dropout_row.data() + column);
  const auto head = hn::LoadU(words, rows.dropout_head.data() + column);
  const auto low = hn::Set(words, static_cast<std::uint32_t>(sample));
  std::int64_t key = keys.first;
  while (key < keys.last) {
    const auto number = static_cast<std::uint32_t>(dropout.first_column + key);
    auto word0 = hn::Set(words, number / 4);
    auto word1 = row;
    auto word2 = head;
    auto word3 = low;
    philox_lanes(words, dropout.key, word0, word1, word2, word3);
    for (std::uint32_t place = number % 4; place < 4 && key < keys.last; ++place, ++key) {
      const auto word = place == 0 ? word0 : place == 1 ? word1 : place == 2 ? word2 : word3;
      body(key - keys.first, hn::RebindMask(d, hn::Not(hn::Lt(word, threshold))));
    }
  }
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
