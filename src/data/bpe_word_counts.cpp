#include "data/bpe_word_counts.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace megalith {
namespace {

std::uint64_t hash_of(std::string_view word) {
  constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15U;
  std::uint64_t hash = word.size();
  for (std::size_t place = 0; place < word.size(); place += 8) {
    std::uint64_t part = 0;
    std::memcpy(&part, word.data() + place, std::min<std::size_t>(8, word.size() - place));
    hash = (hash ^ part) * multiplier;
    hash ^= hash >> 32U;
  }
  return hash * multiplier;
}

}  // namespace

WordTable::WordTable() : slots_(std::size_t{1} << 12, no_entry) {}

std::string_view WordTable::stored(std::string_view word) {
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  if (word.size() > block_free_) {
    const std::size_t bytes = std::max(block_bytes, word.size());
    blocks_.push_back(std::make_unique<char[]>(bytes));  // NOLINT: raw bytes of the words
    block_free_ = bytes;
    block_end_ = blocks_.back().get() + bytes;
  }
  char* const place = block_end_ - block_free_;
  std::memcpy(place, word.data(), word.size());
  block_free_ -= word.size();
  return {place, word.size()};
}

void WordTable::grow() {
  slots_.assign(slots_.size() * 2, no_entry);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    std::size_t slot = entries_[i].hash & mask;
    while (slots_[slot] != no_entry) slot = (slot + 1) & mask;
    slots_[slot] = i;
  }
}

void WordTable::add_hashed(std::string_view word, std::uint64_t hash, std::int64_t count) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != no_entry) {
    Entry& entry = entries_[slots_[slot]];
    if (entry.hash == hash && entry.word == word) {
      entry.count += count;
      return;
    }
    slot = (slot + 1) & mask;
  }
  MEGALITH_ASSERT(entries_.size() < no_entry, "fewer than 2^32 different words");
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({stored(word), hash, count});
  if (entries_.size() * 2 > slots_.size()) grow();
}

void WordTable::add(std::string_view word, std::int64_t count) {
  add_hashed(word, hash_of(word), count);
}

void WordTable::add(const WordTable& other) {
  for (const Entry& entry : other.entries_) add_hashed(entry.word, entry.hash, entry.count);
}

void count_words(const Pretokenizer& pretokenizer, std::string_view text, WordTable& table) {
  pretokenizer.for_each_word(text, [&](std::string_view word) { table.add(word, 1); });
}

}  // namespace megalith
