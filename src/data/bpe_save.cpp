#include "core/files.h"
#include "data/bpe_files.h"

namespace megalith {

void save_tokenizer_files(const BpeVocabulary& vocabulary, const std::filesystem::path& folder) {
  create_folders(folder);
  write_file_atomically(folder / "vocab.json", vocab_json_text(vocabulary) + "\n");
  write_file_atomically(folder / "merges.txt", merges_txt_text(vocabulary));
  write_file_atomically(folder / "tokenizer.json", tokenizer_json_text(vocabulary));
}

}  // namespace megalith
