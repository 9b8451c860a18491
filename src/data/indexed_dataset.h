// Token files of Megatron-LM: PREFIX.bin holds the tokens, PREFIX.idx where each sequence lies and where
// documents begin. docs/data.md has the layout byte by byte. Both files are treated as hostile: nothing is
// read before it was checked against the size of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"
#include "data/tokenizer.h"

namespace megalith {

/// How a token is stored in .bin; the values are the codes in .idx. Codes 6 and 7 (floating point) are
/// refused.
enum class TokenStorage : std::uint8_t { uint8 = 1, int8 = 2, int16 = 3, int32 = 4, int64 = 5, uint16 = 8 };

/// Bytes of one stored token.
std::int64_t size_of(TokenStorage storage);
/// "uint16", "int32", ...
std::string_view name_of(TokenStorage storage);
/// uint16 below 65,500 token numbers, else int32: Megatron-LM's rule.
TokenStorage storage_for_vocabulary(std::int64_t vocab_size);
/// "PREFIX" from "PREFIX", "PREFIX.bin" or "PREFIX.idx".
std::string dataset_prefix(std::string_view path);

/// What verify() found.
struct IndexedDatasetReport {
  std::vector<std::string> problems;  ///< one line each, with file and place; empty: the files are sound
  std::uint64_t problem_count = 0;    ///< may exceed problems.size(): only the first few are worded
  std::vector<std::string> notes;     ///< odd, but readable
  std::int64_t tokens = 0;
  std::int64_t smallest_token = 0;
  std::int64_t largest_token = 0;
};

/// Reads a pair of files through memory maps. All members are const and thread-safe.
class IndexedDataset {
 public:
  /// Opens PREFIX.bin and PREFIX.idx and checks header and sizes, in constant time. Raises Error (input).
  explicit IndexedDataset(std::string_view path);

  const std::string& prefix() const { return prefix_; }
  TokenStorage storage() const { return storage_; }
  std::int64_t sequences() const { return sequences_; }
  /// Entries of the document index less one: empty documents are counted.
  std::int64_t documents() const { return documents_; }
  bool has_modes() const { return modes_ != nullptr; }
  std::uint64_t bin_bytes() const { return bin_.bytes().size(); }
  std::uint64_t idx_bytes() const { return idx_.bytes().size(); }

  /// Tokens of a sequence. Raises Error (input) where the stored length is negative.
  std::int64_t length(std::int64_t sequence) const;
  /// Byte offset of a sequence in .bin, as stored.
  std::int64_t offset(std::int64_t sequence) const;
  /// Entry `index` of the document index, 0 ... documents(): the first sequence of that document, as stored.
  std::int64_t document_start(std::int64_t index) const;
  std::int8_t mode(std::int64_t sequence) const;

  /// Reads tokens [begin, begin + tokens.size()) of a sequence. Raises Error (input) where the sequence lies
  /// outside of the file or a token is negative or, with `vocab_size` above 0, not below it.
  void read(std::int64_t sequence, std::int64_t begin, std::span<Token> tokens,
            std::int64_t vocab_size = 0) const;
  /// The whole sequence.
  std::vector<Token> read(std::int64_t sequence, std::int64_t vocab_size = 0) const;

  /// Sum of the lengths of sequences [begin, end). Raises Error (input) where one lies outside of the .bin
  /// file or together they are longer than it, so that what is sized by the sum is bounded by the file.
  std::int64_t count_tokens(std::int64_t begin, std::int64_t end) const;
  /// Hash over lengths, offsets and sizes: what the sample order depends on.
  std::uint64_t fingerprint() const;
  /// Reads everything and reports all damage, wording at most `limit` problems.
  IndexedDatasetReport verify(std::int64_t vocab_size, std::size_t limit = 20) const;

 private:
  const std::byte* token_address(std::int64_t sequence, std::int64_t begin, std::int64_t count) const;

  std::string prefix_;
  MappedFile idx_;
  MappedFile bin_;
  TokenStorage storage_ = TokenStorage::int32;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
  const std::byte* lengths_ = nullptr;
  const std::byte* offsets_ = nullptr;
  const std::byte* document_index_ = nullptr;
  const std::byte* modes_ = nullptr;
};

/// Writes a pair of files byte-compatible with Megatron-LM's. Both appear only in finish(): .bin first, .idx
/// last, and an older .idx of the same name goes before either, so that no moment shows a pair that looks
/// whole and is not. Memory: 4 bytes a sequence, and 8 a document once a document has other than one
/// sequence.
class IndexedDatasetBuilder {
 public:
  /// `with_modes`: the file gets a mode byte for each sequence (multimodal files).
  IndexedDatasetBuilder(std::string_view prefix, TokenStorage storage, bool with_modes = false);

  /// Adds one sequence to the open document. Raises Error (input) for a token that the storage cannot hold.
  void add_sequence(std::span<const Token> tokens, std::int8_t mode = 0);
  /// Closes the open document, which may be empty.
  void end_document();
  void finish();

  std::int64_t sequences() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t documents() const { return documents_; }
  std::int64_t tokens() const { return tokens_; }
  std::uint64_t bytes() const { return bin_->size(); }

 private:
  void write_index();

  std::string prefix_;
  TokenStorage storage_;
  bool with_modes_;
  std::unique_ptr<AtomicFile> bin_;
  std::unique_ptr<AtomicFile> idx_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int8_t> modes_;
  std::vector<std::int64_t> document_ends_;  ///< used once `uneven_documents_`
  bool uneven_documents_ = false;
  std::int64_t documents_ = 0;
  std::int64_t tokens_ = 0;
  std::vector<std::byte> encoded_;
};

}  // namespace megalith
