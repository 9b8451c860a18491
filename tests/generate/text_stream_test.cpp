#include "generate/text_stream.h"

#include <gtest/gtest.h>

#include "data/tokenizer_null.h"

namespace megalith {
namespace {

// One token a byte.
class ByteTokenizer : public Tokenizer {
 public:
  std::vector<Token> encode(std::string_view text, bool) const override {
    std::vector<Token> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  std::string decode(std::span<const Token> tokens) const override {
    std::string text;
    for (const Token token : tokens) text.push_back(static_cast<char>(token));
    return text;
  }
  std::int64_t vocab_size() const override { return 256; }
  Token eod() const override { return -1; }
  std::string piece(Token token) const override { return decode(std::span(&token, 1)); }
  std::string fingerprint() const override { return "bytes"; }
};

std::vector<std::string> pushed(std::string_view text, std::vector<std::string> stops,
                                bool* stopped = nullptr) {
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, std::move(stops));
  std::vector<std::string> parts;
  for (const Token token : tokenizer.encode(text, false)) parts.push_back(stream.push(token));
  if (stopped != nullptr) *stopped = stream.stopped();
  parts.push_back(stream.finish());
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

TEST(TextStream, NeverShowsHalfACharacter) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
  const std::vector<std::string> parts = pushed(text, {});
  EXPECT_EQ(joined(parts), text);
  for (const std::string& part : parts) {
    EXPECT_EQ(whole_characters(part), part.size());
    if (part.empty()) continue;
    EXPECT_NE(static_cast<unsigned char>(part[0]) & 0xc0, 0x80) << part;
  }
}

TEST(TextStream, BytesThatAreNoTextPassUnchanged) {
  const std::string text = "\xff\x80\x80\x80\x80q\xe2\x82!";
  EXPECT_EQ(joined(pushed(text, {})), text);
}

TEST(TextStream, ACharacterThatWasNeverFinishedIsLeftOut) {
  for (const std::string half : {"\xe2\x82", "\xf0\x9f\x98", "\xc3"}) {
    EXPECT_EQ(joined(pushed("ab" + half, {})), "ab");
    EXPECT_EQ(joined(pushed("ab" + half, {"c"})), "ab");
  }
  EXPECT_EQ(joined(pushed("ab\xff", {})), "ab\xff") << "no character starts so";
}

TEST(TextStream, StopsBeforeTheStopString) {
  bool stopped = false;
  EXPECT_EQ(joined(pushed("one END two", {"END"}, &stopped)), "one ");
  EXPECT_TRUE(stopped);
  EXPECT_EQ(joined(pushed("one EN two", {"END"}, &stopped)), "one EN two");
  EXPECT_FALSE(stopped);
  EXPECT_EQ(joined(pushed("aab!", {"ab", "b!"}, &stopped)), "a");
  EXPECT_TRUE(stopped);
}

TEST(TextStream, NothingOfAStopStringIsShownEarly) {
  const std::vector<std::string> parts = pushed("xxSTO", {"STOP"});
  EXPECT_EQ(joined({parts.begin(), parts.end() - 1}), "xx");
  EXPECT_EQ(parts.back(), "STO");
}

TEST(TextStream, ATokenIsDecodedBehindThoseBefore) {
  const NullTokenizer tokenizer(1000);
  const auto streamed = [&](std::span<const Token> context, std::span<const Token> tokens,
                            std::vector<std::string> stops = {}) {
    TextStream stream(tokenizer, std::move(stops), context);
    std::string text;
    for (const Token token : tokens) text += stream.push(token);
    return text + stream.finish();
  };
  std::vector<Token> tokens;
  for (Token token = 0; token < 50; ++token) tokens.push_back(token * 17);
  EXPECT_EQ(streamed({}, tokens), tokenizer.decode(tokens));
  for (const std::size_t prompt : {1U, 7U, 8U, 9U, 40U}) {
    const std::span<const Token> all(tokens);
    EXPECT_EQ(tokenizer.decode(all.first(prompt)) + streamed(all.first(prompt), all.subspan(prompt)),
              tokenizer.decode(tokens));
  }
  EXPECT_EQ(streamed({}, tokens, {"34 51"}), "0 17 ");
}

TEST(TextStream, EmptyStopStringsAreIgnored) {
  EXPECT_EQ(joined(pushed("abc", {""})), "abc");
}

}  // namespace
}  // namespace megalith
