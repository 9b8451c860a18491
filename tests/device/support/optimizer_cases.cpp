// adamw and sgd.
#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

constexpr double learning_rate = 0.01;

}  // namespace

KernelCase adamw_case(std::int64_t count, std::int64_t step, double gradient_scale, bool compute_copy,
                      std::uint64_t seed) {
  KernelCase made{
      format("adamw {} step {} scale {}{}", count, step, gradient_scale, compute_copy ? " copy" : ""),
      {},
      {}};
  // m-hat is at most 1/(1 - beta1^t) <= 10, sqrt(v-hat) at least 0.1: steps of up to 100 learning rates.
  const Bound weight_bound{.relative = 2.0, .terms = 32.0, .magnitude = learning_rate * 100.0};
  Bound copy_bound = weight_bound;
  copy_bound.roundings = 0.0;
  const bool skipped = gradient_scale < 0.0;
  const auto bounded = [&](const Bound& bound) { return skipped ? Bound::exactly() : bound; };
  made.arguments = {
      {"weights",
       Element::sum,
       {count},
       Use::in_out,
       uniform({count}, -1, 1, seed),
       bounded(weight_bound),
       {}},
      {"gradient", Element::sum, {count}, Use::input, uniform({count}, -1, 1, seed + 1), {}, {}},
      {"exp_avg",
       Element::sum,
       {count},
       Use::in_out,
       uniform({count}, -1, 1, seed + 2),
       bounded(Bound::sum_of(6, 1)),
       {}},
      {"exp_avg_sq",
       Element::sum,
       {count},
       Use::in_out,
       uniform({count}, 0.01, 1, seed + 3),
       bounded(Bound::sum_of(6, 1)),
       {}},
      {"learning_rate", Element::float64, {1}, Use::input, {learning_rate}, {}, {}},
      {"step", Element::int64, {1}, Use::input, {static_cast<double>(step)}, {}, {}},
      {"gradient_scale", Element::float64, {1}, Use::input, {gradient_scale}, {}, {}},
      {"compute_copy",
       Element::compute,
       {count},
       compute_copy ? Use::in_out : Use::input,
       uniform({count}, -1, 1, seed + 4),
       bounded(copy_bound),
       {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    AdamWArgs args{};
    args.weights = t[0];
    args.gradient = t[1];
    args.exp_avg = t[2];
    args.exp_avg_sq = t[3];
    args.learning_rate = t[4];
    args.step = t[5];
    args.gradient_scale = t[6];
    if (compute_copy) args.compute_copy = t[7];
    args.lr_mult = 0.75;
    args.beta2 = 0.98;
    args.weight_decay = 0.1;
    device.adamw(queue, args);
  };
  return made;
}

KernelCase sgd_case(std::int64_t count, double momentum, double gradient_scale, bool compute_copy,
                    std::uint64_t seed) {
  KernelCase made{
      format("sgd {} momentum {} scale {}{}", count, momentum, gradient_scale, compute_copy ? " copy" : ""),
      {},
      {}};
  const Bound weight_bound{.relative = 2.0, .terms = 8.0, .magnitude = learning_rate * 4.0};
  const bool skipped = gradient_scale < 0.0;
  const auto bounded = [&](const Bound& bound) { return skipped ? Bound::exactly() : bound; };
  made.arguments = {
      {"weights",
       Element::sum,
       {count},
       Use::in_out,
       uniform({count}, -1, 1, seed),
       bounded(weight_bound),
       {}},
      {"gradient", Element::sum, {count}, Use::input, uniform({count}, -1, 1, seed + 1), {}, {}},
      {"momentum_buffer",
       Element::sum,
       {count},
       momentum != 0.0 ? Use::in_out : Use::input,
       uniform({count}, -1, 1, seed + 2),
       bounded(Bound::sum_of(8, 2)),
       {}},
      {"learning_rate", Element::float64, {1}, Use::input, {learning_rate}, {}, {}},
      {"gradient_scale", Element::float64, {1}, Use::input, {gradient_scale}, {}, {}},
      {"compute_copy",
       Element::compute,
       {count},
       compute_copy ? Use::in_out : Use::input,
       uniform({count}, -1, 1, seed + 4),
       bounded(weight_bound),
       {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    SgdArgs args{};
    args.weights = t[0];
    args.gradient = t[1];
    if (momentum != 0.0) args.momentum_buffer = t[2];
    args.learning_rate = t[3];
    args.gradient_scale = t[4];
    if (compute_copy) args.compute_copy = t[5];
    args.lr_mult = 1.5;
    args.momentum = momentum;
    args.weight_decay = 0.01;
    device.sgd(queue, args);
  };
  return made;
}

namespace {

std::vector<KernelCase> adamw_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t count : {0, 1, 17, 20011}) {
    cases.push_back(adamw_case(count, 1, 1.0, true, 9000));
    cases.push_back(adamw_case(count, 1000, 0.25, false, 9010));
  }
  cases.push_back(adamw_case(1009, 100000, 0.0, true, 9020));
  cases.push_back(adamw_case(1009, 3, -1.0, true, 9030));
  return cases;
}

std::vector<KernelCase> sgd_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t count : {0, 1, 17, 20011}) {
    cases.push_back(sgd_case(count, 0.0, 0.5, true, 9100));
    cases.push_back(sgd_case(count, 0.9, 1.0, false, 9110));
  }
  cases.push_back(sgd_case(1009, 0.9, -1.0, true, 9120));
  return cases;
}

}  // namespace

std::vector<KernelGroup> optimizer_groups() {
  return {{"adamw", adamw_cases}, {"sgd", sgd_cases}};
}

}  // namespace megalith::testing_support
