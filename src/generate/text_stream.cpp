#include "generate/text_stream.h"

#include <algorithm>
#include <utility>

namespace megalith {
namespace {

constexpr std::size_t longest_character = 4;
// Tokens that a token is decoded behind. Between half of them and all are kept.
constexpr std::size_t most_recent_tokens = 16;

// Bytes of the character that starts with this one; 1 for a byte that starts none.
std::size_t expected_length(unsigned char first) {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 1;
}

bool is_continuation(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

}  // namespace

std::size_t whole_characters(std::string_view text) {
  const std::size_t last = std::min(text.size(), longest_character - 1);
  for (std::size_t back = 1; back <= last; ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (is_continuation(byte)) continue;
    return expected_length(byte) > back ? text.size() - back : text.size();
  }
  return text.size();
}

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
                       std::span<const Token> context)
    : tokenizer_(tokenizer), stop_strings_(std::move(stop_strings)) {
  std::erase(stop_strings_, "");
  context = context.last(std::min(context.size(), most_recent_tokens / 2));
  recent_.assign(context.begin(), context.end());
  recent_text_ = tokenizer_.decode(recent_);
}

std::string TextStream::added_text(Token token) {
  if (recent_.size() == most_recent_tokens) {
    recent_.erase(recent_.begin(), recent_.begin() + most_recent_tokens / 2);
    recent_text_ = tokenizer_.decode(recent_);
  }
  recent_.push_back(token);
  const std::size_t before = recent_text_.size();
  recent_text_ = tokenizer_.decode(recent_);
  return recent_text_.substr(std::min(before, recent_text_.size()));
}

std::size_t TextStream::held_back() const {
  std::size_t held = 0;
  for (const std::string& stop : stop_strings_) {
    for (std::size_t length = std::min(stop.size() - 1, pending_.size()); length > held; --length) {
      if (pending_.ends_with(std::string_view(stop).substr(0, length))) {
        held = length;
        break;
      }
    }
  }
  return held;
}

std::string TextStream::push(Token token) {
  if (stopped_) return "";
  pending_ += added_text(token);
  std::size_t first_stop = std::string::npos;
  for (const std::string& stop : stop_strings_) first_stop = std::min(first_stop, pending_.find(stop));
  if (first_stop != std::string::npos) {
    stopped_ = true;
    return std::exchange(pending_, "").substr(0, first_stop);
  }
  const std::size_t ready = std::min(whole_characters(pending_), pending_.size() - held_back());
  // Holding back part of a stop string must not cut a character either.
  const std::size_t length = whole_characters(std::string_view(pending_).substr(0, ready));
  std::string text = pending_.substr(0, length);
  pending_.erase(0, length);
  return text;
}

std::string TextStream::finish() {
  std::string rest = std::exchange(pending_, "");
  rest.resize(whole_characters(rest));
  return rest;
}

}  // namespace megalith
