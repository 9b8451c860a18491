#include <filesystem>
#include <limits>
#include <system_error>

#include "core/error.h"
#include "data/indexed_dataset.h"

namespace megalith {
namespace {

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

std::int64_t largest_of(TokenStorage storage) {
  switch (storage) {
    case TokenStorage::uint8:
      return std::numeric_limits<std::uint8_t>::max();
    case TokenStorage::int8:
      return std::numeric_limits<std::int8_t>::max();
    case TokenStorage::int16:
      return std::numeric_limits<std::int16_t>::max();
    case TokenStorage::uint16:
      return std::numeric_limits<std::uint16_t>::max();
    case TokenStorage::int32:
    case TokenStorage::int64:
      return std::numeric_limits<std::int32_t>::max();
  }
  return 0;
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

}  // namespace

IndexedDatasetBuilder::IndexedDatasetBuilder(std::string_view prefix, TokenStorage storage, bool with_modes)
    : prefix_(dataset_prefix(prefix)), storage_(storage), with_modes_(with_modes) {
  const std::filesystem::path folder = std::filesystem::path(prefix_).parent_path();
  if (!folder.empty()) create_folders(folder);
  bin_ = std::make_unique<AtomicFile>(prefix_ + ".bin");
  idx_ = std::make_unique<AtomicFile>(prefix_ + ".idx");
}

void IndexedDatasetBuilder::add_sequence(std::span<const Token> tokens, std::int8_t mode) {
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail(ErrorKind::input, prefix_,
         "a sequence of {} tokens is too long: the format stores lengths in 32 bits", tokens.size());
  }
  const std::int64_t largest = largest_of(storage_);
  encoded_.clear();
  encoded_.reserve(tokens.size() * static_cast<std::size_t>(size_of(storage_)));
  for (const Token token : tokens) {
    if (token < 0 || token > largest) {
      fail(ErrorKind::input, prefix_, "token {} does not fit into {}; expected 0 to {}", token,
           name_of(storage_), largest);
    }
    switch (size_of(storage_)) {
      case 1:
        append(encoded_, static_cast<std::uint8_t>(token));
        break;
      case 2:
        append(encoded_, static_cast<std::uint16_t>(token));
        break;
      case 4:
        append(encoded_, std::int32_t{token});
        break;
      default:
        append(encoded_, std::int64_t{token});
    }
  }
  bin_->write(std::span<const std::byte>(encoded_));
  lengths_.push_back(static_cast<std::int32_t>(tokens.size()));
  if (with_modes_) modes_.push_back(mode);
  tokens_ += static_cast<std::int64_t>(tokens.size());
}

void IndexedDatasetBuilder::end_document() {
  ++documents_;
  if (!uneven_documents_) {
    if (documents_ == sequences()) return;
    uneven_documents_ = true;
    for (std::int64_t d = 1; d < documents_; ++d) document_ends_.push_back(d);
  }
  document_ends_.push_back(sequences());
}

void IndexedDatasetBuilder::write_index() {
  std::vector<std::byte> header;
  for (const char letter : std::string_view("MMIDIDX\0\0", 9)) append(header, letter);
  append(header, std::uint64_t{1});
  append(header, static_cast<std::uint8_t>(storage_));
  append(header, static_cast<std::uint64_t>(sequences()));
  append(header, static_cast<std::uint64_t>(documents_ + 1));
  idx_->write(std::span<const std::byte>(header));
  idx_->write(bytes_of(lengths_));

  std::vector<std::int64_t> block;
  constexpr std::size_t block_size = 1 << 16;
  const auto put = [&](std::int64_t value) {
    block.push_back(value);
    if (block.size() < block_size) return;
    idx_->write(bytes_of(block));
    block.clear();
  };
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths_) {
    put(offset);
    offset += std::int64_t{length} * size_of(storage_);
  }
  put(0);
  for (std::int64_t d = 1; d <= documents_; ++d) {
    put(uneven_documents_ ? document_ends_[static_cast<std::size_t>(d - 1)] : d);
  }
  idx_->write(bytes_of(block));
  if (with_modes_) idx_->write(bytes_of(modes_));
}

void IndexedDatasetBuilder::finish() {
  write_index();
  std::error_code ignored;
  if (std::filesystem::remove(prefix_ + ".idx", ignored)) {
    const std::filesystem::path folder = std::filesystem::path(prefix_).parent_path();
    sync_folder(folder.empty() ? std::filesystem::path(".") : folder);
  }
  bin_->commit();
  idx_->commit();
}

}  // namespace megalith
