// A safetensors file: any bytes give entries whose data lies in the file, or an Error (input).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "tests/data/support/fuzz_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace megalith;
  static const test::FuzzFolder folder;
  const std::string path = folder / "fuzz.safetensors";
  test::FuzzFolder::write(path, {reinterpret_cast<const char*>(data), size});
  try {
    const SafetensorsFile file(path);
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto bytes = file.data(entry);
      if (static_cast<std::size_t>(entry.shape.count()) * size_of(entry.dtype) != bytes.size()) std::abort();
      unsigned sum = 0;
      for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
      if (sum > 255 * bytes.size() || file.find(entry.name) != &entry) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
  }
  return 0;
}
