// layer_norm_forward and layer_norm_backward.
#include <algorithm>
#include <cmath>

#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

constexpr double epsilon = 1e-5;

struct Statistics {
  std::vector<double> mean;
  std::vector<double> rstd;
  double largest_rstd = 0.0;
};

Statistics statistics_of(const std::vector<double>& x, std::int64_t rows, std::int64_t hidden) {
  Statistics result;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = x.begin() + row * hidden;
    double mean = 0.0;
    for (auto at = begin; at != begin + hidden; ++at) mean += *at / static_cast<double>(hidden);
    double variance = 0.0;
    for (auto at = begin; at != begin + hidden; ++at)
      variance += (*at - mean) * (*at - mean) / static_cast<double>(hidden);
    result.mean.push_back(mean);
    result.rstd.push_back(1.0 / std::sqrt(variance + epsilon));
    result.largest_rstd = std::max(result.largest_rstd, result.rstd.back());
  }
  return result;
}

}  // namespace

KernelCase layer_norm_forward_case(std::int64_t rows, std::int64_t hidden, std::uint64_t seed) {
  KernelCase made{format("layer_norm forward {}x{}", rows, hidden), {}, {}};
  const std::vector<double> x = uniform({rows, hidden}, -1.0, 2.0, seed);
  const double rstd = statistics_of(x, rows, hidden).largest_rstd;
  const double length = static_cast<double>(hidden) + 32.0;
  made.arguments = {
      {"x", Element::compute, {rows, hidden}, Use::input, x, {}, {}},
      {"weight", Element::compute, {hidden}, Use::input, uniform({hidden}, -1, 1, seed + 1), {}, {}},
      {"bias", Element::compute, {hidden}, Use::input, uniform({hidden}, -1, 1, seed + 2), {}, {}},
      {"y", Element::compute, {rows, hidden}, Use::output, {}, Bound::sum_of(length, 2.0 * rstd), {}},
      {"mean", Element::sum, {rows}, Use::output, {}, Bound::sum_of(length, 2.0), {}},
      // The variance's error passes into rstd as rstd^3 / 2 of it.
      {"rstd",
       Element::sum,
       {rows},
       Use::output,
       {},
       {.relative = 16.0, .terms = length, .magnitude = 2.0 * rstd},
       {}}};
  made.enqueue = [](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.layer_norm_forward(queue, {t[0], t[1], t[2], t[3], t[4], t[5], epsilon});
  };
  return made;
}

KernelCase layer_norm_backward_case(std::int64_t rows, std::int64_t hidden, bool residual, bool x_grad,
                                    bool parameter_grads, Inplace inplace, std::uint64_t seed) {
  KernelCase made{
      format("layer_norm backward {}x{}{}{}{} in place {}", rows, hidden, residual ? " residual" : "",
             x_grad ? " x_grad" : "", parameter_grads ? " parameters" : "", static_cast<int>(inplace)),
      {},
      {}};
  const std::vector<double> x = uniform({rows, hidden}, -1.0, 2.0, seed);
  const Statistics statistics = statistics_of(x, rows, hidden);
  const double length = static_cast<double>(hidden) + 32.0;
  const Bound x_bound = Bound::sum_of(length, 1.0 + 2.0 * statistics.largest_rstd);
  const Bound parameter_bound =
      Bound::sum_of(static_cast<double>(rows) + 16.0, 1.0 + 2.0 * statistics.largest_rstd);
  const auto written = [&](Inplace here) { return inplace == here ? Use::in_out : Use::input; };
  made.arguments = {
      {"y_grad",
       Element::compute,
       {rows, hidden},
       written(Inplace::y_grad),
       uniform({rows, hidden}, -1, 1, seed + 1),
       x_bound,
       {}},
      {"x", Element::compute, {rows, hidden}, Use::input, x, {}, {}},
      {"weight", Element::compute, {hidden}, Use::input, uniform({hidden}, -1, 1, seed + 2), {}, {}},
      {"mean", Element::sum, {rows}, Use::input, statistics.mean, {}, {}},
      {"rstd", Element::sum, {rows}, Use::input, statistics.rstd, {}, {}},
      {"residual",
       Element::compute,
       {rows, hidden},
       written(Inplace::residual),
       uniform({rows, hidden}, -1, 1, seed + 3),
       x_bound,
       {}},
      {"weight_grad",
       Element::sum,
       {hidden},
       parameter_grads ? Use::in_out : Use::input,
       uniform({hidden}, -1, 1, seed + 4),
       parameter_bound,
       {}},
      {"bias_grad",
       Element::sum,
       {hidden},
       parameter_grads ? Use::in_out : Use::input,
       uniform({hidden}, -1, 1, seed + 5),
       parameter_bound,
       {}}};
  if (x_grad && inplace == Inplace::none) {
    made.arguments.push_back({"x_grad", Element::compute, {rows, hidden}, Use::output, {}, x_bound, {}});
  }
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    LayerNormBackwardArgs args{};
    args.y_grad = t[0];
    args.x = t[1];
    args.weight = t[2];
    args.mean = t[3];
    args.rstd = t[4];
    if (residual) args.residual = t[5];
    if (parameter_grads) {
      args.weight_grad = t[6];
      args.bias_grad = t[7];
    }
    if (x_grad) args.x_grad = inplace == Inplace::none ? t[8] : t[inplace == Inplace::y_grad ? 0 : 5];
    device.layer_norm_backward(queue, args);
  };
  return made;
}

namespace {

std::vector<KernelCase> forward_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 3000;
  for (const auto& [rows, hidden] :
       {std::pair{1, 1}, {0, 7}, {5, 1}, {1, 17}, {13, 64}, {37, 257}, {3, 3001}, {201, 8}}) {
    cases.push_back(layer_norm_forward_case(rows, hidden, seed += 10));
  }
  return cases;
}

std::vector<KernelCase> backward_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 4000;
  for (const auto& [rows, hidden] :
       {std::pair{1, 1}, {0, 7}, {5, 1}, {1, 17}, {13, 64}, {37, 257}, {3, 3001}, {201, 8}}) {
    cases.push_back(layer_norm_backward_case(rows, hidden, true, true, true, Inplace::none, seed += 10));
    cases.push_back(layer_norm_backward_case(rows, hidden, false, true, true, Inplace::none, seed += 10));
  }
  cases.push_back(layer_norm_backward_case(19, 129, true, true, true, Inplace::residual, seed += 10));
  cases.push_back(layer_norm_backward_case(19, 129, true, true, true, Inplace::y_grad, seed += 10));
  cases.push_back(layer_norm_backward_case(19, 129, false, true, true, Inplace::y_grad, seed += 10));
  cases.push_back(layer_norm_backward_case(19, 129, true, true, false, Inplace::none, seed += 10));
  cases.push_back(layer_norm_backward_case(19, 129, false, false, true, Inplace::none, seed += 10));
  return cases;
}

}  // namespace

std::vector<KernelGroup> layer_norm_groups() {
  return {{"layer_norm_forward", forward_cases}, {"layer_norm_backward", backward_cases}};
}

}  // namespace megalith::testing_support
