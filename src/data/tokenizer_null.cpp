#include "data/tokenizer_null.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/error.h"

namespace megalith {

NullTokenizer::NullTokenizer(std::int64_t vocab_size) : vocab_size_(vocab_size) {
  if (vocab_size < 1 || vocab_size > std::numeric_limits<Token>::max()) {
    fail(ErrorKind::usage, "tokenizer_type", "NullTokenizer needs --vocab-size, 1 ... {}; it is {}",
         std::numeric_limits<Token>::max(), vocab_size);
  }
}

void NullTokenizer::check(std::int64_t token) const {
  if (token < 0 || token >= vocab_size_) {
    fail(ErrorKind::input, "tokenizer", "token {} is not in NullTokenizer's vocabulary of 0 ... {}", token,
         vocab_size_ - 1);
  }
}

std::vector<Token> NullTokenizer::encode(std::string_view text, bool /*parse_special*/) const {
  constexpr std::string_view white_space = " \t\r\n";
  std::vector<Token> tokens;
  for (std::size_t place = text.find_first_not_of(white_space); place != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(white_space, place), text.size());
    const std::string_view word = text.substr(place, end - place);
    std::int64_t token = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc{} || stop != word.data() + word.size()) {
      fail(ErrorKind::input, "tokenizer",
           "'{}' at byte {} is no number; NullTokenizer reads token numbers in decimal", word.substr(0, 40),
           place);
    }
    check(token);
    tokens.push_back(static_cast<Token>(token));
    place = text.find_first_not_of(white_space, end);
  }
  return tokens;
}

std::string NullTokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) {
    check(token);
    if (!text.empty()) text += ' ';
    text += std::to_string(token);
  }
  return text;
}

std::string NullTokenizer::piece(Token token) const {
  check(token);
  return std::to_string(token);
}

std::string NullTokenizer::fingerprint() const {
  return format("null{}", vocab_size_);
}

}  // namespace megalith
