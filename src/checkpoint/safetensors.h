// The safetensors file format: an 8-byte little-endian header length, a JSON header that names each tensor
// with its type, shape and byte range, then the raw data. Files from outside are treated as hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/files.h"
#include "core/shape.h"

namespace megalith {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t begin = 0;  ///< byte range inside the data section
  std::uint64_t end = 0;
};

/// A file opened for reading (memory-mapped). Header, ranges, types and shapes are checked on opening.
class SafetensorsFile {
 public:
  /// Raises Error (input) that names the file and what is wrong with it.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  /// Null where there is no such tensor.
  const SafetensorsEntry* find(std::string_view name) const;
  /// Raw little-endian elements.
  std::span<const std::byte> data(const SafetensorsEntry& entry) const;
  /// Where they begin in the file.
  std::uint64_t position(const SafetensorsEntry& entry) const { return data_start_ + entry.begin; }
  /// The whole file.
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  /// The header's "__metadata__" strings.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::size_t data_start_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Parses a header of `data_bytes` bytes of data behind it. `place` names the file in errors.
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                                       std::string_view place,
                                                       std::map<std::string, std::string>& metadata);

/// The beginning of a file, up to the first byte of data: length and header of tensors that lie one after
/// another in the order given. begin and end of the entries are computed here from dtype and shape.
std::string safetensors_header(const std::vector<SafetensorsEntry>& entries,
                               const std::map<std::string, std::string>& metadata);

}  // namespace megalith
