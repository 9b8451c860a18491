// Megatron-LM's NullTokenizer: the text is token numbers in decimal, with white space between.
#pragma once

#include "data/tokenizer.h"

namespace megalith {

class NullTokenizer final : public Tokenizer {
 public:
  /// Numbers 0 ... vocab_size - 1.
  explicit NullTokenizer(std::int64_t vocab_size);

  /// Raises Error (input) for anything but numbers of the vocabulary.
  std::vector<Token> encode(std::string_view text, bool parse_special = false) const override;
  std::string decode(std::span<const Token> tokens) const override;
  std::int64_t vocab_size() const override { return vocab_size_; }
  Token eod() const override { return -1; }
  std::string piece(Token token) const override;
  std::string fingerprint() const override;

 private:
  void check(std::int64_t token) const;

  std::int64_t vocab_size_;
};

}  // namespace megalith
