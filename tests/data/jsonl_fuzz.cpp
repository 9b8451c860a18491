// Text files: format, decompression, cutting into documents, JSON. The first byte chooses the options. Where
// a general JSON library accepts a line, the texts must be those it finds; where not, the line must be
// refused.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/json_document.h"
#include "data/text_reader.h"
#include "tests/data/support/fuzz_folder.h"

namespace {

/// The texts of key "text", nothing where the line has none or is not JSON.
std::optional<std::vector<std::string>> texts_by_library(std::string_view line) {
  using nlohmann::json;
  const json value = json::parse(line.begin(), line.end(), nullptr, false);
  if (!value.is_object() || !value.contains("text")) return std::nullopt;
  const json& text = value["text"];
  if (text.is_string()) return std::vector<std::string>{text.get<std::string>()};
  if (!text.is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const json& element : text) {
    if (!element.is_string()) return std::nullopt;
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

void compare_with_library(megalith::JsonTexts& json, std::string_view line) {
  // The library takes a zero byte for the end of the line, and refuses numbers that a double cannot hold.
  if (line.find('\0') != std::string_view::npos || line.size() > 300) return;
  for (std::size_t i = 1; i < line.size(); ++i) {
    const bool exponent = line[i] == 'e' || line[i] == 'E';
    if (exponent && line[i - 1] >= '0' && line[i - 1] <= '9') return;
  }
  std::optional<std::vector<std::string>> ours;
  try {
    const std::vector<std::string_view>& texts = json.read(line, "f", 1).front();
    ours.emplace(texts.begin(), texts.end());
  } catch (const megalith::Error&) {
  }
  if (ours != texts_by_library(line)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace megalith;
  if (size < 1) return 0;
  static const test::FuzzFolder folder;
  const std::string path = folder / "fuzz";
  test::FuzzFolder::write(path, {reinterpret_cast<const char*>(data) + 1, size - 1});
  TextReaderOptions options;
  options.format = static_cast<TextFormat>(data[0] % 3);
  options.sample_by = static_cast<SampleBy>(data[0] / 3 % 3);
  options.batch_bytes = data[0] / 9 % 2 == 0 ? 16 : 1 << 20;
  options.max_document_bytes = data[0] / 18 % 2 == 0 ? 100 : 1 << 24;
  const InvalidUtf8 invalid = data[0] / 36 % 2 == 0 ? InvalidUtf8::refuse : InvalidUtf8::replace;
  const std::string keys[] = {"text"};
  JsonTexts json(keys, invalid);
  JsonTexts strict_json(keys);
  try {
    TextReader reader({path}, options);
    TextBatch batch;
    while (reader.next(batch)) {
      for (const TextBatch::Piece& piece : batch.pieces) {
        if (piece.end < piece.begin || piece.end > batch.bytes.size()) __builtin_trap();
        if (piece.end - piece.begin > options.max_document_bytes) __builtin_trap();
        if (!batch.json) continue;
        compare_with_library(strict_json, batch.text(piece));
        try {
          json.read(batch.text(piece), path, piece.line);
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::input) __builtin_trap();
          // Replacing makes every line valid UTF-8.
          if (invalid == InvalidUtf8::replace &&
              std::string(error.what()).find("UTF-8") != std::string::npos) {
            __builtin_trap();
          }
        }
      }
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) __builtin_trap();
  }
  return 0;
}
