// Runs a fuzz target without libFuzzer: every seed of a folder as it is, cut short at many places, and with
// bits flipped at many places. The same inputs each time, so a failure is repeatable.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
}

/// Copies, so that a sanitizer sees every read past the end.
void feed(Bytes bytes) {
  bytes.shrink_to_fit();
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

/// Up to `count` places of [0, size), the first ones all, then evenly spread.
std::vector<std::size_t> places(std::size_t size, std::size_t count) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 64); ++i) chosen.push_back(i);
  const std::size_t step = std::max<std::size_t>(1, size / count);
  for (std::size_t i = 64; i < size; i += step) chosen.push_back(i);
  return chosen;
}

}  // namespace

int main(int argument_count, char** arguments) {
  std::size_t seeds = 0;
  std::size_t inputs = 0;
  for (int i = 1; i < argument_count; ++i) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      const Bytes seed = read_bytes(file);
      std::printf("%s (%zu bytes)\n", file.c_str(), seed.size());
      std::fflush(stdout);
      feed(seed);
      ++inputs;
      for (const std::size_t place : places(seed.size(), 128)) {
        feed(Bytes(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(place)));
        for (const std::uint8_t mask : {0x01, 0x80, 0xff}) {
          Bytes changed = seed;
          changed[place] = static_cast<std::uint8_t>(changed[place] ^ mask);
          feed(std::move(changed));
        }
        inputs += 4;
      }
      ++seeds;
    }
  }
  std::printf("%zu seeds, %zu inputs\n", seeds, inputs);
  return seeds == 0 ? 1 : 0;
}
