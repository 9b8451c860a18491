// Reads parts of large files at the disk's rate, in the order given: blocks of 1 MiB, several on their way at
// once, while the caller works on earlier ones. What the system's page cache holds already is taken from
// there without a copy; the rest comes straight from the disk (O_DIRECT), which spares the processor, or
// through the cache for files that will be read again soon.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/block_pool.h"

namespace megalith {

/// Whether files that are read should stay in the system's page cache.
enum class PageCache : std::uint8_t { keep, bypass };

/// Bytes [begin, end) of a file that is mapped whole as `map`.
struct FilePart {
  std::filesystem::path path;
  std::span<const std::byte> map;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class BulkReader {
 public:
  /// Starts to read ahead. The maps outlive the reader.
  BulkReader(const std::vector<FilePart>& parts, PageCache cache);
  ~BulkReader();
  BulkReader(const BulkReader&) = delete;
  BulkReader& operator=(const BulkReader&) = delete;

  /// The next piece of the parts, in order; empty at the end. A piece stays inside its part and is valid
  /// until the next call. Raises Error (input) where the file cannot be read or is shorter than its map.
  std::span<const std::byte> next();

 private:
  struct Source;
  struct Job {
    Source* source = nullptr;
    std::uint64_t begin = 0;  ///< in the file
    std::uint64_t end = 0;
  };
  struct Piece {
    std::span<const std::byte> bytes;
    std::byte* block = nullptr;  ///< to give back; unused where the bytes are the map's
  };
  void plan(const std::vector<FilePart>& parts);
  void work();
  Piece read(const Job& job, std::byte* block) const;

  PageCache cache_;
  BlockPool pool_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Job> jobs_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Piece> ready_;  ///< by job
  std::size_t next_job_ = 0;            ///< that a thread takes
  std::size_t next_piece_ = 0;          ///< that the caller gets
  std::byte* lent_ = nullptr;           ///< block of the caller's piece
  bool stopping_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace megalith
