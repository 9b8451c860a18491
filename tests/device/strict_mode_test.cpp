// Strict mode makes mistakes at the device seam visible: reading device memory from the host, forgotten
// events, reuse of host memory too early, memory nobody wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "device/device.h"

namespace megalith {
namespace {

constexpr std::int64_t count = 8;
constexpr std::uint64_t seeds = 24;

std::unique_ptr<Device> strict_device(std::uint64_t seed) {
  return make_device({.name = "reference", .strict = true, .strict_seed = seed});
}

std::vector<float> read(Device& device, const Tensor& from) {
  std::vector<float> host(static_cast<std::size_t>(from.count()));
  device.copy_to_host(QueueKind::compute, host.data(), from);
  device.synchronize(QueueKind::compute);
  return host;
}

// Uploads ones on the copy queue and doubles them on the compute queue.
bool upload_then_double_is_right(std::uint64_t seed, bool with_event) {
  const auto device = strict_device(seed);
  const DeviceMemory in(*device, count * sizeof(float));
  const DeviceMemory out(*device, count * sizeof(float));
  const Tensor x = in.tensor(DType::float32, {count});
  const Tensor y = out.tensor(DType::float32, {count});
  const std::vector<float> ones(count, 1.0F);
  device->copy_to_device(QueueKind::copy, x, ones.data());
  if (with_event) device->wait(QueueKind::compute, device->record(QueueKind::copy));
  device->add(QueueKind::compute, y, x, 1.0, x, 1.0);
  const std::vector<float> result = read(*device, y);
  device->synchronize(QueueKind::copy);  // `ones` must live until here
  return result == std::vector<float>(count, 2.0F);
}

TEST(StrictMode, AMissingEventIsSeenForSomeSeed) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    wrong += upload_then_double_is_right(seed, false) ? 0 : 1;
  EXPECT_GT(wrong, 0);
  EXPECT_LT(wrong, static_cast<int>(seeds))
      << "queues that never overlap in the lucky order are not out of step";
}

TEST(StrictMode, WithTheEventEverySeedIsRight) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    EXPECT_TRUE(upload_then_double_is_right(seed, true)) << seed;
}

// The copy out must not overtake the kernel that writes, nor the next kernel overtake the copy.
TEST(StrictMode, DownloadsNeedEventsInBothDirections) {
  const auto run = [](std::uint64_t seed, bool before, bool after) {
    const auto device = strict_device(seed);
    const DeviceMemory memory(*device, count * sizeof(float));
    const Tensor x = memory.tensor(DType::float32, {count});
    std::vector<float> host(count, 0.0F);
    device->fill(QueueKind::compute, x, 1.0);
    if (before) device->wait(QueueKind::copy, device->record(QueueKind::compute));
    device->copy_to_host(QueueKind::copy, host.data(), x);
    if (after) device->wait(QueueKind::compute, device->record(QueueKind::copy));
    device->fill(QueueKind::compute, x, 2.0);
    device->synchronize(QueueKind::copy);
    device->synchronize(QueueKind::compute);
    return host == std::vector<float>(count, 1.0F);
  };
  int wrong_before = 0;
  int wrong_after = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    EXPECT_TRUE(run(seed, true, true)) << seed;
    wrong_before += run(seed, false, true) ? 0 : 1;
    wrong_after += run(seed, true, false) ? 0 : 1;
  }
  EXPECT_GT(wrong_before, 0);
  EXPECT_GT(wrong_after, 0);
}

TEST(StrictMode, AQueueKeepsItsOwnOrder) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto device = strict_device(seed);
    const DeviceMemory memory(*device, count * sizeof(float));
    const Tensor x = memory.tensor(DType::float32, {count});
    device->fill(QueueKind::communication, x, 1.0);
    for (int i = 0; i < 10; ++i) device->add(QueueKind::communication, x, x, 2.0, x, 0.0);
    device->wait(QueueKind::compute, device->record(QueueKind::communication));
    EXPECT_EQ(read(*device, x)[0], 1024.0F);
  }
}

TEST(StrictMode, WorkRunsLate) {
  const auto device = strict_device(3);
  const DeviceMemory memory(*device, count * sizeof(float));
  const Tensor x = memory.tensor(DType::float32, {count});
  std::vector<float> host(count, 1.0F);
  device->copy_to_device(QueueKind::compute, x, host.data());
  host.assign(count, 5.0F);  // too early: the queue has not passed the copy
  EXPECT_EQ(read(*device, x)[0], 5.0F);
}

TEST(StrictMode, ReleaseWaitsForTheQueues) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const auto device = strict_device(seed);
    const DeviceMemory out(*device, count * sizeof(float));
    {
      const DeviceMemory in(*device, count * sizeof(float));
      device->fill(QueueKind::copy, in.tensor(DType::float32, {count}), 3.0);
      device->copy(QueueKind::copy, out.tensor(DType::float32, {count}), in.tensor(DType::float32, {count}));
    }
    EXPECT_EQ(read(*device, out.tensor(DType::float32, {count}))[0], 3.0F);
  }
}

TEST(StrictMode, AProgramThatNeverSynchronizesStaysBounded) {
  const auto device = strict_device(1);
  const DeviceMemory memory(*device, sizeof(float));
  const Tensor x = memory.tensor(DType::float32, {1});
  device->fill(QueueKind::compute, x, 0.0);
  const DeviceMemory one(*device, sizeof(float));
  device->fill(QueueKind::compute, one.tensor(DType::float32, {1}), 1.0);
  for (int i = 0; i < 20000; ++i) {
    device->add(QueueKind::compute, x, x, 1.0, one.tensor(DType::float32, {1}), 1.0);
  }
  EXPECT_EQ(read(*device, x)[0], 20000.0F);
}

TEST(StrictMode, NewMemoryIsNaN) {
  const auto device = strict_device(1);
  const DeviceMemory memory(*device, count * sizeof(float));
  for (const float value : read(*device, memory.tensor(DType::float32, {count})))
    EXPECT_TRUE(std::isnan(value));
}

TEST(StrictMode, BlocksAreReusedAndCounted) {
  const auto device = strict_device(1);
  EXPECT_EQ(device->allocated_bytes(), 0U);
  for (int round = 0; round < 100; ++round) {
    std::vector<DeviceMemory> blocks;
    for (std::size_t bytes : {0UL, 1UL, 64UL, 4096UL, 100000UL}) blocks.emplace_back(*device, bytes);
    EXPECT_EQ(device->allocated_bytes(), 104161U);
    for (const DeviceMemory& block : blocks) EXPECT_EQ(block.address().value % 64, 0U);
    for (std::size_t i = 1; i < blocks.size(); ++i) EXPECT_NE(blocks[i].address(), blocks[i - 1].address());
    blocks.erase(blocks.begin() + 2);
  }
  EXPECT_EQ(device->allocated_bytes(), 0U);
  EXPECT_EQ(device->peak_bytes(), 104161U);
}

TEST(StrictMode, TooMuchMemoryIsAClearError) {
  const auto device = strict_device(1);
  try {
    const DeviceMemory memory(*device, std::size_t{1} << 40);
    FAIL() << "a terabyte fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    EXPECT_NE(std::string(error.what()).find("1099511627776"), std::string::npos) << error.what();
  }
}

using StrictModeDeathTest = testing::Test;

TEST(StrictModeDeathTest, ReadingThroughAnAddressOnTheHostIsFatal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto device = strict_device(1);
        const DeviceMemory memory(*device, count * sizeof(float));
        device->fill(QueueKind::compute, memory.tensor(DType::float32, {count}), 1.0);
        device->synchronize(QueueKind::compute);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the mistake under test
        const volatile float* wrong = reinterpret_cast<const float*>(memory.address().value);
        std::exit(wrong[0] == 1.0F ? 0 : 1);
      },
      "");
}

TEST(StrictModeDeathTest, AKernelPastTheEndOfABlockIsFatal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto device = strict_device(1);
        const DeviceMemory memory(*device, 16 * sizeof(float));
        device->fill(QueueKind::compute, Tensor(memory.address(), DType::float32, {17}), 1.0);
        device->synchronize(QueueKind::compute);
        std::exit(0);
      },
      "");
}

TEST(StrictModeDeathTest, AReleasedBlockHasNoRights) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto device = strict_device(1);
        const Tensor x(DeviceMemory(*device, 64).address(), DType::float32, {16});
        device->fill(QueueKind::compute, x, 1.0);
        device->synchronize(QueueKind::compute);
        std::exit(0);
      },
      "");
}

}  // namespace
}  // namespace megalith
