// The content of a byte-level BPE tokenizer, however it is stored: pieces by token number, merges by rank,
// added tokens. Readers and the trainer make it, writers and BpeTokenizer use it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "data/bpe_bytes.h"
#include "data/tokenizer.h"

namespace megalith {

/// `left` followed by `right` becomes `result`; its place in the list is its rank, lowest first.
struct BpeMerge {
  Token left;
  Token right;
  Token result;
};

/// A text that is one token wherever it stands, cut out before pre-tokenization.
struct AddedToken {
  std::string content;
  Token token;
  bool special;            ///< recognised only on request
  bool normalized = true;  ///< Hugging Face's flag: looked for after those that are not
};

/// How a piece is written in files: absent numbers are holes in the vocabulary.
enum class PieceKind : std::uint8_t {
  absent,
  byte_level,  ///< in GPT-2's byte alphabet
  literal,     ///< as it is: added tokens and pieces outside the alphabet
};

struct BpeVocabulary {
  std::vector<std::string> pieces;  ///< bytes of each token number
  std::vector<PieceKind> kinds;     ///< one a piece
  std::vector<BpeMerge> merges;
  std::vector<AddedToken> added;
  std::array<Token, 256> byte_tokens{};
  Token eod = -1;
  bool ignore_merges = false;  ///< a word that is a piece is that token, whatever the merges say

  /// Hexadecimal hash over all of the above but `normalized`.
  std::string fingerprint() const;
  /// The piece as the files write it.
  std::string file_text(Token token, const ByteAlphabet& alphabet) const;
};

/// Collects and checks what a file says; `place` is its name for messages. All functions raise Error (input)
/// where the content does not make a byte-level BPE tokenizer.
class BpeVocabularyBuilder {
 public:
  /// `entries` bounds what will be added: token numbers may reach four times that (and 4,096), so that a
  /// small damaged file cannot ask for much memory.
  BpeVocabularyBuilder(std::string place, std::size_t entries);

  /// `text` in the byte alphabet, or any other text.
  void add_piece(std::string_view text, std::int64_t token);
  void add_merge(std::string_view left, std::string_view right);
  /// Call after all pieces. `token` may be a piece's number if that piece is the same text.
  void add_token(AddedToken added, std::int64_t token);
  /// Number of the piece or added token with this content, -1 where there is none.
  Token find(const std::string& content) const;
  /// Checks that every byte has its token, and fills in eod: `<|endoftext|>`, else `eod_content`, else -1.
  BpeVocabulary finish(const std::string& eod_content = {});

  BpeVocabulary& vocabulary() { return vocabulary_; }

 private:
  Token piece_token(std::string_view text, std::string_view what) const;

  std::string place_;
  std::int64_t number_limit_;
  ByteAlphabet alphabet_;
  BpeVocabulary vocabulary_;
  std::unordered_set<Token> added_;
  std::unordered_map<std::string, Token> token_of_text_;
};

/// Token numbers at and above this are refused.
inline constexpr std::int64_t token_number_limit = std::int64_t{1} << 22;
/// The longest added token in bytes; what bounds the search for them.
inline constexpr std::size_t added_token_limit = 1024;
inline constexpr std::string_view end_of_text = "<|endoftext|>";

}  // namespace megalith
