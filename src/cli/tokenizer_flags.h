// The flags that choose a tokenizer and the files of `tokenizer encode` and `tokenizer decode`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/schema.h"
#include "data/tokenizer.h"

namespace megalith {

/// Section "tokenizer": --tokenizer-type and the files; the type may be left out where the files tell it.
void declare_tokenizer_flags(Schema& schema, TokenizerOptions& options);

/// Whether any of the flags that name a tokenizer was given.
bool names_tokenizer(const TokenizerOptions& options);

/// The options with tokenizer_type filled in where the files tell it.
TokenizerOptions with_tokenizer_type(TokenizerOptions options);

/// load_tokenizer() with the type filled in.
std::unique_ptr<Tokenizer> load_chosen_tokenizer(TokenizerOptions options);

/// All bytes of a file, or of standard input where `path` is "-". Raises Error (input).
std::string read_all(const std::string& path);

/// Writes to a file (which appears complete or not at all), or to standard output where `path` is "-".
void write_all(const std::string& path, std::string_view bytes);

}  // namespace megalith
