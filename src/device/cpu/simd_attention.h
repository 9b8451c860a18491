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
#include <array>
#include <cstddef>
#include <cstdint>

#include "device/cpu/attention_layout.h"
#include "device/cpu/simd_attention_product.h"
#include "device/cpu/simd_loop.h"
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_philox.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

/// to[0..count) = factor * from[0..count), then zeros up to `padded`.
template <typename T>
HWY_INLINE void convert_row(const T* from, std::int64_t count, float factor, float* HWY_RESTRICT to,
                            std::int64_t padded) {
  const FloatTag d;
  const auto scale = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + float_lanes <= count; i += float_lanes) {
    hn::StoreU(hn::Mul(scale, load(d, from + i)), d, to + i);
  }
  for (; i < count; ++i) to[i] = factor * static_cast<float>(from[i]);
  for (; i < padded; ++i) to[i] = 0.0F;
}

/// to[0..count) = factor * from[0..count).
template <typename T>
HWY_INLINE void store_row(const float* from, std::int64_t count, float factor, T* to) {
  const FloatTag d;
  const auto scale = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + float_lanes <= count; i += float_lanes) {
    store(hn::Mul(scale, hn::LoadU(d, from + i)), d, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<T>(factor * from[i]);
}

/// A matrix as wide as a head: panel p holds columns [64 p, 64 p + 64) of its `rows` rows.
struct Panels {
  float* data;
  std::int64_t rows;
  std::int64_t head_size;

  static std::int64_t floats(std::int64_t rows, std::int64_t head_size) {
    return panels_of(head_size) * rows * panel_columns;
  }
  std::int64_t count() const { return panels_of(head_size); }
  float* panel(std::int64_t p) const { return data + p * rows * panel_columns; }
  /// Columns of panel p that are in use, and those rounded up to register tiles, which hold zeros.
  std::int64_t columns(std::int64_t p) const {
    return std::min(panel_columns, head_size - p * panel_columns);
  }
  std::int64_t padded(std::int64_t p) const { return padded_columns(columns(p)); }

  /// Row `row` = factor * from[0..head_size).
  template <typename T>
  HWY_INLINE void set_row(std::int64_t row, const T* from, float factor) const {
    for (std::int64_t p = 0; p < count(); ++p) {
      convert_row(from + p * panel_columns, columns(p), factor, panel(p) + row * panel_columns, padded(p));
    }
  }
  /// to[0..head_size) = factor * row `row`.
  template <typename T>
  HWY_INLINE void get_row(std::int64_t row, float factor, T* to) const {
    for (std::int64_t p = 0; p < count(); ++p) {
      store_row(panel(p) + row * panel_columns, columns(p), factor, to + p * panel_columns);
    }
  }
  void clear() const { std::fill_n(data, floats(rows, head_size), 0.0F); }
};

/// transposed[column][row] of the first `count` rows of a panel of 64 rows and `columns` columns, a multiple
/// of 4; zeros for the absent rows.
HWY_NOINLINE inline void transpose_panel(const float* rows, std::int64_t count, std::int64_t columns,
                                         float* HWY_RESTRICT transposed) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t column = 0; column < columns; ++column) {
    float* to = transposed + column * panel_columns;
    for (std::int64_t row = 0; row < count; ++row) to[row] = rows[row * panel_columns + column];
    std::fill(to + count, to + attention_tile_rows, 0.0F);
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<std::uint64_t, 2> pairs;
  const auto as_pairs = [&](auto v) HWY_ATTR { return hn::BitCast(pairs, v); };
  for (std::int64_t row = 0; row < attention_tile_rows; row += 4) {
    const auto load_row = [&](std::int64_t number, std::int64_t column) HWY_ATTR {
      return number < count ? hn::LoadU(d, rows + number * panel_columns + column) : hn::Zero(d);
    };
    for (std::int64_t column = 0; column < columns; column += 4) {
      const auto r0 = load_row(row, column);
      const auto r1 = load_row(row + 1, column);
      const auto r2 = load_row(row + 2, column);
      const auto r3 = load_row(row + 3, column);
      const auto low01 = as_pairs(hn::InterleaveLower(d, r0, r1));
      const auto low23 = as_pairs(hn::InterleaveLower(d, r2, r3));
      const auto high01 = as_pairs(hn::InterleaveUpper(d, r0, r1));
      const auto high23 = as_pairs(hn::InterleaveUpper(d, r2, r3));
      float* to = transposed + column * panel_columns + row;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + panel_columns);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * panel_columns);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * panel_columns);
    }
  }
#endif
}

/// The first `count` rows, transposed: [head size padded, 64 rows].
HWY_INLINE void transpose_rows(const Panels& rows, std::int64_t count, float* HWY_RESTRICT transposed) {
  for (std::int64_t p = 0; p < rows.count(); ++p) {
    transpose_panel(rows.panel(p), count, rows.padded(p), transposed + p * panel_columns * panel_columns);
  }
}

/// Rows [0, keys.last - keys.first) of `to` are the keys or values of one group.
template <typename T>
HWY_INLINE void load_keys(const AttentionLayout& layout, const Tensor& tensor, std::int64_t sequence,
                          std::int64_t group, KeyRange keys, const Panels& to) {
  const T* base = pointer_to<T>(tensor);
  for (std::int64_t key = keys.first; key < keys.last; ++key) {
    to.set_row(key - keys.first, base + layout.key_offset(tensor, sequence, key, group), 1.0F);
  }
}

/// Which of some keys each vector of a tile's rows sees.
class SeenKeys {
 public:
  HWY_INLINE SeenKeys(const AttentionRows& rows, KeyRange keys)
      : keys_(keys), count_(rows.count), whole_(keys.first >= rows.all.first && keys.last <= rows.all.last) {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      seen_[i] = rows.seen_by(static_cast<std::int64_t>(i) * float_lanes, float_lanes, keys);
    }
  }

  KeyRange keys() const { return keys_; }
  /// Whether every row sees all of them.
  bool whole() const { return whole_; }
  /// Those that the rows [column, column + lanes) see.
  const AttentionRows::Seen& by(std::int64_t column) const {
    return seen_[static_cast<std::size_t>(column / float_lanes)];
  }

  /// Calls body(keys, first row, last row) for sum_rows keys at a time with the rows that see some of them,
  /// in whole vectors; or once where every row sees every key.
  template <typename Body>
  HWY_INLINE void for_each_strip(const Body& body) const {
    if (whole_) {
      body(keys_, 0, padded_columns(count_));
      return;
    }
    for (std::int64_t key = keys_.first; key < keys_.last; key += sum_rows) {
      const KeyRange strip{key, std::min(keys_.last, key + sum_rows)};
      std::int64_t first = attention_tile_rows;
      std::int64_t last = 0;
      for (std::int64_t column = 0; column < count_; column += float_lanes) {
        if (common_keys(by(column).any, strip).last == 0) continue;
        first = std::min(first, column);
        last = column + float_lanes;
      }
      if (last > first) body(strip, first, last);
    }
  }

 private:
  std::array<AttentionRows::Seen, static_cast<std::size_t>(attention_tile_rows / float_lanes)> seen_;
  KeyRange keys_;
  std::int64_t count_;
  bool whole_;
};

/// scores[key - first][row] = keys[key - base] . rows[row] for the keys that rows see, `first` the first of
/// them; others keep what they had. `transposed` is what transpose_rows gave.
HWY_INLINE void product_with_rows(const SeenKeys& seen, const Panels& keys, std::int64_t base,
                                  const float* transposed, float* scores, FarRows& far) {
  seen.for_each_strip([&](KeyRange strip, std::int64_t first, std::int64_t last) HWY_ATTR {
    for (std::int64_t p = 0; p < keys.count(); ++p) {
      panel_product<Left::straight>(strip.last - strip.first, last - first, keys.columns(p),
                                    keys.panel(p) + (strip.first - base) * panel_columns,
                                    transposed + p * panel_columns * panel_columns + first, p > 0,
                                    scores + (strip.first - seen.keys().first) * panel_columns + first, far);
    }
  });
}

/// sums[key - base] += sum over the rows that see the key of weights[key - first][row] * values[row]. Weights
/// of keys that a row does not see but a neighbour does are 0.
HWY_INLINE void add_weighted_rows(const SeenKeys& seen, std::int64_t row_count, const Panels& values,
                                  const float* weights, const Panels& sums, std::int64_t base, FarRows& far) {
  seen.for_each_strip([&](KeyRange strip, std::int64_t first, std::int64_t last) HWY_ATTR {
    for (std::int64_t p = 0; p < values.count(); ++p) {
      panel_product<Left::straight>(strip.last - strip.first, values.padded(p),
                                    std::min(last, row_count) - first,
                                    weights + (strip.first - seen.keys().first) * panel_columns + first,
                                    values.panel(p) + first * panel_columns, true,
                                    sums.panel(p) + (strip.first - base) * panel_columns, far);
    }
  });
}

/// sums[row] += sum over the keys that the row sees of weights[key - first][row] * values[key - base].
/// Weights of keys that a row does not see but a neighbour does are 0.
HWY_INLINE void add_weighted_keys(const AttentionRows& rows, const SeenKeys& seen, const Panels& values,
                                  std::int64_t base, const float* weights, const Panels& sums, FarRows& far) {
  const auto multiply = [&](KeyRange keys, std::int64_t row, std::int64_t count) HWY_ATTR {
    for (std::int64_t p = 0; p < values.count(); ++p) {
      panel_product<Left::transposed>(count, values.padded(p), keys.last - keys.first,
                                      weights + (keys.first - seen.keys().first) * panel_columns + row,
                                      values.panel(p) + (keys.first - base) * panel_columns, true,
                                      sums.panel(p) + row * panel_columns, far);
    }
  };
  if (seen.whole()) {
    multiply(seen.keys(), 0, rows.count);
    return;
  }
  for (std::int64_t row = 0; row < rows.count; row += sum_rows) {
    const std::int64_t count = std::min(sum_rows, rows.count - row);
    const KeyRange some = rows.seen_by(row, count, seen.keys()).any;
    if (some.last > some.first) multiply(some, row, count);
  }
}

/// Calls of FarRows::ask() that a product with a whole tile of keys makes for each panel.
inline constexpr std::int64_t asks_of_product = attention_tile_rows / sum_rows;

/// Asks for the rows of keys `keys` in key, value or their gradients.
template <typename T>
HWY_INLINE void add_far_keys(const AttentionLayout& layout, const Tensor& tensor, std::int64_t sequence,
                             std::int64_t group, KeyRange keys, FarRows& far) {
  if (layout.paged() || keys.last <= keys.first) return;
  const auto size = static_cast<std::int64_t>(sizeof(T));
  far.add(pointer_to<T>(tensor) + layout.key_offset(tensor, sequence, keys.first, group),
          tensor.stride(1) * size, layout.head_size() * size, keys.last - keys.first);
}

/// The same for the rows of a tile in query, out or their gradients; where heads share a group, for each
/// head.
template <typename T>
HWY_INLINE void add_far_rows(const AttentionLayout& layout, const Tensor& tensor, std::int64_t sequence,
                             std::int64_t group, std::int64_t tile, FarRows& far) {
  const auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t first = tile * attention_tile_rows;
  const std::int64_t rows = std::min(attention_tile_rows, layout.rows() - first);
  const std::int64_t heads = layout.heads_per_group();
  if (rows <= 0) return;
  const std::int64_t row = first / heads * heads;
  far.add(pointer_to<T>(tensor) + layout.row_offset(tensor, sequence, group, row), tensor.stride(1) * size,
          heads * layout.head_size() * size, (first + rows - row + heads - 1) / heads);
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

/// Zeros for rows [column, column + lanes) of a panel of keys, the keys of `range` except those of `kept`.
HWY_INLINE void clear_keys(KeyRange range, KeyRange kept, std::int64_t base, float* panel) {
  const FloatTag d;
  for (std::int64_t key = range.first; key < range.last; ++key) {
    if (key == kept.first && kept.last > kept.first) key = kept.last;
    if (key < range.last) hn::Store(hn::Zero(d), d, panel + (key - base) * panel_columns);
  }
}

/// Dropout of the scores of `keys` for rows [column, column + lanes): calls body(key, kept) with the mask of
/// rows that keep the key.
template <typename Body>
HWY_INLINE void for_each_kept(const DropoutArgs& dropout, const AttentionRows& rows, std::uint64_t sample,
                              KeyRange keys, std::int64_t column, const Body& body) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> words;
  const auto threshold = hn::Set(words, dropout_threshold(dropout.probability));
  const PhiloxRows random(dropout.key, static_cast<std::uint32_t>(sample),
                          hn::LoadU(words, rows.dropout_row.data() + column),
                          hn::LoadU(words, rows.dropout_head.data() + column));
  const std::int64_t first = dropout.first_column + keys.first;
  for (std::int64_t key = keys.first - first % 4; key < keys.last; key += 4) {
    std::int64_t place = key;
    random.words(static_cast<std::uint32_t>((dropout.first_column + key) / 4), [&](auto word) HWY_ATTR {
      if (place >= keys.first && place < keys.last) {
        body(place, hn::RebindMask(d, hn::Not(hn::Lt(word, threshold))));
      }
      ++place;
    });
  }
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
