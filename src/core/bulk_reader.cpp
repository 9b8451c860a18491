#include "core/bulk_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace megalith {
namespace {

// As many reads under way as give a disk its full rate.
constexpr int reader_threads = 4;
constexpr std::uint64_t block_bytes = BlockPool::block_bytes;
constexpr std::uint64_t direct_alignment = 4096;

// Whether the page cache holds all pages of a range of a file's map. Where the system does not tell, it says
// yes or no wrongly and the bytes come by the slower way.
bool is_cached([[maybe_unused]] std::span<const std::byte> map, [[maybe_unused]] std::uint64_t begin,
               [[maybe_unused]] std::uint64_t end) {
#if defined(__linux__)
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = begin / page * page;
  std::vector<unsigned char> resident((end - first + page - 1) / page);
  // mincore() takes a pointer to memory it does not change.
  auto* const address = const_cast<std::byte*>(map.data() + first);
  if (::mincore(address, end - first, resident.data()) != 0) return false;
  return std::all_of(resident.begin(), resident.end(), [](unsigned char flags) { return (flags & 1U) != 0; });
#else
  return false;
#endif
}

}  // namespace

/// One file, opened once however many parts it has.
struct BulkReader::Source {
  Source(const FilePart& part, PageCache cache) : path(part.path.string()), map(part.map) {
    constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
#if defined(O_DIRECT)
    if (cache == PageCache::bypass) {
      descriptor = ::open(path.c_str(), flags | O_DIRECT);
      is_direct = descriptor >= 0;
    }
#endif
    if (descriptor < 0) descriptor = ::open(path.c_str(), flags);
    if (descriptor < 0) {
      fail(ErrorKind::input, path, "cannot open this file: {}", std::generic_category().message(errno));
    }
  }
  ~Source() { ::close(descriptor); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Fills `block` from `begin`, which is aligned, up to `end` or to the end of the file. Returns the bytes.
  std::uint64_t read(std::byte* block, std::uint64_t begin, std::uint64_t end) {
    std::uint64_t done = 0;
    while (begin + done < end) {
      std::uint64_t asked = end - begin - done;
      if (is_direct) asked = (asked + direct_alignment - 1) / direct_alignment * direct_alignment;
      const ssize_t got = ::pread(descriptor, block + done, asked, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
#if defined(O_DIRECT)
      if (got < 0 && errno == EINVAL && is_direct) {
        ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_DIRECT);
        is_direct = false;
        continue;
      }
#endif
      if (got < 0) fail(ErrorKind::input, path, "cannot read: {}", std::generic_category().message(errno));
      if (got == 0) break;
      done += static_cast<std::uint64_t>(got);
    }
    return done;
  }

  std::string path;
  std::span<const std::byte> map;
  int descriptor = -1;
  std::atomic<bool> is_direct{false};
};

BulkReader::BulkReader(const std::vector<FilePart>& parts, PageCache cache) : cache_(cache) {
  plan(parts);
  if (jobs_.empty()) return;
  for (int i = 0; i < reader_threads; ++i) threads_.emplace_back([this] { work(); });
}

BulkReader::~BulkReader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    // A thread may be waiting for a block; those that nobody will fetch are enough for all.
    for (const auto& [number, piece] : ready_) pool_.give_back(piece.block);
  }
  if (lent_ != nullptr) pool_.give_back(std::exchange(lent_, nullptr));
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// Cuts the parts into jobs at multiples of the block size, so that reads are aligned.
void BulkReader::plan(const std::vector<FilePart>& parts) {
  std::map<std::filesystem::path, Source*> opened;
  for (const FilePart& part : parts) {
    MEGALITH_ASSERT(part.begin <= part.end && part.end <= part.map.size(), "a part outside its file");
    if (part.begin == part.end) continue;
    Source*& source = opened[part.path];
    if (source == nullptr) {
      sources_.push_back(std::make_unique<Source>(part, cache_));
      source = sources_.back().get();
    }
    for (std::uint64_t begin = part.begin; begin < part.end;) {
      const std::uint64_t end = std::min(part.end, (begin / block_bytes + 1) * block_bytes);
      jobs_.push_back({source, begin, end});
      begin = end;
    }
  }
}

BulkReader::Piece BulkReader::read(const Job& job, std::byte* block) const {
  Source& source = *job.source;
  if (is_cached(source.map, job.begin, job.end))
    return {source.map.subspan(job.begin, job.end - job.begin), block};
  const std::uint64_t aligned = job.begin / direct_alignment * direct_alignment;
  const std::uint64_t got = source.read(block, aligned, job.end);
  if (got < job.end - aligned) {
    fail(ErrorKind::input, source.path, "ends at byte {}, it had {} bytes when it was opened", aligned + got,
         source.map.size());
  }
  return {{block + (job.begin - aligned), job.end - job.begin}, block};
}

void BulkReader::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_ && !error_ && next_job_ < jobs_.size()) {
    // The block comes before the job's number: the piece that the caller waits for always has one.
    lock.unlock();
    std::byte* const block = pool_.take();
    lock.lock();
    if (stopping_ || error_ || next_job_ == jobs_.size()) {
      pool_.give_back(block);
      return;
    }
    const std::size_t number = next_job_++;
    lock.unlock();
    Piece piece{{}, block};
    std::exception_ptr error;
    try {
      piece = read(jobs_[number], block);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    ready_.emplace(number, piece);
    changed_.notify_all();
  }
}

std::span<const std::byte> BulkReader::next() {
  if (lent_ != nullptr) pool_.give_back(std::exchange(lent_, nullptr));
  if (next_piece_ == jobs_.size()) return {};
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return error_ != nullptr || ready_.contains(next_piece_); });
  if (error_) std::rethrow_exception(error_);
  const Piece piece = ready_.extract(next_piece_++).mapped();
  lent_ = piece.block;
  return piece.bytes;
}

}  // namespace megalith
