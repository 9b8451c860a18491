#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/layer_norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Row statistics in two passes over a row that is in the cache by then: the mean, then the variance around
// it.
template <typename T>
void normalise_row(const LayerNormArgs& args, std::int64_t row) {
  const simd::FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto hidden = static_cast<std::size_t>(args.x.shape[1]);
  const T* const x = pointer_to<const T>(args.x) + row * args.x.shape[1];
  const float inverse = 1.0F / static_cast<float>(hidden);

  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= hidden; i += 2 * lanes) {
    sum0 = hn::Add(sum0, simd::load(d, x + i));
    sum1 = hn::Add(sum1, simd::load(d, x + i + lanes));
  }
  for (; i + lanes <= hidden; i += lanes) sum0 = hn::Add(sum0, simd::load(d, x + i));
  if (i < hidden) sum1 = hn::Add(sum1, simd::load_n(d, x + i, hidden - i));
  const float mean = simd::sum_of_lanes(hn::Add(sum0, sum1)) * inverse;

  const auto means = hn::Set(d, mean);
  sum0 = hn::Zero(d);
  sum1 = hn::Zero(d);
  i = 0;
  for (; i + 2 * lanes <= hidden; i += 2 * lanes) {
    const auto a = hn::Sub(simd::load(d, x + i), means);
    const auto b = hn::Sub(simd::load(d, x + i + lanes), means);
    sum0 = hn::MulAdd(a, a, sum0);
    sum1 = hn::MulAdd(b, b, sum1);
  }
  for (; i + lanes <= hidden; i += lanes) {
    const auto a = hn::Sub(simd::load(d, x + i), means);
    sum0 = hn::MulAdd(a, a, sum0);
  }
  if (i < hidden) {
    const auto present = hn::FirstN(d, hidden - i);
    const auto a = hn::IfThenElseZero(present, hn::Sub(simd::load_n(d, x + i, hidden - i), means));
    sum1 = hn::MulAdd(a, a, sum1);
  }
  const float variance = simd::sum_of_lanes(hn::Add(sum0, sum1)) * inverse;
  const float rstd = 1.0F / std::sqrt(variance + static_cast<float>(args.epsilon));

  const auto rstds = hn::Set(d, rstd);
  simd::map_elements(
      hidden,
      [=](auto value, auto weight, auto bias)
          HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(value, means), rstds), weight, bias); },
      pointer_to<T>(args.y) + row * args.x.shape[1], x, pointer_to<const T>(args.weight),
      pointer_to<const T>(args.bias));
  pointer_to<float>(args.mean)[row] = mean;
  pointer_to<float>(args.rstd)[row] = rstd;
}

void normalise(const LayerNormArgs& args, std::int64_t begin, std::int64_t end) {
  with_compute_type("layer_norm_forward", args.x.dtype, [&]<typename T>() {
    for (std::int64_t row = begin; row < end; ++row) normalise_row<T>(args, row);
  });
}

// With n = (x - mean) rstd and g = y_grad weight: x_grad = rstd (g - avg(g) - n avg(g n)) [+ residual].
// weight_sums and bias_sums receive y_grad n and y_grad of these rows.
template <typename T>
void differentiate_row(const LayerNormBackwardArgs& args, std::int64_t row, float* weight_sums,
                       float* bias_sums) {
  const simd::FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto hidden = static_cast<std::size_t>(args.x.shape[1]);
  const std::int64_t start = row * args.x.shape[1];
  const T* const x = pointer_to<const T>(args.x) + start;
  const T* const y_grad = pointer_to<const T>(args.y_grad) + start;
  const T* const weight = pointer_to<const T>(args.weight);
  const auto means = hn::Set(d, pointer_to<const float>(args.mean)[row]);
  const auto rstds = hn::Set(d, pointer_to<const float>(args.rstd)[row]);

  auto gradients = hn::Zero(d);
  auto products = hn::Zero(d);
  const auto take = [&](auto dy, auto value, auto w) HWY_ATTR {
    const auto normal = hn::Mul(hn::Sub(value, means), rstds);
    const auto g = hn::Mul(dy, w);
    gradients = hn::Add(gradients, g);
    products = hn::MulAdd(g, normal, products);
    return hn::Mul(dy, normal);
  };
  std::size_t i = 0;
  for (; i + lanes <= hidden; i += lanes) {
    const auto dy = simd::load(d, y_grad + i);
    const auto weight_term = take(dy, simd::load(d, x + i), simd::load(d, weight + i));
    hn::StoreU(hn::Add(hn::LoadU(d, weight_sums + i), weight_term), d, weight_sums + i);
    hn::StoreU(hn::Add(hn::LoadU(d, bias_sums + i), dy), d, bias_sums + i);
  }
  if (i < hidden) {
    const std::size_t rest = hidden - i;
    const auto dy = simd::load_n(d, y_grad + i, rest);
    const auto weight_term = take(dy, simd::load_n(d, x + i, rest), simd::load_n(d, weight + i, rest));
    simd::store_n(hn::Add(simd::load_n(d, weight_sums + i, rest), weight_term), d, weight_sums + i, rest);
    simd::store_n(hn::Add(simd::load_n(d, bias_sums + i, rest), dy), d, bias_sums + i, rest);
  }
  if (!args.x_grad) return;

  const float inverse = 1.0F / static_cast<float>(hidden);
  const auto gradient_mean = hn::Set(d, simd::sum_of_lanes(gradients) * inverse);
  const auto product_mean = hn::Set(d, simd::sum_of_lanes(products) * inverse);
  const auto input_gradient = [=](auto dy, auto value, auto w) HWY_ATTR {
    const auto normal = hn::Mul(hn::Sub(value, means), rstds);
    const auto centred = hn::Sub(hn::Mul(dy, w), gradient_mean);
    return hn::Mul(rstds, hn::NegMulAdd(normal, product_mean, centred));
  };
  T* const x_grad = pointer_to<T>(args.x_grad) + start;
  if (args.residual) {
    simd::map_elements(
        hidden,
        [=](auto dy, auto value, auto w, auto skipped)
            HWY_ATTR { return hn::Add(input_gradient(dy, value, w), skipped); },
        x_grad, y_grad, x, weight, pointer_to<const T>(args.residual) + start);
  } else {
    simd::map_elements(hidden, input_gradient, x_grad, y_grad, x, weight);
  }
}

void differentiate_norm(const LayerNormBackwardArgs& args, std::int64_t begin, std::int64_t end,
                        float* weight_sums, float* bias_sums) {
  with_compute_type("layer_norm_backward", args.x.dtype, [&]<typename T>() {
    for (std::int64_t row = begin; row < end; ++row) differentiate_row<T>(args, row, weight_sums, bias_sums);
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
namespace {

constexpr std::int64_t grain_elements = 8192;

std::int64_t rows_per_grain(std::int64_t hidden) {
  return hidden >= grain_elements ? 1 : grain_elements / (hidden + 1) + 1;
}

// total[c] += the sum of the parts' partial sums (from `offset` on), in the order of the parts.
void combine(const Tensor& total, const std::vector<const float*>& partials, std::int64_t offset,
             std::int64_t hidden) {
  if (!total) return;
  float* const to = pointer_to<float>(total);
  for (std::int64_t c = 0; c < hidden; ++c) {
    float sum = 0.0F;
    for (const float* partial : partials) {
      if (partial != nullptr) sum += partial[offset + c];
    }
    to[c] += sum;
  }
}

}  // namespace

HWY_EXPORT(normalise);
HWY_EXPORT(differentiate_norm);

void CpuDevice::layer_norm_forward(QueueKind, const LayerNormArgs& args) {
  check_layer_norm_forward(args);
  team_.parallel_for(
      args.x.shape[0], rows_per_grain(args.x.shape[1]),
      [&](std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(normalise)(args, begin, end); });
}

void CpuDevice::layer_norm_backward(QueueKind, const LayerNormBackwardArgs& args) {
  check_layer_norm_backward(args);
  const std::int64_t rows = args.x.shape[0];
  const std::int64_t hidden = args.x.shape[1];
  if (rows == 0) return;
  const std::lock_guard lock(kernel_mutex_);
  const auto threads = static_cast<std::size_t>(team_.threads());
  std::vector<float*> memory(threads);
  for (std::size_t part = 0; part < threads; ++part) {
    const std::size_t bytes = 2 * static_cast<std::size_t>(hidden) * sizeof(float);
    memory[part] = reinterpret_cast<float*>(scratch_.get(static_cast<int>(part), bytes));
  }
  std::vector<const float*> partials(threads);  // of the parts that ran: weight's sums, then bias's
  team_.parallel_for_indexed(
      rows, rows_per_grain(hidden), [&](int part, std::int64_t begin, std::int64_t end) {
        float* const sums = memory[static_cast<std::size_t>(part)];
        std::fill_n(sums, 2 * hidden, 0.0F);
        HWY_DYNAMIC_DISPATCH(differentiate_norm)(args, begin, end, sums, sums + hidden);
        partials[static_cast<std::size_t>(part)] = sums;
      });
  combine(args.weight_grad, partials, 0, hidden);
  combine(args.bias_grad, partials, hidden, hidden);
}

}  // namespace megalith
#endif
