// tokenizer.json: any bytes give a tokenizer or an Error (input); what was read encodes and decodes, and is
// written so that it reads back the same.
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/bpe_files.h"
#include "data/bpe_tokenizer.h"

namespace {

// noexcept: from here on an Error is a failure too.
void check(const megalith::BpeVocabulary& vocabulary, std::string_view text) noexcept {
  using namespace megalith;
  static const CharacterClasses classes = CharacterClasses::load();
  const BpeVocabulary again = parse_tokenizer_json(tokenizer_json_text(vocabulary), "again");
  const BpeTokenizer tokenizer(vocabulary, classes);
  if (again.fingerprint() != tokenizer.fingerprint()) std::abort();
  if (tokenizer.decode(tokenizer.encode(text, true)) != text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace megalith;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const BpeVocabulary vocabulary = parse_tokenizer_json(text, "tokenizer.json");
    check(vocabulary, text);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
  }
  return 0;
}
