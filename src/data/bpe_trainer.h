// Learns byte-pair merges from word counts (Sennrich, Haddow, Birch 2016): again and again the most frequent
// pair of neighbours becomes a new piece. Of pairs equally frequent the one with the smaller left, then right
// number wins, so the merges are those of Hugging Face's trainer, whatever the order of the words and the
// number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/bpe_vocabulary.h"
#include "data/bpe_word_counts.h"

namespace megalith {

struct BpeTrainingOptions {
  std::int64_t vocab_size = 0;     ///< pieces in all: 256 bytes, merges, special tokens
  std::int64_t min_frequency = 0;  ///< pairs that occur less often are not merged
  std::vector<std::string> special_tokens = {std::string(end_of_text)};  ///< numbered last, in this order
};

/// Raises Error (usage) where vocab_size is below 257 or leaves no room for the special tokens, and for a
/// special token that is empty, too long, no UTF-8, twice there, or a word that plain text may hold.
void check_training_options(const BpeTrainingOptions& options, const Pretokenizer& pretokenizer);

/// Numbers: the 256 bytes in the byte alphabet's order, pieces in the order of their merges, special tokens.
/// May return fewer pieces than asked for, where no pair is left that is frequent enough. `progress` gets the
/// pieces so far. The options must have passed check_training_options.
BpeVocabulary train_bpe(const WordTable& words, const BpeTrainingOptions& options,
                        const std::function<void(std::int64_t pieces)>& progress);

}  // namespace megalith
