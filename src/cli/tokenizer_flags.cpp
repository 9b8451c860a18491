#include "cli/tokenizer_flags.h"

#include <array>
#include <cstdio>

#include "core/error.h"
#include "core/files.h"

namespace megalith {

void declare_tokenizer_flags(Schema& schema, TokenizerOptions& options) {
  schema.section("tokenizer", "Which tokenizer");
  schema
      .add("tokenizer_type", &options.tokenizer_type, std::string(),
           "kind of tokenizer, as Megatron-LM names them")
      .metavar("TYPE")
      .default_text("GPT2BPETokenizer with --vocab-file, HuggingFaceTokenizer with --tokenizer-model");
  schema.add("vocab_file", &options.vocab_file, std::string(), "vocab.json of a GPT2BPETokenizer")
      .metavar("FILE")
      .completes_file();
  schema.add("merge_file", &options.merge_file, std::string(), "merges.txt of a GPT2BPETokenizer")
      .metavar("FILE")
      .completes_file();
  schema
      .add("tokenizer_model", &options.tokenizer_model, std::string(),
           "tokenizer.json of a HuggingFaceTokenizer, or the folder that holds it")
      .metavar("PATH")
      .completes_file();
  schema
      .add("vocab_size", &options.vocab_size, std::int64_t{0},
           "numbers of a NullTokenizer; without a tokenizer, what token numbers are checked against")
      .at_least(0);
}

bool names_tokenizer(const TokenizerOptions& options) {
  return !options.tokenizer_type.empty() || !options.vocab_file.empty() || !options.merge_file.empty() ||
         !options.tokenizer_model.empty();
}

TokenizerOptions with_tokenizer_type(TokenizerOptions options) {
  if (options.tokenizer_type.empty()) {
    const bool pair = !options.vocab_file.empty() || !options.merge_file.empty();
    if (pair && !options.tokenizer_model.empty()) {
      fail(ErrorKind::usage, "tokenizer_type",
           "both --vocab-file or --merge-file and --tokenizer-model are given; say which with "
           "--tokenizer-type");
    }
    if (pair) options.tokenizer_type = "GPT2BPETokenizer";
    if (!options.tokenizer_model.empty()) options.tokenizer_type = "HuggingFaceTokenizer";
  }
  return options;
}

std::unique_ptr<Tokenizer> load_chosen_tokenizer(TokenizerOptions options) {
  return load_tokenizer(with_tokenizer_type(std::move(options)));
}

std::string read_all(const std::string& path) {
  if (path != "-") return read_file(path);
  std::string bytes;
  std::array<char, 65536> block;  // NOLINT: filled by fread
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), stdin))
    bytes.append(block.data(), got);
  if (std::ferror(stdin) != 0) fail(ErrorKind::input, "standard input", "cannot be read to its end");
  return bytes;
}

void write_all(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  } else {
    write_file_atomically(path, bytes);
  }
}

}  // namespace megalith
