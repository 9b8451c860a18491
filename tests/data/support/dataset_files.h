// Small datasets on disk for tests.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "data/tokenizer.h"

namespace megalith::test {

/// A fresh folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A Log that writes into a file without a name.
class RecordingLog {
 public:
  RecordingLog();
  ~RecordingLog();
  RecordingLog(const RecordingLog&) = delete;
  RecordingLog& operator=(const RecordingLog&) = delete;

  Log& log() { return log_; }
  /// All that was said so far.
  std::string said();

 private:
  std::FILE* stream_;
  Log log_;
};

/// Documents of sequences of tokens.
using Documents = std::vector<std::vector<std::vector<Token>>>;

/// Writes PREFIX.bin and PREFIX.idx in uint16.
void write_dataset(const std::string& prefix, const Documents& documents);

std::string slurp(const std::filesystem::path& path);
void spill(const std::filesystem::path& path, std::string_view content);

/// tests/data/vectors/NAME
std::filesystem::path vector_file(std::string_view name);

}  // namespace megalith::test
