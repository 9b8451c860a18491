#include "cli/command.h"
#include "core/build_libraries.h"
#include "core/format.h"
#include "core/version_data.h"
#include "device/device.h"

namespace megalith {

std::string version_text() {
  std::string text = format("megalith {} ({})\n", version_number, version_commit);
  text += format("  compiler      {}, {} build\n", version_compiler, version_build_type);
  text += "  libraries    ";
  for (const BuildLibrary& library : build_libraries) {
    if (library.found) text += format(" {} {},", library.name, library.version);
  }
  text.back() = '\n';
  for (const DeviceStatus& device : list_devices()) {
    text += format("  device        {}\n",
                   device.available ? device.detail : device.name + ": missing: " + device.detail);
  }
  return text;
}

}  // namespace megalith
