// Times every kernel of a device at the sizes of GPT-2 124M (1,024 tokens), with bytes and floating-point
// operations per second, beside what the machine can do at most.
//
//   kernels_bench [--device=cpu] [--threads=0] [Google Benchmark's flags, such as
//   --benchmark_filter=layer_norm]
#include <charconv>
#include <cstdio>
#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/workspace.h"
#include "core/error.h"
#include "device/parallel_for.h"

namespace megalith::bench {
namespace {

/// Takes our own flags out of the arguments and leaves the others.
DeviceOptions take_device_options(std::vector<char*>& arguments) {
  DeviceOptions options;
  std::vector<char*> rest;
  for (char* argument : arguments) {
    const std::string_view text = argument;
    constexpr std::string_view device_flag = "--device=";
    constexpr std::string_view threads_flag = "--threads=";
    if (text.starts_with(device_flag)) {
      options.name = text.substr(device_flag.size());
    } else if (text.starts_with(threads_flag)) {
      const std::string_view number = text.substr(threads_flag.size());
      const auto [end, error] =
          std::from_chars(number.data(), number.data() + number.size(), options.threads);
      if (error != std::errc() || end != number.data() + number.size() || options.threads < 0) {
        fail(ErrorKind::usage, "--threads", "\"{}\" is no number of threads; give 0 (all) or more", number);
      }
    } else {
      rest.push_back(argument);
    }
  }
  arguments = rest;
  return options;
}

int run(std::vector<char*> arguments) {
  const DeviceOptions options = take_device_options(arguments);
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
    return static_cast<int>(ErrorKind::usage);

  const std::unique_ptr<Device> device = make_device(options);
  benchmark::AddCustomContext("device", device->description());
#if defined(MEGALITH_BENCH_YARDSTICKS)
  add_yardsticks(options.threads > 0 ? options.threads : usable_processors());
#endif
  for (const DType compute : {DType::float32, DType::bfloat16}) {
    if (!device->supports(compute)) continue;
    add_matmul_cases(*device, compute);
    add_attention_cases(*device, compute);
    add_activation_cases(*device, compute);
    add_optimizer_cases(*device, compute);
    add_generation_cases(*device, compute);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace megalith::bench

int main(int argc, char** argv) {
  try {
    return megalith::bench::run(std::vector<char*>(argv, argv + argc));
  } catch (const megalith::Error& error) {
    std::fprintf(stderr, "kernels_bench: %s\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernels_bench: %s\n", error.what());
    return static_cast<int>(megalith::ErrorKind::internal);
  }
}
