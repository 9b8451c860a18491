// Turns a growing row of tokens into text that can be shown: whole UTF-8 characters only, cut before a stop
// string. What a token adds may depend on those before it (a blank between words, say), so it is decoded
// behind some of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace megalith {

class TextStream {
 public:
  /// `tokenizer` outlives the stream. `context` are the tokens that the text continues; their own text is not
  /// given out. Empty stop strings are ignored.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
             std::span<const Token> context = {});

  /// Adds a token and returns the text that is now certain: complete characters that cannot be the beginning
  /// of a stop string. Returns nothing more once stopped() is true.
  std::string push(Token token);
  /// The rest, at the end. A character whose last bytes never came is left out; bytes that can never form one
  /// are kept as they are.
  std::string finish();
  /// A stop string has appeared; it and what follows is not shown.
  bool stopped() const { return stopped_; }

 private:
  std::size_t held_back() const;
  /// What the token adds to the text.
  std::string added_text(Token token);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stop_strings_;
  std::vector<Token> recent_;  ///< the last tokens, and their text
  std::string recent_text_;
  std::string pending_;
  bool stopped_ = false;
};

/// Length of the longest prefix of `text` that ends between characters. An incomplete character at the end is
/// left out; a byte that can never become a character counts as one.
std::size_t whole_characters(std::string_view text);

}  // namespace megalith
