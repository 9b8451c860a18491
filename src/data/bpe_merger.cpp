#include "data/bpe_merger.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "core/error.h"

namespace megalith {

MergeTable::MergeTable(std::span<const BpeMerge> merges) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(merges.size() * 2, 16));
  slots_.resize(size);
  results_.reserve(merges.size());
  mask_ = size - 1;
  shift_ = 64U - static_cast<unsigned>(std::bit_width(mask_));
  for (const BpeMerge& merge : merges) {
    const std::uint64_t key = key_of(merge.left, merge.right);
    std::size_t slot = slot_of(key);
    while (slots_[slot].rank != no_rank && slots_[slot].key != key) slot = (slot + 1) & mask_;
    slots_[slot] = {key, static_cast<std::uint32_t>(results_.size())};
    results_.push_back(merge.result);
  }
}

BpeMerger::BpeMerger(const BpeVocabulary& vocabulary)
    : byte_tokens_(vocabulary.byte_tokens), table_(vocabulary.merges) {}

void BpeMerger::append(std::string_view word, std::vector<Token>& tokens) const {
  if (word.size() <= short_word) {
    append_short(word, tokens);
  } else {
    append_long(word, tokens);
  }
}

void BpeMerger::append_short(std::string_view word, std::vector<Token>& tokens) const {
  std::array<Token, short_word> parts;         // NOLINT: filled below as far as used
  std::array<std::uint32_t, short_word> rank;  // of the pair (i, i + 1)
  std::size_t count = word.size();
  for (std::size_t i = 0; i < count; ++i) parts[i] = byte_tokens_[static_cast<unsigned char>(word[i])];
  for (std::size_t i = 0; i + 1 < count; ++i) rank[i] = table_.rank(parts[i], parts[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (rank[i] < rank[best]) best = i;
    }
    if (rank[best] == MergeTable::no_rank) break;
    parts[best] = table_.result(rank[best]);
    --count;
    for (std::size_t i = best + 1; i < count; ++i) parts[i] = parts[i + 1];
    for (std::size_t i = best; i + 1 < count; ++i) rank[i] = rank[i + 1];
    if (best + 1 < count) rank[best] = table_.rank(parts[best], parts[best + 1]);
    if (best > 0) rank[best - 1] = table_.rank(parts[best - 1], parts[best]);
  }
  tokens.insert(tokens.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
}

void BpeMerger::append_long(std::string_view word, std::vector<Token>& tokens) const {
  if (word.size() >= std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorKind::input, "tokenizer", "a word of {} bytes; words below 4 GiB can be tokenized",
         word.size());
  }
  const auto count = static_cast<std::uint32_t>(word.size());
  struct Part {
    Token token;
    std::uint32_t previous;
    std::uint32_t next;  // `count` behind the last
    std::uint32_t rank;  // of the pair with `next`
  };
  std::vector<Part> parts(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    parts[i] = {byte_tokens_[static_cast<unsigned char>(word[i])], i - 1, i + 1, MergeTable::no_rank};
  }
  // Rank above, place below: the heap's least entry is the pair to merge next. An entry is stale where its
  // pair has another rank by now.
  std::vector<std::uint64_t> entries;
  entries.reserve(count);
  const auto entry_of = [&](std::uint32_t place) {
    return (std::uint64_t{parts[place].rank} << 32U) | place;
  };
  const auto find_rank = [&](std::uint32_t place) {
    Part& part = parts[place];
    part.rank = part.next == count ? MergeTable::no_rank : table_.rank(part.token, parts[part.next].token);
    return part.rank != MergeTable::no_rank;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    if (find_rank(i)) entries.push_back(entry_of(i));
  }
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue(std::greater<>{},
                                                                                       std::move(entries));
  while (!queue.empty()) {
    const std::uint64_t entry = queue.top();
    queue.pop();
    const auto place = static_cast<std::uint32_t>(entry);
    Part& part = parts[place];
    if (part.rank != static_cast<std::uint32_t>(entry >> 32U)) continue;
    Part& gone = parts[part.next];
    part.token = table_.result(part.rank);
    part.next = gone.next;
    gone.rank = MergeTable::no_rank;
    if (part.next != count) parts[part.next].previous = place;
    if (find_rank(place)) queue.push(entry_of(place));
    if (place != 0 && find_rank(part.previous)) queue.push(entry_of(part.previous));
  }
  for (std::uint32_t i = 0; i < count; i = parts[i].next) tokens.push_back(parts[i].token);
}

}  // namespace megalith
