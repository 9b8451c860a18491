// Writes large files at the disk's rate: blocks of 1 MiB, several on their way at once, past the page cache
// (O_DIRECT) where the file system can, else through it. The caller fills one block while the writer's
// threads put earlier ones on the disk.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/block_pool.h"

namespace megalith {

class BulkWriter {
 public:
  /// `pool` outlives the writer. `lower_priority`: its threads let others go first (core/thread_cost.h).
  explicit BulkWriter(BlockPool& pool, int lower_priority = 0);
  /// Without finish(), what was handed over is dropped; files that were begun stay, incomplete.
  ~BulkWriter();
  BulkWriter(const BulkWriter&) = delete;
  BulkWriter& operator=(const BulkWriter&) = delete;

  /// Starts a new file of exactly `bytes` bytes, in room reserved for them. Raises Error (environment) where
  /// it cannot be created or the disk has no such room.
  void begin_file(const std::filesystem::path& path, std::uint64_t bytes);
  /// Where the file's next bytes go: at least one byte, unless the file is full. May wait for the disk.
  /// Raises what went wrong on the disk.
  std::span<std::byte> space();
  /// The first `bytes` of space() are filled.
  void advance(std::size_t bytes);
  void write(std::span<const std::byte> bytes);
  /// Every byte must have been written. Does not wait.
  void end_file();
  /// Waits until all files are on the disk (fsync). Raises Error (environment) with file, place and the
  /// system's reason.
  void finish();
  /// Processor time of the writer's threads; complete after finish().
  double processor_seconds() const;

 private:
  struct File;
  struct Job {
    File* file = nullptr;
    std::byte* block = nullptr;  ///< null where the file's end is all that is left to do
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    bool is_last = false;
  };
  void enqueue(const Job& job);
  void work(int lower_priority);
  void run(const Job& job);
  void stop();

  BlockPool& pool_;
  std::deque<std::unique_ptr<File>> files_;
  std::byte* block_ = nullptr;  ///< being filled by the caller
  std::size_t filled_ = 0;
  std::uint64_t position_ = 0;  ///< in the current file

  mutable std::mutex mutex_;
  std::condition_variable jobs_changed_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::exception_ptr error_;
  double processor_seconds_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace megalith
