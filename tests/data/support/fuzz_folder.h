// A folder in memory for fuzz targets whose subject reads files.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace megalith::test {

class FuzzFolder {
 public:
  FuzzFolder() {
    std::error_code ignored;
    const std::filesystem::path memory = "/dev/shm";
    path_ = (std::filesystem::exists(memory, ignored) ? memory : std::filesystem::temp_directory_path()) /
            "megalith-fuzz-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) ::abort();
  }
  ~FuzzFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  static void write(const std::string& path, std::string_view content) {
    std::ofstream stream(path, std::ios::binary);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  }

 private:
  std::string path_;
};

}  // namespace megalith::test
