// Byte-level BPE as GPT-2 does it: added tokens are cut out, the rest is cut into words, words are merged.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/bpe_merger.h"
#include "data/bpe_vocabulary.h"
#include "data/bpe_word_cache.h"
#include "data/pretokenizer.h"
#include "data/tokenizer.h"
#include "data/tokenizer_added_tokens.h"

namespace megalith {

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(BpeVocabulary vocabulary, CharacterClasses classes);

  std::vector<Token> encode(std::string_view text, bool parse_special = false) const override;
  void append(std::string_view text, std::vector<Token>& tokens) const override;
  std::string decode(std::span<const Token> tokens) const override;
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(vocabulary_.pieces.size()); }
  Token eod() const override { return vocabulary_.eod; }
  std::string piece(Token token) const override;
  std::string fingerprint() const override { return vocabulary_.fingerprint(); }

  const BpeVocabulary& vocabulary() const { return vocabulary_; }

 private:
  class CacheLease;
  /// Added tokens in the order in which they are cut out: those Hugging Face calls not normalized go first.
  struct Finders {
    AddedTokenFinder first;
    AddedTokenFinder second;
  };

  Finders make_finders(bool with_special) const;
  void append_with(const Finders& finders, std::string_view text, EncodeCache& cache,
                   std::vector<Token>& tokens) const;
  void encode_words(std::string_view text, EncodeCache& cache, std::vector<Token>& tokens) const;
  void append_new_word(std::string_view word, std::vector<Token>& tokens) const;
  const std::string& checked_piece(Token token) const;

  BpeVocabulary vocabulary_;
  Pretokenizer pretokenizer_;
  BpeMerger merger_;
  Finders plain_finders_;
  Finders special_finders_;
  std::unordered_map<std::string_view, Token> whole_words_;  // only with ignore_merges
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<EncodeCache>> idle_caches_;
};

}  // namespace megalith
