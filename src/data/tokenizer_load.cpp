#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "data/bpe_files.h"
#include "data/bpe_tokenizer.h"
#include "data/tokenizer.h"
#include "data/tokenizer_null.h"

namespace megalith {
namespace {

constexpr std::string_view known_types = "GPT2BPETokenizer, HuggingFaceTokenizer and NullTokenizer";

/// Megatron-LM's other types.
constexpr std::array<std::string_view, 14> foreign_types = {
    "BertWordPieceLowerCase", "BertWordPieceCase",  "SentencePieceTokenizer", "GPTSentencePieceTokenizer",
    "Llama2Tokenizer",        "TikTokenizer",       "MultimodalTokenizer",    "NullMultimodalTokenizer",
    "SFTTokenizer",           "ByteLevelTokenizer", "MegatronTokenizer",      "Llama3Tokenizer",
    "MistralTokenizer",       "NullSFTTokenizer",
};

std::unique_ptr<Tokenizer> load_gpt2(const TokenizerOptions& options) {
  if (options.vocab_file.empty() || options.merge_file.empty()) {
    fail(ErrorKind::usage, "tokenizer_type",
         "GPT2BPETokenizer needs --vocab-file (vocab.json) and --merge-file "
         "(merges.txt); {} not given",
         options.vocab_file.empty() ? (options.merge_file.empty() ? "both are" : "--vocab-file is")
                                    : "--merge-file is");
  }
  return std::make_unique<BpeTokenizer>(
      parse_vocab_and_merges(read_file(options.vocab_file, tokenizer_file_limit),
                             read_file(options.merge_file, tokenizer_file_limit), options.vocab_file,
                             options.merge_file),
      CharacterClasses::load());
}

std::unique_ptr<Tokenizer> load_hugging_face(const TokenizerOptions& options) {
  if (options.tokenizer_model.empty()) {
    fail(ErrorKind::usage, "tokenizer_type",
         "HuggingFaceTokenizer needs --tokenizer-model: a tokenizer.json or the folder that holds it (names "
         "of models "
         "on the network are not looked up)");
  }
  std::filesystem::path file = options.tokenizer_model;
  std::error_code code;
  if (std::filesystem::is_directory(file, code)) file /= "tokenizer.json";
  std::string eod_content;
  const std::filesystem::path config = file.parent_path() / "tokenizer_config.json";
  if (std::filesystem::is_regular_file(config, code)) {
    eod_content = parse_eos_token(read_file(config, tokenizer_file_limit), config.string());
  }
  return std::make_unique<BpeTokenizer>(
      parse_tokenizer_json(read_file(file, tokenizer_file_limit), file.string(), eod_content),
      CharacterClasses::load());
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const TokenizerOptions& options) {
  const std::string& type = options.tokenizer_type;
  if (type == "GPT2BPETokenizer") return load_gpt2(options);
  if (type == "HuggingFaceTokenizer") return load_hugging_face(options);
  if (type == "NullTokenizer") return std::make_unique<NullTokenizer>(options.vocab_size);
  if (type.empty()) {
    fail(ErrorKind::usage, "tokenizer_type", "no tokenizer is named; give --tokenizer-type: {}", known_types);
  }
  if (std::find(foreign_types.begin(), foreign_types.end(), type) != foreign_types.end()) {
    fail(ErrorKind::usage, "tokenizer_type",
         "{} is a tokenizer of Megatron-LM's that Megalith does not read yet; it reads {} (a byte-level BPE "
         "tokenizer.json goes with HuggingFaceTokenizer)",
         type, known_types);
  }
  fail(ErrorKind::usage, "tokenizer_type", "'{}' is unknown; choose one of {}", type, known_types);
}

}  // namespace megalith
