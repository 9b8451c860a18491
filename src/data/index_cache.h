// Arrays that took long to compute, kept in a file of their own, named by a hash of all they depend on and
// checksummed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/files.h"
#include "core/log.h"

namespace megalith {

/// A few arrays, in memory or mapped from a cache file. Move-only.
class IndexArrays {
 public:
  IndexArrays() = default;

  /// Allocates one more array and gives it for filling.
  template <typename T>
  std::span<T> allocate(std::size_t count) {
    owned_.emplace_back(count * sizeof(T));
    arrays_.emplace_back(owned_.back());
    return {reinterpret_cast<T*>(owned_.back().data()), count};
  }
  template <typename T>
  std::span<const T> get(std::size_t index) const {
    const std::span<const std::byte> bytes = arrays_.at(index);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::size_t count() const { return arrays_.size(); }
  std::span<const std::byte> bytes(std::size_t index) const { return arrays_.at(index); }

 private:
  friend class IndexCache;

  MappedFile file_;
  std::vector<std::vector<std::byte>> owned_;
  std::vector<std::span<const std::byte>> arrays_;
};

class IndexCache {
 public:
  /// Files go into `folder`, which is made when first needed. An empty folder: nothing is kept.
  explicit IndexCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Maps KIND-KEY.index. Gives false where it does not exist, and with a note where it is damaged.
  bool load(const std::string& kind, std::uint64_t key, std::size_t arrays, IndexArrays& result,
            Log& log) const;
  /// Writes KIND-KEY.index; the file appears whole or not at all. A folder that cannot be written gives a
  /// note only.
  void store(const std::string& kind, std::uint64_t key, const IndexArrays& arrays, Log& log) const;

 private:
  std::filesystem::path path_of(const std::string& kind, std::uint64_t key) const;

  std::filesystem::path folder_;
};

}  // namespace megalith
