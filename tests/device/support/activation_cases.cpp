// activation_forward and activation_backward.
#include <array>

#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

constexpr std::array kinds = {Activation::none, Activation::gelu_tanh, Activation::gelu_erf};

std::vector<double> inputs(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values = uniform({count}, -6.0, 6.0, seed);
  const std::array<double, 8> special = {0.0, -0.0, 30.0, -30.0, 1e4, -1e4, 1e-20, -1e-20};
  for (std::size_t i = 0; i < special.size() && i + 9 < values.size(); ++i) values[i] = special[i];
  return values;
}

KernelCase forward_case(Activation kind, std::int64_t count, bool in_place) {
  KernelCase made{
      format("activation {} of {}{}", static_cast<int>(kind), count, in_place ? " in place" : ""), {}, {}};
  const Bound bound = Bound::sum_of(16, 4.0);
  made.arguments = {
      {"x", Element::compute, {count}, in_place ? Use::in_out : Use::input, inputs(count, 31), bound, {}}};
  if (!in_place) made.arguments.push_back({"y", Element::compute, {count}, Use::output, {}, bound, {}});
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.activation_forward(queue, kind, t[in_place ? 0 : 1], t[0]);
  };
  return made;
}

/// target: 0 memory of its own, 1 y_grad's, 2 x's.
KernelCase backward_case(Activation kind, std::int64_t count, int target) {
  KernelCase made{
      format("activation {} backward of {} target {}", static_cast<int>(kind), count, target), {}, {}};
  const Bound bound = Bound::sum_of(32, 4.0);
  made.arguments = {
      {"x", Element::compute, {count}, target == 2 ? Use::in_out : Use::input, inputs(count, 33), bound, {}},
      {"y_grad",
       Element::compute,
       {count},
       target == 1 ? Use::in_out : Use::input,
       uniform({count}, -1, 1, 34),
       bound,
       {}}};
  if (target == 0)
    made.arguments.push_back({"x_grad", Element::compute, {count}, Use::output, {}, bound, {}});
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    const std::array<std::size_t, 3> place = {2, 1, 0};
    device.activation_backward(queue, kind, t[place[static_cast<std::size_t>(target)]], t[1], t[0]);
  };
  return made;
}

std::vector<KernelCase> forward_cases() {
  std::vector<KernelCase> cases;
  for (const Activation kind : kinds) {
    for (const std::int64_t count : {0, 1, 17, 20011}) cases.push_back(forward_case(kind, count, false));
    cases.push_back(forward_case(kind, 1009, true));
  }
  return cases;
}

std::vector<KernelCase> backward_cases() {
  std::vector<KernelCase> cases;
  for (const Activation kind : kinds) {
    for (const std::int64_t count : {0, 1, 17, 20011}) cases.push_back(backward_case(kind, count, 0));
    cases.push_back(backward_case(kind, 1009, 1));
    cases.push_back(backward_case(kind, 1009, 2));
  }
  return cases;
}

}  // namespace

std::vector<KernelGroup> activation_groups() {
  return {{"activation_forward", forward_cases}, {"activation_backward", backward_cases}};
}

}  // namespace megalith::testing_support
