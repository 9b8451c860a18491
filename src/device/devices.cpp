// The devices this program knows. A folder of device/ that cannot be built (a missing library) is replaced by
// its stub at link time, whose factory raises Error (environment) and says what is missing.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "device/cpu/cpu_device.h"
#include "device/device.h"
#include "device/reference/reference_device.h"

namespace megalith {
namespace {

struct KnownDevice {
  std::string_view name;
  std::unique_ptr<Device> (*make)(const DeviceOptions& options);
};

constexpr std::array known_devices = {
    KnownDevice{"cpu", make_cpu_device},
    KnownDevice{"reference", make_reference_device},
};

std::string known_names() {
  std::string names;
  for (const KnownDevice& device : known_devices)
    names += format("{}{}", names.empty() ? "" : ", ", device.name);
  return names;
}

}  // namespace

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  const auto* const known =
      std::find_if(known_devices.begin(), known_devices.end(),
                   [&](const KnownDevice& device) { return device.name == options.name; });
  if (known == known_devices.end()) {
    fail(ErrorKind::usage, "device", "there is no device \"{}\"; this program knows {}", options.name,
         known_names());
  }
  if (options.threads < 0) {
    fail(ErrorKind::usage, "device", "{} threads; expected 1 or more, or 0 for all processors",
         options.threads);
  }
  if (options.strict && options.name != "reference") {
    fail(ErrorKind::usage, "device",
         "strict mode belongs to the reference device, not to {}; choose reference", options.name);
  }
  return known->make(options);
}

std::vector<DeviceStatus> list_devices() {
  std::vector<DeviceStatus> found;
  for (const KnownDevice& known : known_devices) {
    DeviceStatus status{std::string(known.name), false, {}};
    try {
      status.detail = known.make({.name = status.name})->description();
      status.available = true;
    } catch (const Error& error) {
      status.detail = error.what();
    }
    found.push_back(std::move(status));
  }
  return found;
}

}  // namespace megalith
