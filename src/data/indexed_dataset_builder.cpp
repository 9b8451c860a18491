#include <algorithm>
#include <cstring>
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

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

/// The tokens as T in `bytes`; false where one does not fit.
template <typename T>
bool encode_tokens(std::span<const Token> tokens, std::vector<std::byte>& bytes) {
  bytes.resize(tokens.size() * sizeof(T));
  bool fits = true;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token token = tokens[i];
    const auto stored = static_cast<T>(token);
    fits &= token >= 0 && static_cast<Token>(stored) == token;
    std::memcpy(bytes.data() + i * sizeof(T), &stored, sizeof(T));
  }
  return fits;
}

bool encode_as(TokenStorage storage, std::span<const Token> tokens, std::vector<std::byte>& bytes) {
  switch (storage) {
    case TokenStorage::uint8:
      return encode_tokens<std::uint8_t>(tokens, bytes);
    case TokenStorage::int8:
      return encode_tokens<std::int8_t>(tokens, bytes);
    case TokenStorage::int16:
      return encode_tokens<std::int16_t>(tokens, bytes);
    case TokenStorage::uint16:
      return encode_tokens<std::uint16_t>(tokens, bytes);
    case TokenStorage::int32:
      return encode_tokens<std::int32_t>(tokens, bytes);
    case TokenStorage::int64:
      return encode_tokens<std::int64_t>(tokens, bytes);
  }
  return false;
}

std::int64_t largest_of(TokenStorage storage) {
  const std::int64_t bits = size_of(storage) * 8;
  const bool is_unsigned = storage == TokenStorage::uint8 || storage == TokenStorage::uint16;
  return (std::int64_t{1} << std::min<std::int64_t>(is_unsigned ? bits : bits - 1, 31)) - 1;
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
  if (!encode_as(storage_, tokens, encoded_)) {
    const std::int64_t largest = largest_of(storage_);
    const auto wrong =
        std::find_if(tokens.begin(), tokens.end(), [&](Token token) { return token < 0 || token > largest; });
    fail(ErrorKind::input, prefix_, "token {} does not fit into {}; expected 0 to {}", *wrong,
         name_of(storage_), largest);
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
