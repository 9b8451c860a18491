#include "cli/disk_yardstick.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "core/block_pool.h"
#include "core/error.h"

namespace megalith {
namespace {

constexpr std::size_t block_bytes = BlockPool::block_bytes;

#if defined(O_DIRECT)
constexpr int direct_flag = O_DIRECT;
#else
constexpr int direct_flag = 0;
#endif

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Bytes that no disk compresses.
void fill_block(std::byte* block, std::uint64_t seed) {
  for (std::size_t i = 0; i < block_bytes; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    block[i] = static_cast<std::byte>(seed >> 56U);
  }
}

class File {
 public:
  File(const std::filesystem::path& path, int flags, const DiskWay& way)
      : place_(path.string()),
        descriptor_(::open(path.c_str(), flags | O_CLOEXEC | (way.is_direct ? direct_flag : 0), 0644)) {
    if (descriptor_ < 0 && !(way.is_direct && errno == EINVAL)) raise("cannot open");
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  [[noreturn]] void raise(const char* what) const {
    fail(ErrorKind::environment, place_, "{}: {}", what, std::generic_category().message(errno));
  }

 private:
  std::string place_;
  int descriptor_;
};

// Calls move(block, offset) for every block of the file on way.under_way threads; false ends it.
template <typename Move>
bool move_blocks(std::uint64_t bytes, const DiskWay& way, const Move& move) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> is_well{true};
  BlockPool pool;
  std::vector<std::byte*> blocks;
  for (int i = 0; i < way.under_way; ++i) {
    blocks.push_back(pool.take());
    fill_block(blocks.back(), static_cast<std::uint64_t>(i) + 1);
  }
  std::vector<std::jthread> threads;
  for (std::byte* const data : blocks) {
    threads.emplace_back([&, data] {
      for (std::uint64_t offset = next.fetch_add(block_bytes); offset < bytes && is_well;
           offset = next.fetch_add(block_bytes)) {
        if (!move(data, offset)) is_well = false;
      }
    });
  }
  threads.clear();
  return is_well;
}

}  // namespace

std::string name_of(const DiskWay& way) {
  return format("{} the page cache, {} block{} at once", way.is_direct ? "past" : "through", way.under_way,
                way.under_way == 1 ? "" : "s");
}

double seconds_to_write(const std::filesystem::path& path, std::uint64_t bytes, const DiskWay& way) {
  const double begin = now_seconds();
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC, way);
  if (!file.is_open()) return -1;
#if defined(__linux__)
  // Reserving room lets several blocks be under way; a file system that cannot writes without it.
  if (::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0 && errno == ENOSPC)
    file.raise("cannot reserve room");
#endif
  const bool is_well = move_blocks(bytes, way, [&](const std::byte* block, std::uint64_t offset) {
    return ::pwrite(file.get(), block, block_bytes, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(block_bytes);
  });
  if (!is_well || ::fsync(file.get()) != 0) file.raise("cannot write");
  return now_seconds() - begin;
}

double seconds_to_read(const std::filesystem::path& path, const DiskWay& way) {
  drop_from_cache(path);
  const std::uint64_t bytes = std::filesystem::file_size(path);
  const double begin = now_seconds();
  const File file(path, O_RDONLY, way);
  if (!file.is_open()) return -1;
  const bool is_well = move_blocks(bytes, way, [&](std::byte* block, std::uint64_t offset) {
    return ::pread(file.get(), block, block_bytes, static_cast<off_t>(offset)) > 0;
  });
  if (!is_well) file.raise("cannot read");
  return now_seconds() - begin;
}

void drop_from_cache(const std::filesystem::path& path) {
  const File file(path, O_RDONLY, {});
  // Dirty pages stay, so they go to the disk first.
  ::fsync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace megalith
