#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>

#include "device/reference/memory.h"

namespace megalith::reference {
namespace {

constexpr std::align_val_t alignment{64};

struct AlignedDelete {
  void operator()(std::byte* block) const { ::operator delete(block, alignment); }
};

// Some allocators end the process rather than refuse, so what cannot fit is refused before they are asked.
std::size_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return static_cast<std::size_t>(-1) / 2;
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
}

class PlainMemory final : public Memory {
 public:
  DeviceAddress allocate(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const std::size_t present = physical_bytes();
    if (bytes > present) {
      fail(ErrorKind::environment, "device reference",
           "{} bytes were asked for, this machine has {} bytes of memory; use a smaller model or micro batch",
           bytes, present);
    }
    std::unique_ptr<std::byte, AlignedDelete> memory(
        static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), alignment, std::nothrow)));
    if (!memory) {
      fail(ErrorKind::environment, "device reference",
           "no room for {} bytes beside the {} in use; use a smaller model or micro batch", bytes,
           allocated_);
    }
    const DeviceAddress address{reinterpret_cast<std::uintptr_t>(memory.get())};
    blocks_.emplace(address.value, Block{std::move(memory), bytes});
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    return address;
  }

  void release(DeviceAddress address) override {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(address.value);
    MEGALITH_ASSERT(block != blocks_.end(), format("no block begins at {:#x}", address.value));
    allocated_ -= block->second.bytes;
    blocks_.erase(block);
  }

  std::size_t allocated_bytes() const override {
    const std::lock_guard lock(mutex_);
    return allocated_;
  }
  std::size_t peak_bytes() const override {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  HostView view() const override { return HostView(0); }

 private:
  struct Block {
    std::unique_ptr<std::byte, AlignedDelete> memory;
    std::size_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::uintptr_t, Block> blocks_;
  std::size_t allocated_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace

std::unique_ptr<Memory> make_plain_memory() {
  return std::make_unique<PlainMemory>();
}

}  // namespace megalith::reference
