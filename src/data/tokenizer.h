// Tokenizer: text to token numbers and back. Implementations stand beside this header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

using Token = std::int32_t;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Token numbers of `text`. Any bytes are accepted; invalid UTF-8 survives a round trip unchanged. Special
  /// tokens written out in the text are recognised only with `parse_special`. Thread-safe.
  virtual std::vector<Token> encode(std::string_view text, bool parse_special = false) const = 0;
  /// The same without special tokens, behind what `tokens` holds: for many texts in a row. Thread-safe.
  virtual void append(std::string_view text, std::vector<Token>& tokens) const {
    const std::vector<Token> more = encode(text);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  /// The bytes of the tokens. Raises Error (input) for a number outside the vocabulary. Thread-safe.
  virtual std::string decode(std::span<const Token> tokens) const = 0;
  /// Largest token number + 1.
  virtual std::int64_t vocab_size() const = 0;
  /// The end-of-document token ("<|endoftext|>"), -1 where there is none.
  virtual Token eod() const = 0;
  /// Readable form of one token, for listings.
  virtual std::string piece(Token token) const = 0;
  /// Hexadecimal hash over vocabulary, merges and special tokens: equal means equal behaviour.
  virtual std::string fingerprint() const = 0;
};

/// Megatron's tokenizer flags.
struct TokenizerOptions {
  std::string tokenizer_type{};   ///< GPT2BPETokenizer, HuggingFaceTokenizer, NullTokenizer
  std::string vocab_file{};       ///< vocab.json
  std::string merge_file{};       ///< merges.txt
  std::string tokenizer_model{};  ///< tokenizer.json, or the folder that holds it
  std::int64_t vocab_size = 0;    ///< NullTokenizer: numbers 0 ... vocab_size - 1, text is their decimal form
};

/// Raises Error (usage) for an unknown or refused type and for missing flags, (input) for damaged files.
std::unique_ptr<Tokenizer> load_tokenizer(const TokenizerOptions& options);

}  // namespace megalith
