// The folder of one run: effective config, metrics, event files, checkpoints, and a lock that keeps a second
// process out.
#pragma once

#include <filesystem>
#include <string>

namespace megalith {

class RunFolder {
 public:
  /// `save` where it is given, else a fresh runs/DATE-TIME. Raises Error (usage) where another process trains
  /// there, (environment) where it cannot be created.
  explicit RunFolder(const std::string& save);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path trace() const { return path_ / "trace.json"; }
  std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace megalith
