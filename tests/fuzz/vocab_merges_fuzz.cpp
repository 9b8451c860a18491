// vocab.json and merges.txt, in one input with a zero byte between: any bytes give a tokenizer or an Error
// (input), and what was read encodes and decodes.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/bpe_files.h"
#include "data/bpe_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace megalith;
  static const CharacterClasses classes = CharacterClasses::load();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(text.find('\0'), size);
  const std::string_view merges = cut < size ? text.substr(cut + 1) : std::string_view();
  try {
    const BpeTokenizer tokenizer(
        parse_vocab_and_merges(text.substr(0, cut), merges, "vocab.json", "merges.txt"), classes);
    if (tokenizer.decode(tokenizer.encode(text, true)) != text) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
  }
  return 0;
}
