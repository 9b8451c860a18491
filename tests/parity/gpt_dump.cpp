// gpt_dump OUTPUT [name=value ...]: runs tests/parity/gpt_run.h and writes its numbers for gpt_oracle.py.
// gpt_dump --devices: the devices there are, one a line.
// A record is: u32 length, name, u32 rank, i64 extents, f64 values; little-endian, until the end of the file.
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>

#include "tests/parity/gpt_run.h"

namespace {

using namespace megalith;

template <typename T>
void put(std::ofstream& file, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  for (const std::byte byte : bytes) file.put(static_cast<char>(byte));
}

void run(std::span<char*> arguments) {
  if (std::string(arguments[1]) == "--devices") {
    for (const DeviceStatus& status : list_devices()) {
      if (status.available) std::printf("%s\n", status.name.c_str());
    }
    return;
  }
  testing::RunSettings settings;
  for (const char* argument : arguments.subspan(2)) {
    const std::string text = argument;
    const std::size_t equals = text.find('=');
    settings[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const auto device = testing::open_device(settings.count("device") > 0 ? settings.at("device") : "reference",
                                           settings.count("strict") > 0);
  std::ofstream file(arguments[1], std::ios::binary);
  for (const auto& [name, values] : testing::record_run(*device, settings)) {
    put(file, static_cast<std::uint32_t>(name.size()));
    file << name;
    put(file, static_cast<std::uint32_t>(values.shape.size()));
    for (const std::int64_t extent : values.shape) put(file, extent);
    for (const double value : values.values) put(file, value);
  }
  if (!file.flush()) fail(ErrorKind::environment, arguments[1], "cannot be written");
}

}  // namespace

int main(int count, char** values) {
  if (count < 2) {
    std::fputs("usage: gpt_dump OUTPUT [name=value ...]\n", stderr);
    return 2;
  }
  try {
    run(std::span(values, static_cast<std::size_t>(count)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpt_dump: %s\n", error.what());
    return 1;
  }
  return 0;
}
