#include "data/text_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/format.h"
#include "data/json_document.h"
#include "tests/data/support/dataset_files.h"

#ifdef MEGALITH_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef MEGALITH_HAVE_ZSTD
#include <zstd.h>
#endif

namespace megalith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& action, ErrorKind kind = ErrorKind::input) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

class TextReaderTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) {
    test::spill(folder_ / name, content);
    return folder_ / name;
  }
  /// "LINE:TEXT" of every document.
  static std::vector<std::string> documents(const std::vector<std::string>& files,
                                            const TextReaderOptions& options = {}) {
    TextReader reader(files, options);
    TextBatch batch;
    std::vector<std::string> result;
    while (reader.next(batch)) {
      EXPECT_FALSE(batch.pieces.empty());
      for (const TextBatch::Piece& piece : batch.pieces) {
        result.push_back(format("{}:{}", piece.line, batch.text(piece)));
      }
    }
    EXPECT_EQ(reader.consumed_bytes(), reader.total_bytes());
    return result;
  }
  test::TemporaryFolder folder_;
};

TEST_F(TextReaderTest, JsonLinesAreDocuments) {
  EXPECT_THAT(documents({file("a.jsonl", "\xef\xbb\xbf{1}\r\n\n  \n{2}\n{3}")}),
              ElementsAre("1:{1}", "4:{2}", "5:{3}"));
}

TEST_F(TextReaderTest, PlainTextIsCutAsAsked) {
  const std::string path = file("a.txt", "one\ntwo\r\n\n \nthree\n\n\nfour");
  TextReaderOptions options;
  EXPECT_THAT(documents({path}), ElementsAre("1:one\ntwo\r\n\n \nthree\n\n\nfour"));
  options.sample_by = SampleBy::paragraph;
  EXPECT_THAT(documents({path}, options), ElementsAre("1:one\ntwo", "5:three", "8:four"));
  options.sample_by = SampleBy::line;
  EXPECT_THAT(documents({path}, options), ElementsAre("1:one", "2:two", "5:three", "8:four"));
}

TEST_F(TextReaderTest, SmallBatchesGiveTheSameDocuments) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += std::string(static_cast<std::size_t>(i * 37 % 900), 'x') + (i % 3 == 0 ? "\n\n" : "\n");
  const std::string path = file("a.txt", text);
  for (const SampleBy by : {SampleBy::paragraph, SampleBy::line}) {
    TextReaderOptions options;
    options.sample_by = by;
    const std::vector<std::string> whole = documents({path, path}, options);
    EXPECT_GT(whole.size(), 1500U);
    options.batch_bytes = 1;
    EXPECT_EQ(documents({path, path}, options), whole);
  }
}

TEST_F(TextReaderTest, TheFormatIsFoundByNameOrFirstCharacter) {
  const auto is_json = [&](const std::string& path, TextFormat format = TextFormat::automatic) {
    TextReaderOptions options;
    options.format = format;
    TextReader reader({path}, options);
    TextBatch batch;
    EXPECT_TRUE(reader.next(batch));
    return batch.json;
  };
  EXPECT_TRUE(is_json(file("a.json", "text")));
  EXPECT_FALSE(is_json(file("a.txt", "{}")));
  EXPECT_TRUE(is_json(file("a.data", "\n {}")));
  EXPECT_FALSE(is_json(file("b.data", "text {}")));
  EXPECT_TRUE(is_json(folder_ / "b.data", TextFormat::json_lines));
  EXPECT_FALSE(is_json(folder_ / "a.data", TextFormat::plain));
}

TEST_F(TextReaderTest, EmptyFilesGiveNothing) {
  EXPECT_THAT(documents({file("a.txt", ""), file("b.jsonl", "\n\n"), file("c.txt", " \n")}), ElementsAre());
}

TEST_F(TextReaderTest, LongDocumentsAreRefusedWithFileAndLine) {
  TextReaderOptions options;
  options.max_document_bytes = 100;
  const std::string json = file("a.jsonl", "{}\n{}\n" + std::string(1 << 20, 'x') + "\n{}\n");
  EXPECT_THAT(error_of([&] { documents({json}, options); }), HasSubstr("a.jsonl:3: "));
  const std::string text =
      file("a.txt", "short\n\n" + std::string(60, 'x') + "\n" + std::string(60, 'y') + "\n");
  EXPECT_THAT(error_of([&] { documents({text}, options); }),
              testing::AllOf(HasSubstr("a.txt:1: "), HasSubstr("paragraph")));
  options.sample_by = SampleBy::paragraph;
  EXPECT_THAT(error_of([&] { documents({text}, options); }), HasSubstr("a.txt:3: "));
  options.sample_by = SampleBy::line;
  EXPECT_EQ(documents({text}, options).size(), 3U);
}

TEST_F(TextReaderTest, MissingAndUnreadableFilesAreNamed) {
  EXPECT_THAT(error_of([&] { documents({folder_ / "none"}); }), HasSubstr("none"));
  EXPECT_THAT(error_of([&] { documents({folder_.path().string()}); }), HasSubstr("folder"));
  EXPECT_THAT(error_of([&] {
                documents({file("a.xz", std::string("\xfd"
                                                    "7zXZ\0",
                                                    6))});
              }),
              HasSubstr("xz -dk"));
  EXPECT_THAT(error_of([&] { expand_patterns({folder_ / "*.none"}); }), HasSubstr("matches no file"));
  file("b1", "x");
  file("b2", "x");
  EXPECT_THAT(expand_patterns({folder_ / "b*"}), ElementsAre(folder_ / "b1", folder_ / "b2"));
}

/// Every prefix of a compressed file and every damaged byte give an error or the true beginning, never a
/// crash.
void abuse(const std::string& path, const std::string& compressed, const std::function<void()>& read) {
  for (std::size_t size = 5; size < compressed.size(); ++size) {
    test::spill(path, compressed.substr(0, size));
    EXPECT_THAT(error_of(read), HasSubstr(path));
  }
  for (std::size_t i = 4; i < compressed.size(); ++i) {
    std::string changed = compressed;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    test::spill(path, changed);
    try {
      read();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
}

#ifdef MEGALITH_HAVE_ZLIB
std::string gzipped(const std::string& text) {
  z_stream state{};
  EXPECT_EQ(deflateInit2(&state, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 1000, '\0');
  std::string in = text;
  state.next_in = reinterpret_cast<Bytef*>(in.data());
  state.avail_in = static_cast<uInt>(in.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - state.avail_out);
  deflateEnd(&state);
  return out;
}

TEST_F(TextReaderTest, GzipIsReadByItsFirstBytes) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += format("{{\"text\": \"line {}\"}}\n", i);
  const std::vector<std::string> expected = documents({file("a.jsonl", text)});
  EXPECT_EQ(documents({file("b.jsonl", gzipped(text))}), expected);
  EXPECT_EQ(documents({file("c.json.gz", gzipped(text.substr(0, 1001)) + gzipped(text.substr(1001)) +
                                             std::string(512, '\0'))}),
            expected);
  const std::string small = gzipped("{\"text\": \"some words\"}\n");
  abuse(folder_ / "d.gz", small, [&] { documents({folder_ / "d.gz"}); });
}
#endif

#ifdef MEGALITH_HAVE_ZSTD
std::string zstandard(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST_F(TextReaderTest, ZstdIsReadByItsFirstBytes) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += format("{{\"text\": \"line {}\"}}\n", i);
  const std::vector<std::string> expected = documents({file("a.jsonl", text)});
  EXPECT_EQ(documents({file("b.jsonl", zstandard(text))}), expected);
  EXPECT_EQ(documents({file("c.jsonl.zst", zstandard(text.substr(0, 1001)) + zstandard(text.substr(1001)))}),
            expected);
  abuse(folder_ / "d.zst", zstandard("{\"text\": \"some words\"}\n"),
        [&] { documents({folder_ / "d.zst"}); });
}
#endif

TEST_F(TextReaderTest, TextThatIsNoUtf8TextIsRefused) {
  const std::string marked = std::string("\xff\xfe", 2) + std::string("a\0b\0", 4);
  EXPECT_THAT(error_of([&] { documents({file("a.txt", marked)}); }), HasSubstr("UTF-16"));
  EXPECT_THAT(error_of([&] { documents({file("b.jsonl", marked)}); }), HasSubstr("UTF-16"));
  TextReaderOptions options;
  for (const SampleBy by : {SampleBy::document, SampleBy::paragraph, SampleBy::line}) {
    options.sample_by = by;
    EXPECT_THAT(
        error_of([&] { documents({file("c.txt", std::string("one\n\ntwo\nab\0c\n", 14))}, options); }),
        testing::AllOf(HasSubstr("c.txt:4:3: "), HasSubstr("zero byte")));
  }
}

const std::vector<std::string> text_key = {"text"};

std::vector<std::string> texts(std::string_view json, InvalidUtf8 invalid = InvalidUtf8::refuse) {
  JsonTexts reader(text_key, invalid);
  const std::vector<std::string_view>& found = reader.read(json, "f.jsonl", 7).front();
  return {found.begin(), found.end()};
}

TEST(JsonDocument, GivesTheTextsOfTheKeys) {
  EXPECT_THAT(texts(R"({"id": [1, {"a": null}], "text": "a\u00e9\n\ud83d\ude00"})"), ElementsAre("aé\n😀"));
  EXPECT_THAT(texts(R"({"text": ["a", "", "b"]})"), ElementsAre("a", "", "b"));
  const std::vector<std::string> keys = {"b", "a"};
  JsonTexts reader(keys);
  EXPECT_THAT(reader.read(R"({"a": "1", "b": "2"})", "f", 1),
              ElementsAre(ElementsAre("2"), ElementsAre("1")));
  EXPECT_THAT(
      reader.read(R"({"b": ["\u00e9", "x"], "c": {"a": "no"}, "a": "a longer text than before"})", "f", 2),
      ElementsAre(ElementsAre("é", "x"), ElementsAre("a longer text than before")))
      << "the same object reads the next line";
}

TEST(JsonDocument, TheLastOfEqualKeysCounts) {
  EXPECT_THAT(texts(R"({"text": 5, "text": ["x", "y"], "te\u0078t": "z"})"), ElementsAre("z"));
  EXPECT_THAT(error_of([] { texts(R"({"text": "a", "text": [1]})"); }), HasSubstr("f.jsonl:7:24: "));
}

TEST(JsonDocument, EscapesAndLongTextsAreReadWhole) {
  EXPECT_THAT(texts(R"({"text": "\"\\\/\b\f\n\r\t\u0041\u07ff\uffff\uD83D\uDE00"})"),
              ElementsAre("\"\\/\b\f\n\r\tA\u07ff\uffff😀"));
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string plain(length, 'x');
    for (const std::string special : {"é", "日", "😀", "\x7f"}) {
      EXPECT_THAT(texts(format("{{\"text\":\"{0}{1}{0}\"}}", plain, special)),
                  ElementsAre(format("{0}{1}{0}", plain, special)));
    }
    EXPECT_THAT(texts(format("{{\"text\":\"{0}\\\"{0}\"}}", plain)), ElementsAre(format("{0}\"{0}", plain)));
  }
}

TEST(JsonDocument, FaultsAreNamedWithFileLineAndColumn) {
  EXPECT_THAT(error_of([] { texts(R"({"text": "a)"); }), HasSubstr("f.jsonl:7:12: "));
  EXPECT_THAT(error_of([] { texts(R"({"text": tru})"); }), HasSubstr("f.jsonl:7:13: "));
  EXPECT_THAT(error_of([] { texts("{} x"); }), HasSubstr("f.jsonl:7:4: "));
  EXPECT_THAT(error_of([] { texts("plain"); }), HasSubstr("f.jsonl:7:1: "));
  EXPECT_THAT(error_of([] { texts(R"({"text": "a", })"); }), HasSubstr("f.jsonl:7:15: "));
  EXPECT_THAT(error_of([] { texts(R"({"text" "a"})"); }),
              testing::AllOf(HasSubstr("f.jsonl:7:9: "), HasSubstr("':' after the key")));
  EXPECT_THAT(error_of([] { texts(R"({"n": [1, 02], "text": "a"})"); }), HasSubstr("f.jsonl:7:12: "));
  EXPECT_THAT(error_of([] { texts(R"({"n": [{"m": -}], "text": "a"})"); }), HasSubstr("f.jsonl:7:15: "));
  EXPECT_THAT(error_of([] { texts("{\"text\": \"a\tb\"}"); }),
              testing::AllOf(HasSubstr("f.jsonl:7:12: "), HasSubstr("\\u0009")));
  EXPECT_THAT(error_of([] { texts(R"({"text": "a\q"})"); }), HasSubstr("f.jsonl:7:12: "));
  EXPECT_THAT(error_of([] { texts(R"({"text": "a\u12g4"})"); }), HasSubstr("f.jsonl:7:12: "));
  EXPECT_THAT(error_of([] { texts("[1]"); }), HasSubstr("holds a JSON array"));
  EXPECT_THAT(error_of([] { texts(R"({"content": "a"})"); }),
              testing::AllOf(HasSubstr("no key \"text\""), HasSubstr("content")));
  EXPECT_THAT(error_of([] { texts(R"({"text": 5})"); }), HasSubstr("holds a number"));
  EXPECT_THAT(error_of([] { texts(R"({"text": ["a", null]})"); }), HasSubstr("holds a null"));
  EXPECT_THAT(error_of([] { texts(std::string(100000, '[')); }), HasSubstr("f.jsonl:7:"));
  EXPECT_THAT(error_of([] { texts("{\"text\": 1e999999}"); }), HasSubstr("f.jsonl:7:"));
}

TEST(JsonDocument, InvalidTextIsRefusedOrReplaced) {
  for (const std::string bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82",
                                "\\ud800", "\\udc00x", "\\ud800\\u0041"}) {
    const std::string json = "{\"text\": \"" + bad + "\"}";
    EXPECT_THAT(error_of([&] { texts(json); }),
                testing::AllOf(HasSubstr("f.jsonl:7:"), HasSubstr("--invalid-utf8")))
        << json;
    EXPECT_THAT(texts(json, InvalidUtf8::replace), ElementsAre(HasSubstr("\xef\xbf\xbd"))) << json;
  }
  EXPECT_THAT(texts("{\"text\": \"\\\\ud800 \\ud83d\\ude00 \xf0\x9f\x98\x80\"}", InvalidUtf8::replace),
              ElementsAre("\\ud800 😀 😀"));
}

}  // namespace
}  // namespace megalith
