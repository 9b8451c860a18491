// Files that other programs and crashes may touch: whole reads with a size limit, read-only maps, and writes
// that either appear complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

/// The whole file. Raises Error (input) where it is missing, unreadable or larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit = std::uint64_t{1} << 32);

/// A read-only memory map of a whole file; empty files give an empty span. Move-only.
class MappedFile {
 public:
  MappedFile() = default;
  /// Raises Error (input) where the file is missing or cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A file being written under `PATH.tmp-PID` that takes its real name only in commit(): flush, fsync, rename,
/// fsync of the folder. Destroyed without commit, it removes its temporary file. Write errors (disk full,
/// read-only folder) raise Error (environment) with the path, the bytes written so far and the system's
/// reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Bytes written so far.
  std::uint64_t size() const { return size_; }
  void commit();

 private:
  void flush();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::string buffer_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
};

/// Writes a small file through AtomicFile.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Makes a rename or a new file in `folder` survive a power cut.
void sync_folder(const std::filesystem::path& folder);

/// Creates the folder and its parents. Raises Error (environment) with the path and the reason.
void create_folders(const std::filesystem::path& folder);

}  // namespace megalith
