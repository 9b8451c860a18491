// How often each word occurs in the training text of a tokenizer. All that the trainer needs of the text, and
// much smaller: its size grows with the number of different words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/pretokenizer.h"

namespace megalith {

/// Words and counts, by open addressing; the words lie in blocks that never move.
class WordTable {
 public:
  struct Entry {
    std::string_view word;
    std::uint64_t hash;
    std::int64_t count;
  };

  WordTable();

  void add(std::string_view word, std::int64_t count);
  void add(const WordTable& other);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  static constexpr std::uint32_t no_entry = 0xffffffff;

  void add_hashed(std::string_view word, std::uint64_t hash, std::int64_t count);
  std::string_view stored(std::string_view word);
  void grow();

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // NOLINT: raw bytes of the words
  std::size_t block_free_ = 0;
  char* block_end_ = nullptr;
};

/// Counts the words of `text` into `table`.
void count_words(const Pretokenizer& pretokenizer, std::string_view text, WordTable& table);

}  // namespace megalith
