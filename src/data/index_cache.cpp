#include "data/index_cache.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/hash.h"

namespace megalith {
namespace {

// Layout: magic, key, number of arrays, bytes of each array, then the arrays (each padded to 8 bytes), then a
// hash over all that stands before it.
constexpr std::string_view magic = "MEGAIDX1";

constexpr std::size_t slice_bytes = std::size_t{1} << 20;

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

}  // namespace

std::filesystem::path IndexCache::path_of(const std::string& kind, std::uint64_t key) const {
  return folder_ / format("{}-{:016x}.index", kind, key);
}

bool IndexCache::load(const std::string& kind, std::uint64_t key, std::size_t arrays, IndexArrays& result,
                      Log& log) const {
  if (folder_.empty()) return false;
  const std::filesystem::path path = path_of(kind, key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  const auto damaged = [&](std::string_view why) {
    log.warn(format("{}: the cached index is damaged ({}); it is built again", path.string(), why));
    return false;
  };
  IndexArrays found;
  try {
    found.file_ = MappedFile(path);
  } catch (const Error& error) {
    return damaged(error.what());
  }
  const std::span<const std::byte> bytes = found.file_.bytes();
  const std::size_t header = 24 + 8 * arrays;
  if (bytes.size() < header + 8) return damaged("too short");
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) return damaged("another format");
  if (word_at(bytes, 8) != key || word_at(bytes, 16) != arrays) return damaged("another index");
  std::size_t offset = header;
  for (std::size_t i = 0; i < arrays; ++i) {
    const std::uint64_t size = word_at(bytes, 24 + 8 * i);
    const std::size_t room = bytes.size() - 8 - offset;
    if (size > room || padded(size) > room) return damaged("truncated");
    found.arrays_.push_back(bytes.subspan(offset, size));
    offset += padded(size);
  }
  if (offset + 8 != bytes.size()) return damaged("wrong size");
  Hasher hasher;
  hasher.update(bytes.first(offset));
  if (hasher.value() != word_at(bytes, offset)) return damaged("its checksum does not match");
  result = std::move(found);
  return true;
}

void IndexCache::store(const std::string& kind, std::uint64_t key, const IndexArrays& arrays,
                       Log& log) const {
  if (folder_.empty()) return;
  const std::filesystem::path path = path_of(kind, key);
  try {
    create_folders(folder_);
    AtomicFile file(path);
    Hasher hasher;
    const auto put = [&](std::span<const std::byte> bytes) {
      hasher.update(bytes);
      // In slices, since the file's own buffer takes a whole piece.
      for (std::size_t done = 0; done < bytes.size(); done += slice_bytes) {
        file.write(bytes.subspan(done, std::min(slice_bytes, bytes.size() - done)));
      }
    };
    const auto put_word = [&](std::uint64_t word) { put(std::as_bytes(std::span(&word, 1))); };
    put(std::as_bytes(std::span(magic.data(), magic.size())));
    put_word(key);
    put_word(arrays.count());
    for (std::size_t i = 0; i < arrays.count(); ++i) put_word(arrays.bytes(i).size());
    for (std::size_t i = 0; i < arrays.count(); ++i) {
      const std::span<const std::byte> bytes = arrays.bytes(i);
      put(bytes);
      constexpr std::byte zeros[8] = {};
      put(std::span(zeros, padded(bytes.size()) - bytes.size()));
    }
    const std::uint64_t digest = hasher.value();
    file.write(std::as_bytes(std::span(&digest, 1)));
    file.commit();
  } catch (const Error& error) {
    log.warn(format("the sample index is not cached: {}", error.what()));
  }
}

}  // namespace megalith
