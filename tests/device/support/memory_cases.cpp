// fill, copy, add and initialize_normal.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

KernelCase fill_case(Element element, const Shape& shape, const Shape& storage, double value) {
  KernelCase made{format("fill {} with {}", shape.to_string(), value), {}, {}};
  made.arguments = {{"to", element, shape, Use::output, {}, {}, storage}};
  made.enqueue = [value](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.fill(queue, t[0], value);
  };
  return made;
}

std::vector<KernelCase> fill_cases() {
  return {fill_case(Element::compute, {1}, {}, 0.1),
          fill_case(Element::compute, {0, 3}, {}, 1.0),
          fill_case(Element::compute, {7, 13}, {7, 20}, -2.5),
          fill_case(Element::sum, {3, 5, 17}, {3, 9, 18}, 1e-3),
          fill_case(Element::compute, {30011}, {}, std::numeric_limits<double>::quiet_NaN()),
          fill_case(Element::int64, {5}, {}, -7.0),
          fill_case(Element::int32, {3, 3}, {3, 4}, 9.0),
          fill_case(Element::uint16, {129}, {}, 65535.0),
          fill_case(Element::uint8, {65}, {}, 3.0)};
}

// Conversions are exact contracts, so both sides have fixed types and must agree to the bit.
KernelCase copy_case(Element to, Element from, const Shape& shape, const Shape& to_storage,
                     const Shape& from_storage) {
  std::vector<double> values = uniform(shape, -3.0, 3.0, 11);
  if (values.size() >= 8) {
    // Ties between neighbours (of bfloat16, of float16), the ends of ranges, what is not a number.
    const std::array<double, 8> special = {1.00390625,
                                           1.01171875,
                                           1.00048828125,
                                           65519.0,
                                           0x1p-25,
                                           -0.0,
                                           std::numeric_limits<double>::infinity(),
                                           std::nan("")};
    std::copy(special.begin(), special.end(), values.begin());
  }
  KernelCase made{
      format("copy {} of element {} to {}", shape.to_string(), static_cast<int>(from), static_cast<int>(to)),
      {},
      {}};
  made.arguments = {{"from", from, shape, Use::input, values, {}, from_storage},
                    {"to", to, shape, Use::output, {}, Bound::exactly(), to_storage}};
  made.enqueue = [](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.copy(queue, t[1], t[0]);
  };
  return made;
}

std::vector<KernelCase> copy_cases() {
  std::vector<KernelCase> cases;
  for (const Element to : {Element::float32, Element::bfloat16, Element::float16}) {
    for (const Element from : {Element::float32, Element::bfloat16, Element::float16}) {
      cases.push_back(copy_case(to, from, {1237}, {}, {}));
      cases.push_back(copy_case(to, from, {3, 7, 19}, {3, 8, 19}, {3, 7, 32}));
    }
    cases.push_back(copy_case(to, Element::float32, {0, 4}, {}, {}));
  }
  cases.push_back(copy_case(Element::compute, Element::compute, {5, 2, 31}, {5, 4, 31}, {5, 3, 31}));
  cases.push_back(copy_case(Element::sum, Element::sum, {1}, {}, {}));
  return cases;
}

KernelCase add_case(Element to, Element a, Element b, std::int64_t count, double alpha, double beta,
                    int in_place) {
  KernelCase made{format("add {} in place {}", count, in_place), {}, {}};
  const Bound bound = Bound::sum_of(4, std::fabs(alpha) + std::fabs(beta));
  made.arguments = {
      {"a", a, {count}, in_place == 1 ? Use::in_out : Use::input, uniform({count}, -1, 1, 21), bound, {}},
      {"b", b, {count}, in_place == 2 ? Use::in_out : Use::input, uniform({count}, -1, 1, 22), bound, {}}};
  if (in_place == 0) made.arguments.push_back({"to", to, {count}, Use::output, {}, bound, {}});
  const std::size_t target = in_place == 0 ? 2 : static_cast<std::size_t>(in_place - 1);
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.add(queue, t[target], t[0], alpha, t[1], beta);
  };
  return made;
}

std::vector<KernelCase> add_cases() {
  using enum Element;
  return {add_case(compute, compute, compute, 1, 1, 1, 0),
          add_case(compute, compute, compute, 0, 1, 1, 0),
          add_case(compute, compute, compute, 20011, 1, -2, 0),
          add_case(sum, compute, sum, 1009, 0.25, 1, 0),
          add_case(sum, sum, compute, 1009, 1, 1, 1),
          add_case(compute, compute, sum, 517, 3, 0.5, 1),
          add_case(sum, compute, sum, 517, 1, 1, 2),
          add_case(compute, sum, sum, 64, 1, 0, 0)};
}

// Every device must start from equal weights, so elements are bound to agree to the bit.
KernelCase initialize_case(Element element, std::int64_t rows, std::int64_t columns, std::int64_t first,
                           std::int64_t row_step) {
  KernelCase made{format("initialize_normal {}x{} from {}", rows, columns, first), {}, {}};
  made.arguments = {{"to", element, {rows, columns}, Use::output, {}, Bound::exactly(), {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.initialize_normal(queue, {t[0], first, row_step, philox_key(5, "init:test"), 0.25, 0.02});
  };
  return made;
}

std::vector<KernelCase> initialize_cases() {
  return {initialize_case(Element::float32, 1, 1, 0, 1),
          initialize_case(Element::float32, 0, 5, 0, 5),
          initialize_case(Element::float32, 7, 13, 5, 29),
          initialize_case(Element::float32, 33, 129, 3, 1000003),
          initialize_case(Element::float32, 3, 21, (std::int64_t{1} << 34) - 9, 21),
          initialize_case(Element::bfloat16, 11, 101, 2, 101)};
}

}  // namespace

std::vector<KernelGroup> memory_groups() {
  return {{"fill", fill_cases},
          {"copy", copy_cases},
          {"add", add_cases},
          {"initialize_normal", initialize_cases}};
}

std::vector<KernelGroup> all_groups() {
  std::vector<KernelGroup> all;
  for (const auto& groups :
       {memory_groups(), matmul_groups(), activation_groups(), attention_groups(), layer_norm_groups(),
        dropout_groups(), embedding_groups(), cross_entropy_groups(), sum_groups(), optimizer_groups()}) {
    all.insert(all.end(), groups.begin(), groups.end());
  }
  return all;
}

}  // namespace megalith::testing_support
