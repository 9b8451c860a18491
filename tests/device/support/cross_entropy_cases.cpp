// cross_entropy_forward, cross_entropy_loss and cross_entropy_backward.
#include <algorithm>
#include <cmath>

#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

std::string describe(const CrossEntropyShape& s, std::string_view what) {
  return format("cross entropy {} {}x{}+{} from {}{}", what, s.rows, s.columns, s.padding, s.first_column,
                s.strided ? " strided" : "");
}

Shape logits_shape(const CrossEntropyShape& s) {
  return {s.rows, s.columns + s.padding};
}
Shape logits_storage(const CrossEntropyShape& s) {
  return s.strided ? Shape{s.rows, s.columns + s.padding + 5} : Shape{};
}

/// Large values in the padding: whoever reads it gets a wrong maximum.
std::vector<double> logits_of(const CrossEntropyShape& s, std::uint64_t seed) {
  std::vector<double> logits = uniform(logits_shape(s), -8, 8, seed);
  const std::int64_t width = s.columns + s.padding;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    for (std::int64_t column = s.columns; column < width; ++column) {
      logits[static_cast<std::size_t>(row * width + column)] = 1000.0;
    }
  }
  return logits;
}

std::vector<double> targets_of(const CrossEntropyShape& s, std::uint64_t seed) {
  return integers({s.rows}, 0, 2 * s.first_column + s.columns, seed + 1);
}

}  // namespace

KernelCase cross_entropy_forward_case(const CrossEntropyShape& s, std::uint64_t seed) {
  KernelCase made{describe(s, "forward"), {}, {}};
  const double length = static_cast<double>(s.columns);
  made.arguments = {
      {"logits", Element::compute, logits_shape(s), Use::input, logits_of(s, seed), {}, logits_storage(s)},
      {"targets", Element::int32, {s.rows}, Use::input, targets_of(s, seed), {}, {}},
      {"row_max", Element::sum, {s.rows}, Use::output, {}, Bound::exactly(), {}},
      // Each term's exponent is off by up to a rounding of 16.
      {"row_sum", Element::sum, {s.rows}, Use::output, {}, {.relative = length + 48.0}, {}},
      {"target_logit", Element::sum, {s.rows}, Use::output, {}, Bound::exactly(), {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.cross_entropy_forward(queue, {t[0], t[1], s.first_column, s.columns, t[2], t[3], t[4]});
  };
  return made;
}

KernelCase cross_entropy_backward_case(const CrossEntropyShape& s, std::uint64_t seed) {
  KernelCase made{describe(s, "backward"), {}, {}};
  const std::vector<double> logits = logits_of(s, seed);
  const std::int64_t width = s.columns + s.padding;
  std::vector<double> row_max;
  std::vector<double> row_sum;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const auto begin = logits.begin() + row * width;
    const double largest = s.columns == 0 ? 0.0 : *std::max_element(begin, begin + s.columns);
    // bfloat16 logits round up past their float64 maximum; statistics of a float8 of slack keep exponents
    // small.
    row_max.push_back(largest);
    double sum = 0.0;
    for (auto at = begin; at != begin + s.columns; ++at) sum += std::exp(*at - largest);
    row_sum.push_back(std::max(sum, 1.0) * 1.5);  // other ranks hold columns too
  }
  std::vector<double> weights = uniform({s.rows}, 0.5, 1.5, seed + 2);
  for (std::size_t i = 0; i < weights.size(); i += 3) weights[i] = 0.0;  // masked
  const double scale = 0.125;
  made.arguments = {{"logits",
                     Element::compute,
                     logits_shape(s),
                     Use::in_out,
                     logits,
                     {.relative = 64.0, .terms = 8.0, .magnitude = scale * 2.0},
                     logits_storage(s)},
                    {"targets", Element::int32, {s.rows}, Use::input, targets_of(s, seed), {}, {}},
                    {"row_max", Element::sum, {s.rows}, Use::input, row_max, {}, {}},
                    {"row_sum", Element::sum, {s.rows}, Use::input, row_sum, {}, {}},
                    {"weights", Element::sum, {s.rows}, Use::input, weights, {}, {}},
                    {"scale", Element::float64, {1}, Use::input, {scale}, {}, {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.cross_entropy_backward(queue, {t[0], t[1], s.first_column, s.columns, t[2], t[3], t[4], t[5]});
  };
  return made;
}

namespace {

std::vector<CrossEntropyShape> shapes() {
  return {{.rows = 1, .columns = 1},
          {.rows = 0, .columns = 9},
          {.rows = 7, .columns = 13},
          {.rows = 5, .columns = 67, .padding = 61},
          {.rows = 23, .columns = 129, .padding = 3, .first_column = 64, .strided = true},
          {.rows = 3, .columns = 5003, .padding = 117, .strided = true},
          {.rows = 301, .columns = 17}};
}

std::vector<KernelCase> forward_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 7000;
  for (const CrossEntropyShape& shape : shapes())
    cases.push_back(cross_entropy_forward_case(shape, seed += 10));
  // A rank that holds nothing but padding.
  cases.push_back(
      cross_entropy_forward_case({.rows = 4, .columns = 0, .padding = 8, .first_column = 40}, seed));
  return cases;
}

std::vector<KernelCase> backward_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 7000;
  for (const CrossEntropyShape& shape : shapes())
    cases.push_back(cross_entropy_backward_case(shape, seed += 10));
  cases.push_back(
      cross_entropy_backward_case({.rows = 4, .columns = 0, .padding = 8, .first_column = 40}, seed));
  return cases;
}

std::vector<KernelCase> loss_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t rows : {0, 1, 17, 10007}) {
    KernelCase made{format("cross entropy loss {}", rows), {}, {}};
    made.arguments = {
        {"row_max", Element::sum, {rows}, Use::input, uniform({rows}, -20, 20, 71), {}, {}},
        {"row_sum", Element::sum, {rows}, Use::input, uniform({rows}, 1, 50000, 72), {}, {}},
        {"target_logit", Element::sum, {rows}, Use::input, uniform({rows}, -20, 20, 73), {}, {}},
        {"losses", Element::sum, {rows}, Use::output, {}, Bound::sum_of(6, 32), {}}};
    made.enqueue = [](Device& device, QueueKind queue, std::span<const Tensor> t) {
      device.cross_entropy_loss(queue, {t[0], t[1], t[2], t[3]});
    };
    cases.push_back(std::move(made));
  }
  return cases;
}

}  // namespace

std::vector<KernelGroup> cross_entropy_groups() {
  return {{"cross_entropy_forward", forward_cases},
          {"cross_entropy_loss", loss_cases},
          {"cross_entropy_backward", backward_cases}};
}

}  // namespace megalith::testing_support
