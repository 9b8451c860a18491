#include "data/tokenizer_added_tokens.h"

#include <algorithm>
#include <utility>

namespace megalith {

AddedTokenFinder::AddedTokenFinder(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& left, const Entry& right) { return left.content < right.content; });
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    Range& range = by_first_byte_[static_cast<unsigned char>(entries_[i].content.front())];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
  if (!entries_.empty() && entries_.front().content.front() == entries_.back().content.front()) {
    only_first_byte_ = static_cast<unsigned char>(entries_.front().content.front());
  }
}

const AddedTokenFinder::Entry* AddedTokenFinder::longest_at(std::string_view text, std::size_t place) const {
  // Entries that agree with the text in their first `depth` bytes are neighbours; the shortest comes first.
  auto [begin, end] = by_first_byte_[static_cast<unsigned char>(text[place])];
  const Entry* longest = nullptr;
  for (std::size_t depth = 1; begin < end; ++depth) {
    if (entries_[begin].content.size() == depth) longest = &entries_[begin++];
    if (place + depth >= text.size()) break;
    const auto byte_of = [depth](const Entry& entry) {
      return static_cast<unsigned char>(entry.content[depth]);
    };
    const auto wanted = static_cast<unsigned char>(text[place + depth]);
    const auto first = entries_.begin() + begin;
    const auto last = entries_.begin() + end;
    const auto low =
        std::partition_point(first, last, [&](const Entry& entry) { return byte_of(entry) < wanted; });
    const auto high =
        std::partition_point(low, last, [&](const Entry& entry) { return byte_of(entry) == wanted; });
    begin = static_cast<std::uint32_t>(low - entries_.begin());
    end = static_cast<std::uint32_t>(high - entries_.begin());
  }
  return longest;
}

AddedTokenFinder::Match AddedTokenFinder::find(std::string_view text, std::size_t begin) const {
  for (std::size_t place = begin; place < text.size() && !entries_.empty(); ++place) {
    if (only_first_byte_ >= 0) {
      place = text.find(static_cast<char>(only_first_byte_), place);
      if (place == std::string_view::npos) break;
    }
    if (const Entry* entry = longest_at(text, place)) {
      return {place, place + entry->content.size(), entry->token};
    }
  }
  return {text.size(), text.size(), -1};
}

}  // namespace megalith
