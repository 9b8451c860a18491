// Every kernel on every device present, in every precision that the device has, against the float64
// reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/device/support/cases.h"

namespace megalith {
namespace {

using testing_support::KernelCase;
using testing_support::KernelGroup;
using testing_support::PlacedCase;

struct Target {
  std::string label;
  DeviceOptions options;
  DType compute = DType::float32;
};

std::vector<Target> targets() {
  std::vector<Target> all;
  const std::vector<DeviceStatus> devices = list_devices();
  for (const DeviceStatus& status : devices) {
    if (!status.available) continue;
    std::vector<DeviceOptions> variants = {{.name = status.name}};
    if (status.name == "reference") {
      variants.push_back({.name = status.name, .strict = true, .strict_seed = 5});
    } else {
      // Cuts of work that are not even, and none at all.
      variants = {{.name = status.name, .threads = 3}, {.name = status.name, .threads = 1}};
    }
    for (const DeviceOptions& options : variants) {
      const auto device = make_device(options);
      for (const DType compute : {DType::float64, DType::float32, DType::bfloat16}) {
        if (!device->supports(compute)) continue;
        std::string label = format("{}_{}", status.name, name_of(compute));
        if (options.strict) label += "_strict";
        if (options.threads > 0) label += format("_{}threads", options.threads);
        all.push_back({label, options, compute});
      }
    }
  }
  return all;
}

bool agree(double found, double expected, double allowed) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= allowed;
}

/// The case with its inputs rounded as the device under test sees them.
KernelCase with_rounded_inputs(KernelCase original, DType compute) {
  for (auto& argument : original.arguments) {
    argument.values = testing_support::rounded(std::move(argument.values),
                                               testing_support::resolve(argument.element, compute));
  }
  return original;
}

/// Returns the largest error, as a share of what is allowed.
double compare(const KernelCase& kernel_case, const PlacedCase& found, const PlacedCase& expected,
               DType compute) {
  double worst = 0.0;
  for (std::size_t i = 0; i < kernel_case.arguments.size(); ++i) {
    const auto& argument = kernel_case.arguments[i];
    if (argument.use != testing_support::Use::output && argument.use != testing_support::Use::in_out)
      continue;
    const DType dtype = testing_support::resolve(argument.element, compute);
    std::size_t wrong = 0;
    for (std::size_t j = 0; j < expected.values(i).size(); ++j) {
      const double want = expected.values(i)[j];
      const double got = found.values(i)[j];
      const double allowed = argument.bound.allowed(want, dtype, compute);
      if (agree(got, want, allowed)) {
        if (allowed > 0.0 && std::isfinite(want)) worst = std::max(worst, std::fabs(got - want) / allowed);
        continue;
      }
      if (wrong++ == 0) {
        ADD_FAILURE() << argument.name << "[" << j << "] of " << argument.shape.to_string() << " is " << got
                      << ", the reference has " << want << ", allowed " << allowed << ", off by "
                      << std::fabs(got - want);
      }
    }
    EXPECT_EQ(wrong, 0U) << "elements of " << argument.name << " out of bounds";
  }
  return worst;
}

class Kernels : public testing::TestWithParam<std::tuple<KernelGroup, Target>> {};

TEST_P(Kernels, AgreesWithTheReference) {
  const auto& [group, target] = GetParam();
  const auto device = make_device(target.options);
  const auto reference = make_device({.name = "reference"});
  std::int64_t misalignment = 0;
  double worst = 0.0;
  for (const KernelCase& original : group.cases()) {
    SCOPED_TRACE(original.name);
    const KernelCase kernel_case = with_rounded_inputs(original, target.compute);
    PlacedCase expected(kernel_case, *reference, DType::float64, 0);
    expected.enqueue();
    expected.finish();
    // Aligned, then by 1, 2, 3 elements off.
    PlacedCase found(kernel_case, *device, target.compute, misalignment++ % 4);
    found.enqueue();
    found.finish();
    EXPECT_EQ(found.damage(), "");
    worst = std::max(worst, compare(kernel_case, found, expected, target.compute));
  }
  RecordProperty("largest_error_over_bound", format("{:.3f}", worst));
}

// Same device, same call: the same bits, wherever the memory lies.
TEST_P(Kernels, GivesTheSameBitsAgain) {
  const auto& [group, target] = GetParam();
  const auto device = make_device(target.options);
  for (const KernelCase& kernel_case : group.cases()) {
    SCOPED_TRACE(kernel_case.name);
    PlacedCase first(kernel_case, *device, target.compute, 1);
    PlacedCase second(kernel_case, *device, target.compute, 0);
    first.enqueue();
    second.enqueue();
    first.finish();
    second.finish();
    for (std::size_t i = 0; i < kernel_case.arguments.size(); ++i) {
      if (kernel_case.arguments[i].use == testing_support::Use::scratch) continue;
      for (std::size_t j = 0; j < first.values(i).size(); ++j) {
        const double a = first.values(i)[j];
        const double b = second.values(i)[j];
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
            << kernel_case.arguments[i].name << "[" << j << "]: " << a << " and " << b;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Kernels,
                         testing::Combine(testing::ValuesIn(testing_support::all_groups()),
                                          testing::ValuesIn(targets())),
                         [](const auto& each) {
                           return format("{}_on_{}", std::get<0>(each.param).kernel,
                                         std::get<1>(each.param).label);
                         });

}  // namespace
}  // namespace megalith
