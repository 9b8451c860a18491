// Opening devices, and what every device promises about memory and queues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/device.h"

namespace megalith {
namespace {

using testing::HasSubstr;

Error error_of(const DeviceOptions& options) {
  try {
    make_device(options);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::internal, "test", "no error"};
}

TEST(Devices, TheReferenceIsAlwaysThere) {
  bool found = false;
  for (const DeviceStatus& status : list_devices()) {
    EXPECT_FALSE(status.detail.empty());
    if (status.name == "reference") {
      found = true;
      EXPECT_TRUE(status.available);
    }
  }
  EXPECT_TRUE(found);
}

TEST(Devices, AnUnknownNameIsAUsageErrorThatListsTheKnown) {
  const Error error = error_of({.name = "gpu9"});
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("gpu9"), HasSubstr("reference")));
}

TEST(Devices, BadOptionsAreUsageErrors) {
  EXPECT_EQ(error_of({.name = "reference", .threads = -1}).kind(), ErrorKind::usage);
}

TEST(Devices, ListedOnesOpenAndMissingOnesSayWhatToDo) {
  for (const DeviceStatus& status : list_devices()) {
    if (status.available) {
      EXPECT_EQ(make_device({.name = status.name})->name(), status.name);
    } else {
      const Error error = error_of({.name = status.name});
      EXPECT_EQ(error.kind(), ErrorKind::environment);
      EXPECT_THAT(error.what(), HasSubstr(status.name));
    }
  }
}

TEST(Devices, StrictModeIsTheReferencesAlone) {
  for (const DeviceStatus& status : list_devices()) {
    const DeviceOptions options{.name = status.name, .strict = true};
    if (status.name == "reference") {
      EXPECT_THAT(make_device(options)->description(), HasSubstr("strict"));
    } else {
      EXPECT_EQ(error_of(options).kind(), ErrorKind::usage);
    }
  }
}

class EveryDevice : public testing::TestWithParam<std::string> {};

TEST_P(EveryDevice, CountsAndAlignsMemory) {
  const auto device = make_device({.name = GetParam()});
  const std::size_t before = device->allocated_bytes();
  {
    const DeviceMemory first(*device, 100);
    const DeviceMemory empty(*device, 0);
    DeviceMemory second(*device, 1000);
    EXPECT_EQ(first.address().value % 64, 0U);
    EXPECT_EQ(second.address().value % 64, 0U);
    EXPECT_TRUE(static_cast<bool>(empty.address())) << "an empty tensor is not an absent one";
    EXPECT_EQ(device->allocated_bytes() - before, 1100U);
    second = DeviceMemory();
    EXPECT_EQ(device->allocated_bytes() - before, 100U);
  }
  EXPECT_EQ(device->allocated_bytes(), before);
  EXPECT_GE(device->peak_bytes() - before, 1100U);
}

TEST_P(EveryDevice, RefusesMemoryThatIsNotThere) {
  const auto device = make_device({.name = GetParam()});
  try {
    const DeviceMemory memory(*device, std::size_t{1} << 55);
    FAIL() << "32 pebibytes fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    EXPECT_THAT(error.what(), HasSubstr("36028797018963968"));
  }
}

TEST_P(EveryDevice, RefusesWrongCallsBeforeRunning) {
  const auto device = make_device({.name = GetParam()});
  const DeviceMemory memory(*device, 64);
  const Tensor x = memory.tensor(DType::float32, {4, 4});
  EXPECT_THROW(device->add_column_sums(QueueKind::compute, memory.tensor(DType::float32, {3}), x), Error);
  EXPECT_THROW(device->copy(QueueKind::compute, x, memory.tensor(DType::float32, {2, 4})), Error);
}

TEST_P(EveryDevice, EventsOrderQueues) {
  const auto device = make_device({.name = GetParam()});
  const DeviceMemory memory(*device, 64);
  const Tensor x = memory.tensor(DType::float32, {16});
  std::vector<float> host(16, 0.0F);
  device->fill(QueueKind::compute, x, 2.0);
  device->wait(QueueKind::communication, device->record(QueueKind::compute));
  device->add(QueueKind::communication, x, x, 2.0, x, 1.0);
  device->wait(QueueKind::copy, device->record(QueueKind::communication));
  device->copy_to_host(QueueKind::copy, host.data(), x);
  device->synchronize(QueueKind::copy);
  EXPECT_EQ(host, std::vector<float>(16, 6.0F));
}

std::vector<std::string> available_names() {
  std::vector<std::string> names;
  for (const DeviceStatus& status : list_devices()) {
    if (status.available) names.push_back(status.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Devices, EveryDevice, testing::ValuesIn(available_names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace megalith
