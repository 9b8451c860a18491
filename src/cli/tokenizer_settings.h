// The flags that choose a tokenizer, shared by the subcommands that read or write text.
#pragma once

#include "core/schema.h"
#include "data/tokenizer.h"

namespace megalith {

/// Adds tokenizer_type, vocab_file, merge_file, tokenizer_model and vocab_size in the present section. With
/// `default_type` empty the tokenizer is optional.
void declare_tokenizer_settings(Schema& schema, TokenizerOptions& options,
                                const std::string& default_type = "");

}  // namespace megalith
