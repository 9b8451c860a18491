// add_column_sums, add_weighted_sum, block_norms and clip_factor.
#include <limits>

#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

std::vector<KernelCase> column_cases() {
  std::vector<KernelCase> cases;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {0, 9}, {7, 13}, {257, 31}, {3, 4099}, {1031, 1}}) {
    KernelCase made{format("add_column_sums {}x{}", rows, columns), {}, {}};
    const Shape shape{rows, columns};
    made.arguments = {{"sums",
                       Element::sum,
                       {columns},
                       Use::in_out,
                       uniform({columns}, -1, 1, 81),
                       Bound::sum_of(rows + 2.0, 1.0),
                       {}},
                      {"x", Element::compute, shape, Use::input, uniform(shape, -1, 1, 82), {}, {}}};
    made.enqueue = [](Device& device, QueueKind queue, std::span<const Tensor> t) {
      device.add_column_sums(queue, t[0], t[1]);
    };
    cases.push_back(std::move(made));
  }
  return cases;
}

std::vector<KernelCase> weighted_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t count : {0, 1, 17, 20011}) {
    KernelCase made{format("add_weighted_sum {}", count), {}, {}};
    made.arguments = {{"total",
                       Element::float64,
                       {1},
                       Use::in_out,
                       {2.5},
                       Bound::sum_of(static_cast<double>(count) + 2.0, 1.0),
                       {}},
                      {"x", Element::sum, {count}, Use::input, uniform({count}, -1, 1, 83), {}, {}},
                      {"weights", Element::sum, {count}, Use::input, uniform({count}, 0, 1, 84), {}, {}}};
    made.enqueue = [](Device& device, QueueKind queue, std::span<const Tensor> t) {
      device.add_weighted_sum(queue, t[0], t[1], t[2]);
    };
    cases.push_back(std::move(made));
  }
  return cases;
}

std::vector<KernelCase> norm_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t count : {0, 1, 4095, 4096, 4097, 50021}) {
    KernelCase made{format("block_norms {}", count), {}, {}};
    const std::int64_t blocks = (count + norm_block - 1) / norm_block;
    made.arguments = {{"partials", Element::float64, {blocks}, Use::output, {}, {.relative = 256.0}, {}},
                      {"x", Element::sum, {count}, Use::input, uniform({count}, -1, 1, 85), {}, {}}};
    made.enqueue = [](Device& device, QueueKind queue, std::span<const Tensor> t) {
      device.block_norms(queue, t[0], t[1]);
    };
    cases.push_back(std::move(made));
  }
  return cases;
}

KernelCase clip_case(const std::vector<double>& partials, double inverse_loss_scale, double max_norm) {
  KernelCase made{format("clip_factor of {} to {}", partials.size(), max_norm), {}, {}};
  made.arguments = {{"partials",
                     Element::float64,
                     {static_cast<std::int64_t>(partials.size())},
                     Use::input,
                     partials,
                     {},
                     {}},
                    {"inverse_loss_scale", Element::float64, {1}, Use::input, {inverse_loss_scale}, {}, {}},
                    {"norm", Element::float64, {1}, Use::output, {}, {.ulps = 4.0}, {}},
                    {"gradient_scale", Element::float64, {1}, Use::output, {}, {.ulps = 8.0}, {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.clip_factor(queue, {t[0], t[1], max_norm, t[2], t[3]});
  };
  return made;
}

std::vector<KernelCase> clip_cases() {
  const double infinity = std::numeric_limits<double>::infinity();
  return {clip_case(uniform({101}, 0, 2, 86), 1.0, 1.0),
          clip_case(uniform({7}, 0, 1e-4, 87), 1.0, 1.0),
          clip_case(uniform({1001}, 0, 2e6, 88), 1.0 / 65536.0, 0.5),
          clip_case(uniform({13}, 0, 2, 89), 0.25, 0.0),
          clip_case({}, 1.0, 1.0),
          clip_case({1.0, infinity, 2.0}, 1.0, 1.0),
          clip_case({1.0, std::numeric_limits<double>::quiet_NaN()}, 1.0, 0.0)};
}

}  // namespace

std::vector<KernelGroup> sum_groups() {
  return {{"add_column_sums", column_cases},
          {"add_weighted_sum", weighted_cases},
          {"block_norms", norm_cases},
          {"clip_factor", clip_cases}};
}

}  // namespace megalith::testing_support
