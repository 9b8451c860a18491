// TensorBoard event files: TFRecord frames (length, masked CRC-32C, data, masked CRC-32C) around Event
// messages in protocol-buffer encoding. Encoded here, since only five fields are needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/append_file.h"

namespace megalith {

/// CRC-32C (Castagnoli), as in RFC 3720.
std::uint32_t crc32c(std::string_view bytes);

class TensorboardWriter {
 public:
  /// Tag ("lm loss") and value.
  using Scalars = std::vector<std::pair<std::string, double>>;

  /// Cuts events of steps after `keep_through` from the folder's event files, then opens a new one.
  TensorboardWriter(const std::filesystem::path& folder, std::int64_t keep_through);
  /// `wall_seconds` since 1970.
  void write(std::int64_t step, double wall_seconds, const Scalars& scalars);

 private:
  void append_record(std::string_view event);

  AppendFile file_;
};

}  // namespace megalith
