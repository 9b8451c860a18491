// Reading and writing byte-level BPE tokenizers: GPT-2's pair of vocab.json and merges.txt, and Hugging
// Face's tokenizer.json. Readers take the text, so that tests and fuzzers need no files; `name` is for
// messages.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/bpe_vocabulary.h"

namespace megalith {

/// `<|endoftext|>` becomes a special token where vocab.json has it. Raises Error (input) with the line or
/// piece.
BpeVocabulary parse_vocab_and_merges(std::string_view vocab_json, std::string_view merges_txt,
                                     const std::string& vocab_name, const std::string& merges_name);

/// Raises Error (input) where the file is damaged, and where it is a tokenizer of another kind, with what
/// differs. Truncation and padding settings are ignored. `eod_content` names the end-of-document token of a
/// tokenizer that has no `<|endoftext|>`.
BpeVocabulary parse_tokenizer_json(std::string_view json, const std::string& name,
                                   const std::string& eod_content = {});

/// "eos_token" of a tokenizer_config.json; empty where it says none.
std::string parse_eos_token(std::string_view tokenizer_config_json, const std::string& name);

/// Files above this many bytes are refused unread.
inline constexpr std::uint64_t tokenizer_file_limit = std::uint64_t{64} << 20;

std::string vocab_json_text(const BpeVocabulary& vocabulary);
std::string merges_txt_text(const BpeVocabulary& vocabulary);
std::string tokenizer_json_text(const BpeVocabulary& vocabulary);

/// Writes vocab.json, merges.txt and tokenizer.json into `folder`, which is created.
void save_tokenizer_files(const BpeVocabulary& vocabulary, const std::filesystem::path& folder);

}  // namespace megalith
