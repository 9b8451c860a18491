// Turns a growing row of tokens into text that can be shown: whole UTF-8 characters only, cut before a stop
// string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace megalith {

class TextStream {
 public:
  /// `tokenizer` outlives the stream. Empty stop strings are ignored.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings);

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

  const Tokenizer& tokenizer_;
  std::vector<std::string> stop_strings_;
  std::string pending_;
  bool stopped_ = false;
};

/// Length of the longest prefix of `text` that ends between characters. An incomplete character at the end is
/// left out; a byte that can never become a character counts as one.
std::size_t whole_characters(std::string_view text);

}  // namespace megalith
