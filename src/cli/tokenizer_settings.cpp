#include "cli/tokenizer_settings.h"

namespace megalith {

void declare_tokenizer_settings(Schema& schema, TokenizerOptions& options, const std::string& default_type) {
  schema
      .add("tokenizer_type", &options.tokenizer_type, default_type,
           "GPT2BPETokenizer, HuggingFaceTokenizer or NullTokenizer")
      .metavar("TYPE");
  schema.add("vocab_file", &options.vocab_file, std::string(), "vocab.json of a GPT2BPETokenizer")
      .metavar("FILE")
      .completes_file();
  schema.add("merge_file", &options.merge_file, std::string(), "merges.txt of a GPT2BPETokenizer")
      .metavar("FILE")
      .completes_file();
  schema
      .add("tokenizer_model", &options.tokenizer_model, std::string(),
           "tokenizer.json of a HuggingFaceTokenizer, or the folder that holds it")
      .metavar("FILE")
      .completes_file();
  schema.add("vocab_size", &options.vocab_size, std::int64_t{0}, "Size of a NullTokenizer").at_least(0);
}

}  // namespace megalith
