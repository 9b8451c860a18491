// A file that grows by whole records: metrics, event files.
#pragma once

#include <filesystem>
#include <string_view>

namespace megalith {

class AppendFile {
 public:
  AppendFile() = default;
  /// Opens (or creates) the file for appending; with `fresh` it must not exist yet. is_open() is false where
  /// `fresh` and the file exists; any other failure raises Error (environment).
  explicit AppendFile(const std::filesystem::path& path, bool fresh = false);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  /// The bytes have reached the system when this returns. Raises Error (environment).
  void append(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace megalith
