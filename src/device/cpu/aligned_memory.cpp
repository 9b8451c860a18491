#include "device/cpu/aligned_memory.h"

#include <cstddef>
#include <limits>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/error.h"

namespace megalith {

namespace {

constexpr std::size_t vector_alignment = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t huge_page_threshold = huge_page;

}  // namespace

void AlignedMemoryDeleter::operator()(std::byte* block) const {
  ::operator delete(block, std::align_val_t{alignment});
}

AlignedMemory allocate_aligned(std::size_t bytes) {
  const std::size_t alignment = bytes >= huge_page_threshold ? huge_page : vector_alignment;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
    fail(ErrorKind::environment, "cpu device", "cannot allocate {} bytes; a size was computed wrongly",
         bytes);
  }
  // Whole cache lines, so that no two blocks share one.
  const std::size_t size =
      bytes == 0 ? vector_alignment : (bytes + vector_alignment - 1) / vector_alignment * vector_alignment;
  void* block = ::operator new(size, std::align_val_t{alignment}, std::nothrow);
  if (block == nullptr) {
    fail(ErrorKind::environment, "cpu device",
         "cannot allocate {} bytes ({:.1f} MiB); use a smaller micro batch size or model, or free memory",
         bytes, static_cast<double>(bytes) / 1048576.0);
  }
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (alignment == huge_page) {
    // Only advice: without huge pages the memory works all the same.
    static_cast<void>(madvise(block, size / huge_page * huge_page, MADV_HUGEPAGE));
  }
#endif
  return AlignedMemory(static_cast<std::byte*>(block), AlignedMemoryDeleter{alignment});
}

}  // namespace megalith
