#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/dropout_add.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/simd_loop.h"
#include "device/cpu/simd_philox.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Columns whose random words are drawn at a time; they stay in the first-level cache.
constexpr std::int64_t chunk = 512;
constexpr std::size_t word_room = chunk + 8 + 4 * (HWY_MAX_BYTES / sizeof(std::uint32_t));

// Scales the elements of one row that a dropout keeps, and zeroes the others.
class RowMask {
 public:
  RowMask(const DropoutArgs& args, std::int64_t sequence, std::int64_t row)
      : key_(args.key),
        sample_(args.probability > 0.0
                    ? static_cast<std::uint64_t>(pointer_to<const std::int64_t>(args.samples)[sequence])
                    : 0),
        head_(static_cast<std::uint32_t>(args.first_head)),
        row_(static_cast<std::uint32_t>(args.first_row + row)),
        first_column_(args.first_column),
        threshold_(dropout_threshold(args.probability)),
        scale_(static_cast<float>(1.0 / (1.0 - args.probability))) {}

  // Draws the words of columns [column, column + count), count <= chunk.
  const std::uint32_t* draw(std::int64_t column, std::int64_t count) {
    const std::int64_t first = first_column_ + column;
    const std::int64_t skipped = first % 4;
    simd::dropout_words(key_, sample_, head_, row_, static_cast<std::uint32_t>(first / 4),
                        static_cast<std::size_t>((skipped + count + 3) / 4), words_);
    return words_ + skipped;
  }

  HWY_INLINE simd::FloatVector apply(simd::FloatVector value, const std::uint32_t* words) const {
    const simd::FloatTag d;
    const hn::RebindToUnsigned<simd::FloatTag> word;
    const auto dropped = hn::Lt(hn::LoadU(word, words), hn::Set(word, threshold_));
    return hn::IfThenZeroElse(hn::RebindMask(d, dropped), hn::Mul(value, hn::Set(d, scale_)));
  }

 private:
  PhiloxKey key_;
  std::uint64_t sample_;
  std::uint32_t head_;
  std::uint32_t row_;
  std::int64_t first_column_;
  std::uint32_t threshold_;
  float scale_;
  HWY_ALIGN std::uint32_t words_[word_room];
};

// y = residual + mask (x + bias) for `count` elements; absent inputs are null, words null means no dropout.
template <bool with_bias, bool with_residual, bool with_dropout, typename T>
void combine(const RowMask& mask, const std::uint32_t* words, const T* x, const T* bias, const T* residual,
             T* y, std::size_t count) {
  const simd::FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto value = simd::load(d, x + i);
    if constexpr (with_bias) value = hn::Add(value, simd::load(d, bias + i));
    if constexpr (with_dropout) value = mask.apply(value, words + i);
    if constexpr (with_residual) value = hn::Add(value, simd::load(d, residual + i));
    simd::store(value, d, y + i);
  }
  if (i < count) {
    const std::size_t rest = count - i;
    auto value = simd::load_n(d, x + i, rest);
    if constexpr (with_bias) value = hn::Add(value, simd::load_n(d, bias + i, rest));
    if constexpr (with_dropout) value = mask.apply(value, words + i);
    if constexpr (with_residual) value = hn::Add(value, simd::load_n(d, residual + i, rest));
    simd::store_n(value, d, y + i, rest);
  }
}

template <bool with_bias, bool with_residual, typename T>
void add_rows(const DropoutAddArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t sequence_length = args.x.shape[1];
  const std::int64_t hidden = args.x.shape[2];
  for (std::int64_t row = begin; row < end; ++row) {
    RowMask mask(args.dropout, row / sequence_length, row % sequence_length);
    for (std::int64_t column = 0; column < hidden; column += chunk) {
      const std::int64_t count = hidden - column < chunk ? hidden - column : chunk;
      const std::int64_t start = row * hidden + column;
      const T* const x = pointer_to<const T>(args.x) + start;
      const T* const bias = with_bias ? pointer_to<const T>(args.bias) + column : nullptr;
      const T* const residual = with_residual ? pointer_to<const T>(args.residual) + start : nullptr;
      T* const y = pointer_to<T>(args.y) + start;
      const auto length = static_cast<std::size_t>(count);
      if (args.dropout.probability > 0.0) {
        combine<with_bias, with_residual, true>(mask, mask.draw(column, count), x, bias, residual, y, length);
      } else {
        combine<with_bias, with_residual, false>(mask, nullptr, x, bias, residual, y, length);
      }
    }
  }
}

void drop_and_add(const DropoutAddArgs& args, std::int64_t begin, std::int64_t end) {
  with_compute_type("dropout_add", args.x.dtype, [&]<typename T>() {
    if (args.bias && args.residual) return add_rows<true, true, T>(args, begin, end);
    if (args.bias) return add_rows<true, false, T>(args, begin, end);
    if (args.residual) return add_rows<false, true, T>(args, begin, end);
    return add_rows<false, false, T>(args, begin, end);
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(drop_and_add);

void CpuDevice::dropout_add_forward(QueueKind, const DropoutAddArgs& args) {
  check_dropout_add_forward(args);
  const Shape& shape = args.x.shape;
  if (shape.count() == 0) return;
  team_.parallel_for(shape[0] * shape[1], 8192 / shape[2] + 1, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(drop_and_add)(args, begin, end);
  });
}

// The gradient is masked as the values were: the forward kernel without bias and residual.
void CpuDevice::dropout_backward(QueueKind queue, const Tensor& x_grad, const Tensor& y_grad,
                                 const DropoutArgs& dropout) {
  check_dropout_backward(x_grad, y_grad, dropout);
  dropout_add_forward(queue, {.x = y_grad, .bias = {}, .residual = {}, .y = x_grad, .dropout = dropout});
}

}  // namespace megalith
#endif
