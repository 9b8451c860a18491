#include "core/bulk_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/thread_cost.h"

namespace megalith {
namespace {

// As many writes under way as give a disk its full rate.
constexpr int writer_threads = 4;
// A multiple of every common disk's sector.
constexpr std::size_t direct_alignment = 4096;

std::string reason(int code) {
  return std::generic_category().message(code);
}

}  // namespace

/// One output file. Only its creation and its end are serial; blocks go to their places in any order.
struct BulkWriter::File {
  File(const std::filesystem::path& file_path, std::uint64_t file_bytes)
      : path(file_path.string()), bytes(file_bytes) {
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
#if defined(O_DIRECT)
    descriptor = ::open(path.c_str(), flags | O_DIRECT, 0644);
    is_direct = descriptor >= 0;
    if (descriptor < 0 && errno == EINVAL)
#endif
      descriptor = ::open(path.c_str(), flags, 0644);
    if (descriptor < 0) fail(ErrorKind::environment, path, "cannot create this file: {}", reason(errno));
    reserve();
  }
  ~File() {
    if (descriptor >= 0) ::close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // A disk without room says so now, not after gigabytes.
  void reserve() const {
#if defined(__linux__)
    int code = 0;
    do {
      code = bytes == 0 || ::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
    } while (code == EINTR);
    if (code == ENOSPC || code == EFBIG || code == EDQUOT)
      fail(ErrorKind::environment, path, "no room for its {} bytes: {}", bytes, reason(code));
#endif
  }

  void write(std::byte* block, std::uint64_t offset, std::size_t length) {
    std::size_t done = 0;
    while (done < length) {
      std::size_t asked = length - done;
      if (is_direct) {
        // The last block reaches past the end of the file, which is cut afterwards.
        const std::size_t whole = (asked + direct_alignment - 1) / direct_alignment * direct_alignment;
        std::memset(block + done + asked, 0, whole - asked);
        asked = whole;
      }
      const ssize_t put = ::pwrite(descriptor, block + done, asked, static_cast<off_t>(offset + done));
      if (put < 0 && errno == EINTR) continue;
#if defined(O_DIRECT)
      if (put < 0 && errno == EINVAL && is_direct) {
        ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_DIRECT);
        is_direct = false;
        continue;
      }
#endif
      if (put <= 0) {
        fail(ErrorKind::environment, path, "cannot write at byte {}: {}", offset + done,
             put < 0 ? reason(errno) : "the system took no byte");
      }
      done += static_cast<std::size_t>(put);
    }
  }

  void finish() {
    if (::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
      fail(ErrorKind::environment, path, "cannot set its length: {}", reason(errno));
    if (::fsync(descriptor) != 0)
      fail(ErrorKind::environment, path, "cannot flush to disk: {}", reason(errno));
    if (::close(std::exchange(descriptor, -1)) != 0)
      fail(ErrorKind::environment, path, "cannot close: {}", reason(errno));
  }

  std::string path;
  std::uint64_t bytes;
  int descriptor = -1;
  std::atomic<bool> is_direct{false};
  std::size_t outstanding = 0;  ///< jobs, under the writer's mutex
  bool is_ended = false;        ///< likewise
};

BulkWriter::BulkWriter(BlockPool& pool, int lower_priority) : pool_(pool) {
  for (int i = 0; i < writer_threads; ++i)
    threads_.emplace_back([this, lower_priority] { work(lower_priority); });
}

BulkWriter::~BulkWriter() {
  {
    const std::lock_guard lock(mutex_);
    for (const Job& job : jobs_) {
      if (job.block != nullptr) pool_.give_back(job.block);
    }
    jobs_.clear();
  }
  stop();
  if (block_ != nullptr) pool_.give_back(block_);
}

void BulkWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  jobs_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void BulkWriter::begin_file(const std::filesystem::path& path, std::uint64_t bytes) {
  files_.push_back(std::make_unique<File>(path, bytes));
  position_ = 0;
}

std::span<std::byte> BulkWriter::space() {
  if (block_ == nullptr) {
    {
      const std::lock_guard lock(mutex_);
      if (error_) std::rethrow_exception(error_);
    }
    block_ = pool_.take();
    filled_ = 0;
  }
  const std::uint64_t left = files_.back()->bytes - position_;
  return {block_ + filled_, std::min<std::size_t>(BlockPool::block_bytes - filled_, left)};
}

void BulkWriter::advance(std::size_t bytes) {
  filled_ += bytes;
  position_ += bytes;
  if (filled_ == BlockPool::block_bytes) {
    enqueue({files_.back().get(), std::exchange(block_, nullptr), position_ - filled_, filled_, false});
  }
}

void BulkWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> to = space();
    MEGALITH_ASSERT(!to.empty(), "more bytes than the file was begun with");
    const std::size_t part = std::min(to.size(), bytes.size());
    std::memcpy(to.data(), bytes.data(), part);
    advance(part);
    bytes = bytes.subspan(part);
  }
}

void BulkWriter::end_file() {
  File& file = *files_.back();
  MEGALITH_ASSERT(position_ == file.bytes,
                  format("{} bytes written to a file begun with {}", position_, file.bytes));
  // A job without a block where the last one has gone already: some job must find that the file has ended.
  if (block_ == nullptr) filled_ = 0;
  if (block_ != nullptr && filled_ == 0) pool_.give_back(std::exchange(block_, nullptr));
  enqueue({&file, std::exchange(block_, nullptr), position_ - filled_, filled_, true});
}

void BulkWriter::finish() {
  stop();
  if (error_) std::rethrow_exception(error_);
}

double BulkWriter::processor_seconds() const {
  const std::lock_guard lock(mutex_);
  return processor_seconds_;
}

void BulkWriter::enqueue(const Job& job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    ++job.file->outstanding;
    if (job.is_last) job.file->is_ended = true;
  }
  jobs_changed_.notify_one();
}

void BulkWriter::work(int lower_priority) {
  if (lower_priority > 0) lower_thread_priority(lower_priority);
  std::unique_lock lock(mutex_);
  while (true) {
    jobs_changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) break;
    const Job job = jobs_.front();
    jobs_.pop_front();
    const bool has_failed = error_ != nullptr;
    lock.unlock();
    // After an error blocks are only given back, so that the caller does not wait for one for ever.
    std::exception_ptr error;
    try {
      if (!has_failed) run(job);
    } catch (...) {
      error = std::current_exception();
    }
    if (job.block != nullptr) pool_.give_back(job.block);
    lock.lock();
    if (error && !error_) error_ = error;
  }
  processor_seconds_ += thread_processor_seconds();
}

void BulkWriter::run(const Job& job) {
  if (job.block != nullptr) job.file->write(job.block, job.offset, job.bytes);
  bool is_whole = false;
  {
    const std::lock_guard lock(mutex_);
    is_whole = --job.file->outstanding == 0 && job.file->is_ended;
  }
  if (is_whole) job.file->finish();
}

}  // namespace megalith
