// Text files: format, decompression, cutting into documents, JSON. The first byte chooses the options.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "data/json_document.h"
#include "data/text_reader.h"
#include "tests/data/support/fuzz_folder.h"

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
  try {
    TextReader reader({path}, options);
    TextBatch batch;
    while (reader.next(batch)) {
      for (const TextBatch::Piece& piece : batch.pieces) {
        if (piece.end < piece.begin || piece.end > batch.bytes.size()) __builtin_trap();
        if (piece.end - piece.begin > options.max_document_bytes) __builtin_trap();
        if (!batch.json) continue;
        try {
          texts_of_json_line(batch.text(piece), keys, path, piece.line, invalid);
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
