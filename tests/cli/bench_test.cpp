#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/files.h"
#include "core/format.h"
#include "device/device.h"
#include "device/kernel_work.h"
#include "device/yardsticks.h"

namespace megalith {
namespace {

using testing::HasSubstr;

constexpr const char* tiny =
    "--num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 100 --rounds 1 "
    "--num-threads 1";

/// Standard output of `megalith bench kernels`.
std::string bench(const std::string& arguments) {
  const std::string command = format("{} bench kernels {} {} 2> /dev/null", MEGALITH_BINARY, tiny, arguments);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), got);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

/// Names of the virtual functions below "--- kernels" in device.h.
std::set<std::string> kernels_of_the_seam() {
  std::istringstream header(read_file(MEGALITH_SOURCE_DIR "/src/device/device.h"));
  std::set<std::string> names;
  bool is_kernel = false;
  for (std::string line; std::getline(header, line);) {
    if (line.find("--- kernels") != std::string::npos) is_kernel = true;
    const std::string start = "  virtual void ";
    if (is_kernel && line.starts_with(start)) {
      names.insert(line.substr(start.size(), line.find('(') - start.size()));
    }
  }
  return names;
}

TEST(BenchKernels, EveryKernelOfTheSeamHasARow) {
  std::set<std::string> seen;
  for (const std::string arguments :
       {"--hidden-dropout 0.1 --attention-dropout 0.1 --recompute-granularity selective",
        "--optimizer sgd --vocab-size 50", "--bf16", "--pass evaluation", "--pass prompt",
        "--pass generation", "--device reference", "--device reference --fp64"}) {
    if (arguments.find("reference") == std::string::npos && !list_devices().front().available) continue;
    const nlohmann::json document = nlohmann::json::parse(bench(arguments + " --json"));
    ASSERT_FALSE(document["kernels"].empty()) << arguments;
    double share = 0;
    for (const nlohmann::json& row : document["kernels"]) {
      seen.insert(row["kernel"].get<std::string>());
      EXPECT_GT(row["median_seconds"], 0.0) << row;
      EXPECT_GT(row["percent"], 0.0) << row;
      share += row["share"].get<double>();
    }
    EXPECT_LE(share, 1.0001) << arguments;
  }
  std::set<std::string> expected = kernels_of_the_seam();
  ASSERT_GT(expected.size(), 20U);
  // Weights are drawn before the passes.
  expected.erase("initialize_normal");
  for (const std::string& kernel : expected) EXPECT_TRUE(seen.contains(kernel)) << kernel;
}

TEST(BenchKernels, TableAndFilter) {
  const std::string table = bench("--filter '^matmul .*gelu' --pass evaluation --device reference");
  EXPECT_THAT(table, HasSubstr("yardsticks"));
  EXPECT_THAT(table, Not(HasSubstr("layer_norm")));
  EXPECT_THAT(bench("--filter layer_norm_forward --device reference"), HasSubstr("64x32"));
}

TEST(Yardsticks, LimitsAreTheLargerOfArithmeticAndMemory) {
  Yardsticks yardsticks{
      .threads = 1, .multiply_add = 100.0, .bandwidths = {{10.0, 8.0, 6.0, 4.0}, {1000.0, 2.0, 4.0, 1.0}}};
  const KernelLimit arithmetic = limit_of({"", 1000.0, 1.0, 1.0}, yardsticks);
  EXPECT_EQ(arithmetic.by, KernelLimit::By::arithmetic);
  EXPECT_DOUBLE_EQ(arithmetic.seconds, 10.0);
  // Copying is the better of the two small blocks, changing of the large ones.
  EXPECT_DOUBLE_EQ(limit_of({"", 0.0, 0.0, 8.0}, yardsticks).seconds, 1.0);
  EXPECT_DOUBLE_EQ(limit_of({"", 0.0, 0.0, 8000.0}, yardsticks).seconds, 2000.0);
  EXPECT_DOUBLE_EQ(limit_of({"", 0.0, 8000.0, 0.0}, yardsticks).seconds, 8000.0);
  // Between blocks, by the logarithm of the size.
  EXPECT_NEAR(yardsticks.bandwidth(100.0).read, 2.5, 1e-12);
  EXPECT_EQ(limit_of({"", 1.0, 1.0, 1.0}, Yardsticks{}).seconds, 0.0);
}

TEST(KernelWork, CountsVisibleKeysAndEachTensorOnce) {
  const auto tensor = [](const Shape& shape) { return Tensor({64}, DType::float32, shape); };
  const KernelWork product = kernel_work::matmul(
      {.a = {tensor({5, 3}), true}, .b = {tensor({5, 4})}, .c = tensor({3, 4}), .accumulate = true});
  EXPECT_EQ(product.shape, "float32 3x4x5 a' +=");
  EXPECT_EQ(product.flops, 2.0 * 3 * 4 * 5);
  EXPECT_EQ(product.bytes_read, 4.0 * (15 + 20 + 12));
  EXPECT_EQ(product.bytes_written, 4.0 * 12);
  AttentionArgs attention{.query = tensor({2, 3, 4, 8}),
                          .key = tensor({2, 3, 4, 8}),
                          .value = tensor({2, 3, 4, 8}),
                          .out = tensor({2, 3, 4, 8}),
                          .log_sum_exp = tensor({2, 4, 3})};
  const double causal = kernel_work::attention_forward(attention).flops;
  attention.causal = false;
  EXPECT_DOUBLE_EQ(kernel_work::attention_forward(attention).flops / causal, 9.0 / 6.0);
}

}  // namespace
}  // namespace megalith
