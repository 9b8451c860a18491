// Strict mode's memory. One memfd is mapped twice: the first mapping never has access rights and its
// addresses are what tensors carry; the second is where kernels work. (Changing one mapping's rights around
// each kernel would not do: rights belong to the process, and other ranks are threads of it.)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <system_error>
#include <unordered_map>

#include "device/reference/memory.h"

namespace megalith::reference {
namespace {

// Address space, not memory: pages are taken when a block is.
constexpr std::size_t range_bytes = std::size_t{64} << 30;
constexpr std::size_t alignment = 64;

[[noreturn]] void system_refused(const char* call, const char* what) {
  fail(ErrorKind::environment, "device reference, strict",
       "{} for {} failed: {}; run without strict mode, or raise the limit on address space or memory", call,
       what, std::error_code(errno, std::generic_category()).message());
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

class FileDescriptor {
 public:
  FileDescriptor() : number_(memfd_create("megalith-strict", MFD_CLOEXEC)) {
    if (number_ < 0) system_refused("memfd_create", "device memory");
  }
  ~FileDescriptor() { close(number_); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

/// A view of the whole file, at first without rights.
class Mapping {
 public:
  explicit Mapping(int file)
      : start_(mmap(nullptr, range_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0)) {
    if (start_ == MAP_FAILED) system_refused("mmap", "device memory");
  }
  ~Mapping() { munmap(start_, range_bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(start_) + offset; }
  std::uintptr_t start() const { return reinterpret_cast<std::uintptr_t>(start_); }

 private:
  void* start_;
};

class StrictMemory final : public Memory {
 public:
  StrictMemory() : addresses_(sized(file_)), contents_(file_.number()) { free_.emplace(0, range_bytes); }

  DeviceAddress allocate(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const auto refuse = [&](std::string_view why) {
      fail(ErrorKind::environment, "device reference, strict",
           "no room for {} bytes beside the {} in use ({}); use a smaller model or micro batch", bytes,
           allocated_, why);
    };
    if (bytes > range_bytes) refuse("the range holds 64 GiB");
    const std::size_t padded = round_up(std::max<std::size_t>(bytes, 1), alignment);
    const std::size_t pages = round_up(padded, page_);
    const std::size_t span = pages + page_;  // and a guard page behind it
    const auto gap =
        std::find_if(free_.begin(), free_.end(), [&](const auto& free) { return free.second >= span; });
    if (gap == free_.end()) refuse("the range holds 64 GiB");
    const std::size_t offset = gap->first;
    // Takes the pages now: without them a kernel would be killed by SIGBUS later.
    if (fallocate(file_.number(), 0, static_cast<off_t>(offset), static_cast<off_t>(pages)) != 0) {
      refuse(std::error_code(errno, std::generic_category()).message());
    }
    if (mprotect(contents_.at(offset), pages, PROT_READ | PROT_WRITE) != 0) {
      const int error = errno;
      give_back_pages(offset, pages);
      refuse(std::error_code(error, std::generic_category()).message());
    }
    take(gap, span);
    // All bits set is NaN in every float type and -1 in every integer: reading memory nobody wrote shows.
    std::memset(contents_.at(offset), 0xff, pages);
    // The block ends where the guard page begins.
    const std::size_t start = offset + pages - padded;
    const DeviceAddress address{addresses_.start() + start};
    blocks_.emplace(address.value, Block{offset, pages, bytes});
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    return address;
  }

  void release(DeviceAddress address) override {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address.value);
    MEGALITH_ASSERT(found != blocks_.end(), format("no block begins at {:#x}", address.value));
    const Block block = found->second;
    blocks_.erase(found);
    allocated_ -= block.bytes;
    mprotect(contents_.at(block.offset), block.pages, PROT_NONE);
    give_back_pages(block.offset, block.pages);
    return_gap(block.offset, block.pages + page_);
  }

  std::size_t allocated_bytes() const override {
    const std::lock_guard lock(mutex_);
    return allocated_;
  }
  std::size_t peak_bytes() const override {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  HostView view() const override {
    return HostView(static_cast<std::intptr_t>(contents_.start() - addresses_.start()));
  }

 private:
  struct Block {
    std::size_t offset;
    std::size_t pages;
    std::size_t bytes;
  };
  using Gaps = std::map<std::size_t, std::size_t>;  ///< offset -> length of what is free

  static int sized(const FileDescriptor& file) {
    if (ftruncate(file.number(), static_cast<off_t>(range_bytes)) != 0) {
      system_refused("ftruncate", "device memory");
    }
    return file.number();
  }
  void give_back_pages(std::size_t offset, std::size_t pages) const {
    fallocate(file_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(pages));
  }
  void take(Gaps::iterator gap, std::size_t span) {
    const auto [offset, length] = *gap;
    free_.erase(gap);
    if (length > span) free_.emplace(offset + span, length - span);
  }
  void return_gap(std::size_t offset, std::size_t length) {
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + length == next->first) {
      length += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        previous->second += length;
        return;
      }
    }
    free_.emplace(offset, length);
  }

  mutable std::mutex mutex_;
  std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  FileDescriptor file_;
  Mapping addresses_;
  Mapping contents_;
  Gaps free_;
  std::unordered_map<std::uintptr_t, Block> blocks_;
  std::size_t allocated_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace

std::unique_ptr<Memory> make_strict_memory() {
  return std::make_unique<StrictMemory>();
}

}  // namespace megalith::reference
