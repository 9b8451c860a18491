// dropout_add_forward and dropout_backward.
#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

std::vector<double> sample_numbers(std::int64_t batch) {
  std::vector<double> samples(static_cast<std::size_t>(batch));
  // Past 32 bits too: the high part has its own place in the counter.
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = 17.0 + static_cast<double>(i) * 4294967297.0;
  return samples;
}

DropoutArgs dropout_args(const DropoutShape& s, const Tensor& samples) {
  DropoutArgs args;
  args.probability = s.probability;
  args.key = philox_key(9, "dropout:hidden");
  if (s.probability > 0.0) args.samples = samples;
  args.first_row = s.first_row;
  args.first_column = s.first_column;
  return args;
}

std::string describe(const DropoutShape& s, std::string_view what) {
  return format("{} {}x{}x{} p {}{}{} from {},{}{}", what, s.batch, s.rows, s.hidden, s.probability,
                s.bias ? " bias" : "", s.residual ? " residual" : "", s.first_row, s.first_column,
                s.in_place ? " in place" : "");
}

}  // namespace

KernelCase dropout_add_case(const DropoutShape& s, std::uint64_t seed) {
  KernelCase made{describe(s, "dropout_add"), {}, {}};
  const Shape shape{s.batch, s.rows, s.hidden};
  const Bound bound = Bound::sum_of(6.0, 1.0 + 2.0 / (1.0 - s.probability));
  const bool in_residual = s.in_place && s.residual;
  const bool in_x = s.in_place && !s.residual;
  made.arguments = {
      {"x", Element::compute, shape, in_x ? Use::in_out : Use::input, uniform(shape, -1, 1, seed), bound, {}},
      {"bias", Element::compute, {s.hidden}, Use::input, uniform({s.hidden}, -1, 1, seed + 1), {}, {}},
      {"residual",
       Element::compute,
       shape,
       in_residual ? Use::in_out : Use::input,
       uniform(shape, -1, 1, seed + 2),
       bound,
       {}},
      {"samples", Element::int64, {s.batch}, Use::input, sample_numbers(s.batch), {}, {}}};
  if (!s.in_place) made.arguments.push_back({"y", Element::compute, shape, Use::output, {}, bound, {}});
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    DropoutAddArgs args{};
    args.x = t[0];
    if (s.bias) args.bias = t[1];
    if (s.residual) args.residual = t[2];
    args.y = s.in_place ? t[in_x ? 0 : 2] : t[4];
    args.dropout = dropout_args(s, t[3]);
    device.dropout_add_forward(queue, args);
  };
  return made;
}

KernelCase dropout_backward_case(const DropoutShape& s, std::uint64_t seed) {
  KernelCase made{describe(s, "dropout_backward"), {}, {}};
  const Shape shape{s.batch, s.rows, s.hidden};
  const Bound bound = Bound::sum_of(4.0, 1.0 / (1.0 - s.probability));
  made.arguments = {{"y_grad",
                     Element::compute,
                     shape,
                     s.in_place ? Use::in_out : Use::input,
                     uniform(shape, -1, 1, seed),
                     bound,
                     {}},
                    {"samples", Element::int64, {s.batch}, Use::input, sample_numbers(s.batch), {}, {}}};
  if (!s.in_place) made.arguments.push_back({"x_grad", Element::compute, shape, Use::output, {}, bound, {}});
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.dropout_backward(queue, t[s.in_place ? 0 : 2], t[0], dropout_args(s, t[1]));
  };
  return made;
}

namespace {

std::vector<DropoutShape> shapes() {
  return {{.probability = 0.5},
          {.batch = 0, .rows = 3, .hidden = 5},
          {.batch = 2, .rows = 0, .hidden = 5},
          {.batch = 2, .rows = 7, .hidden = 13, .probability = 0.1},
          {.batch = 3, .rows = 11, .hidden = 257, .probability = 0.3, .bias = false},
          {.batch = 2, .rows = 5, .hidden = 64, .probability = 0.0},
          {.batch = 2, .rows = 5, .hidden = 64, .probability = 0.0, .bias = false, .residual = false},
          {.batch = 2, .rows = 5, .hidden = 67, .probability = 0.1, .residual = false, .in_place = true},
          {.batch = 2, .rows = 5, .hidden = 67, .probability = 0.2, .in_place = true},
          {.batch = 2, .rows = 9, .hidden = 31, .probability = 0.9, .first_row = 100, .first_column = 33},
          {.batch = 1, .rows = 3, .hidden = 30, .probability = 0.4, .first_row = 5, .first_column = 4},
          {.batch = 1, .rows = 101, .hidden = 331, .probability = 0.1}};
}

std::vector<KernelCase> forward_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 5000;
  for (const DropoutShape& shape : shapes()) cases.push_back(dropout_add_case(shape, seed += 10));
  return cases;
}

std::vector<KernelCase> backward_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 5500;
  for (const DropoutShape& shape : shapes()) cases.push_back(dropout_backward_case(shape, seed += 10));
  return cases;
}

}  // namespace

std::vector<KernelGroup> dropout_groups() {
  return {{"dropout_add_forward", forward_cases}, {"dropout_backward", backward_cases}};
}

}  // namespace megalith::testing_support
