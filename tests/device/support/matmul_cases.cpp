#include <cmath>

#include "tests/device/support/cases.h"

namespace megalith::testing_support {

KernelCase matmul_case(const MatmulShape& s, std::uint64_t seed) {
  KernelCase made;
  made.name =
      format("matmul m{} n{} k{}{}{}{}{} activation{}{}{}{} alpha {}", s.m, s.n, s.k,
             s.a_transposed ? " a^T" : "", s.b_transposed ? " b^T" : "", s.accumulate ? " accumulate" : "",
             s.bias ? " bias" : "", static_cast<int>(s.activation), s.pre_activation ? " pre" : "",
             s.c_in_sum_type ? " sum type" : "", s.strided ? " strided" : "", s.alpha);
  const Shape a = s.a_transposed ? Shape{s.k, s.m} : Shape{s.m, s.k};
  const Shape b = s.b_transposed ? Shape{s.n, s.k} : Shape{s.k, s.n};
  const auto wider = [&](const Shape& shape, std::int64_t by) {
    return s.strided ? Shape{shape[0], shape[1] + by} : Shape{};
  };
  const Element out = s.c_in_sum_type ? Element::sum : Element::compute;
  const double length = static_cast<double>(s.k) + 8.0;
  Bound bound = Bound::sum_of(length, std::fabs(s.alpha) + 1.0);
  // The activation may be taken of the sum before or after it is rounded to pre_activation's type.
  if (s.pre_activation) bound.roundings = 2.0 + 2.0 * std::sqrt(static_cast<double>(s.k));
  made.arguments = {{"a", Element::compute, a, Use::input, uniform(a, -1, 1, seed), {}, wider(a, 3)},
                    {"b", Element::compute, b, Use::input, uniform(b, -1, 1, seed + 1), {}, wider(b, 5)},
                    {"c",
                     out,
                     {s.m, s.n},
                     s.accumulate ? Use::in_out : Use::output,
                     s.accumulate ? uniform({s.m, s.n}, -1, 1, seed + 2) : std::vector<double>{},
                     bound,
                     wider({s.m, s.n}, 7)}};
  if (s.bias)
    made.arguments.push_back(
        {"bias", Element::compute, {s.n}, Use::input, uniform({s.n}, -1, 1, seed + 3), {}, {}});
  if (s.pre_activation) {
    made.arguments.push_back(
        {"pre_activation", out, {s.m, s.n}, Use::output, {}, bound, wider({s.m, s.n}, 2)});
  }
  made.enqueue = [s](Device& device, QueueKind queue, std::span<const Tensor> t) {
    MatmulArgs args;
    args.a = {.data = t[0], .transposed = s.a_transposed};
    args.b = {.data = t[1], .transposed = s.b_transposed};
    args.c = t[2];
    args.alpha = s.alpha;
    args.accumulate = s.accumulate;
    args.activation = s.activation;
    std::size_t next = 3;
    if (s.bias) args.bias = t[next++];
    if (s.pre_activation) args.pre_activation = t[next++];
    device.matmul(queue, args);
  };
  return made;
}

namespace {

std::vector<KernelCase> matmul_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 100;
  const auto add = [&](const MatmulShape& shape) { cases.push_back(matmul_case(shape, seed += 10)); };
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const bool strided : {false, true}) {
        MatmulShape base{.a_transposed = a_transposed, .b_transposed = b_transposed, .strided = strided};
        const auto sized = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
          base.m = m;
          base.n = n;
          base.k = k;
          return base;
        };
        add(sized(1, 1, 1));
        add(sized(1, 31, 17));
        add(sized(29, 1, 13));
        add(sized(7, 11, 1));
        add(sized(0, 5, 3));
        add(sized(37, 53, 61));
        MatmulShape full = sized(33, 47, 65);
        full.accumulate = true;
        full.c_in_sum_type = true;
        add(full);
        full.c_in_sum_type = false;
        full.alpha = 0.125;
        add(full);
        full.accumulate = false;
        full.bias = true;
        full.activation = Activation::gelu_tanh;
        full.pre_activation = true;
        add(full);
        full.pre_activation = false;
        full.activation = Activation::gelu_erf;
        add(full);
        full.activation = Activation::none;
        full.c_in_sum_type = true;
        add(full);
      }
    }
  }
  // Few rows, as generation has, past every edge of tiles and buffers.
  for (const std::int64_t rows : {1, 2, 3, 5, 7, 8, 9, 16, 17}) {
    for (const bool strided : {false, true}) {
      MatmulShape thin{.m = rows, .n = 275, .k = 83, .b_transposed = true, .strided = strided};
      add(thin);
      thin.alpha = -0.5;
      thin.accumulate = true;
      add(thin);
      thin.accumulate = false;
      thin.bias = true;
      thin.activation = Activation::gelu_tanh;
      add(thin);
    }
  }
  // Several blocks of rows, columns and depth, with edges.
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const MatmulShape base{.a_transposed = a_transposed, .b_transposed = b_transposed};
      MatmulShape deep = base;
      deep.m = 11;
      deep.n = 59;
      deep.k = 1703;
      deep.accumulate = true;
      deep.c_in_sum_type = true;
      add(deep);
      MatmulShape wide = base;
      wide.m = 9;
      wide.n = 450;
      wide.k = 760;
      wide.bias = true;
      wide.activation = Activation::gelu_tanh;
      wide.pre_activation = true;
      add(wide);
      MatmulShape tall = base;
      tall.m = 2070;
      tall.n = 17;
      tall.k = 3;
      add(tall);
    }
  }
  // No terms at all: zero, or what was there.
  add({.m = 3, .n = 4, .k = 0});
  add({.m = 3, .n = 4, .k = 0, .accumulate = true});
  add({.m = 3, .n = 4, .k = 0, .bias = true, .activation = Activation::gelu_tanh});
  add({.m = 5, .n = 0, .k = 3});
  add({.m = 257, .n = 131, .k = 389, .b_transposed = true, .bias = true});
  add({.m = 64,
       .n = 768,
       .k = 256,
       .b_transposed = true,
       .activation = Activation::gelu_tanh,
       .pre_activation = true});
  return cases;
}

}  // namespace

std::vector<KernelGroup> matmul_groups() {
  return {{"matmul", matmul_cases}};
}

}  // namespace megalith::testing_support
