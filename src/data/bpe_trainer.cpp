#include "data/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace megalith {
namespace {

constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

/// All words one after another, each a linked list of tokens that merges shorten.
class Sequences {
 public:
  Sequences(const WordTable& words, const std::array<Token, 256>& byte_tokens) {
    std::uint64_t bytes = 0;
    for (const WordTable::Entry& entry : words.entries()) bytes += entry.word.size();
    if (bytes >= nowhere) {
      fail(ErrorKind::input, "tokenizer train",
           "the different words of the text have {} bytes together; below 4 GiB can be learned from; give "
           "less text",
           bytes);
    }
    links_.reserve(bytes);
    for (const WordTable::Entry& entry : words.entries()) {
      for (std::size_t i = 0; i < entry.word.size(); ++i) {
        const auto place = static_cast<std::uint32_t>(links_.size());
        links_.push_back({byte_tokens[static_cast<unsigned char>(entry.word[i])],
                          i == 0 ? nowhere : place - 1, i + 1 == entry.word.size() ? nowhere : place + 1,
                          static_cast<std::uint32_t>(counts_.size())});
      }
      counts_.push_back(entry.count);
    }
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(links_.size()); }
  Token token(std::uint32_t place) const { return links_[place].token; }
  std::uint32_t next(std::uint32_t place) const { return links_[place].next; }
  std::uint32_t previous(std::uint32_t place) const { return links_[place].previous; }
  /// How often the word at `place` occurs.
  std::int64_t count(std::uint32_t place) const { return counts_[links_[place].word]; }
  bool holds(std::uint32_t place, Token left, Token right) const {
    const Link& link = links_[place];
    return link.token == left && link.next != nowhere && links_[link.next].token == right;
  }
  /// The pair at `place` becomes one token there.
  void merge(std::uint32_t place, Token token) {
    Link& link = links_[place];
    Link& gone = links_[link.next];
    link.token = token;
    link.next = gone.next;
    gone.token = -1;
    if (link.next != nowhere) links_[link.next].previous = place;
  }

 private:
  struct Link {
    Token token;
    std::uint32_t previous;
    std::uint32_t next;
    std::uint32_t word;
  };
  std::vector<Link> links_;
  std::vector<std::int64_t> counts_;
};

/// Pairs of neighbours: how often they occur, and where (places that no longer hold the pair may be among
/// them).
class Pairs {
 public:
  struct Pair {
    Token left = 0;
    Token right = 0;
    std::int64_t count = 0;
    std::vector<std::uint32_t> places{};
  };

  Pairs() : slots_(std::size_t{1} << 16U, nowhere) {}

  Pair& operator[](std::uint32_t index) { return pairs_[index]; }
  /// Index of the pair, made where it is new.
  std::uint32_t index_of(Token left, Token right) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash_of(left, right) & mask;
    while (slots_[slot] != nowhere) {
      const Pair& pair = pairs_[slots_[slot]];
      if (pair.left == left && pair.right == right) return slots_[slot];
      slot = (slot + 1) & mask;
    }
    const auto index = static_cast<std::uint32_t>(pairs_.size());
    slots_[slot] = index;
    pairs_.push_back({left, right});
    if (pairs_.size() * 2 > slots_.size()) grow();
    return index;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(pairs_.size()); }

 private:
  static std::size_t hash_of(Token left, Token right) {
    std::uint64_t key =
        (std::uint64_t{static_cast<std::uint32_t>(left)} << 32U) | static_cast<std::uint32_t>(right);
    key *= 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(key ^ (key >> 32U));
  }
  void grow() {
    slots_.assign(slots_.size() * 2, nowhere);
    const std::size_t mask = slots_.size() - 1;
    for (std::uint32_t i = 0; i < pairs_.size(); ++i) {
      std::size_t slot = hash_of(pairs_[i].left, pairs_[i].right) & mask;
      while (slots_[slot] != nowhere) slot = (slot + 1) & mask;
      slots_[slot] = i;
    }
  }

  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> slots_;
};

/// A pair as it was when it entered the queue; its count may have fallen since.
struct Candidate {
  std::int64_t count;
  Token left;
  Token right;
  std::uint32_t index;

  bool operator<(const Candidate& other) const {
    if (count != other.count) return count < other.count;
    return left != other.left ? left > other.left : right > other.right;
  }
};

class Trainer {
 public:
  Trainer(const WordTable& words, BpeVocabulary& vocabulary)
      : sequences_(words, vocabulary.byte_tokens), vocabulary_(vocabulary) {
    for (std::uint32_t place = 0; place < sequences_.size(); ++place) {
      if (sequences_.next(place) == nowhere) continue;
      const std::uint32_t index = pairs_.index_of(sequences_.token(place), sequences_.token(place + 1));
      pairs_[index].count += sequences_.count(place);
      pairs_[index].places.push_back(place);
    }
    for (std::uint32_t index = 0; index < pairs_.size(); ++index) push(index);
    for (std::size_t token = 0; token < vocabulary_.pieces.size(); ++token) {
      token_of_.emplace(vocabulary_.pieces[token], static_cast<Token>(token));
    }
  }

  /// Makes the most frequent pair a piece; false where none occurs `least` times.
  bool step(std::int64_t least) {
    while (!queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      const std::int64_t count = pairs_[best.index].count;
      if (best.count != count) {
        best.count = count;
        if (count > 0) queue_.push(best);
        continue;
      }
      if (count < std::max<std::int64_t>(least, 1)) return false;
      merge(best);
      return true;
    }
    return false;
  }

 private:
  void push(std::uint32_t index) {
    const Pairs::Pair& pair = pairs_[index];
    if (pair.count > 0) queue_.push({pair.count, pair.left, pair.right, index});
  }

  /// Two merges may spell the same piece: it keeps its first number.
  Token token_for(const Candidate& pair) {
    std::string piece = vocabulary_.pieces[static_cast<std::size_t>(pair.left)] +
                        vocabulary_.pieces[static_cast<std::size_t>(pair.right)];
    const auto [entry, fresh] = token_of_.emplace(piece, static_cast<Token>(vocabulary_.pieces.size()));
    if (fresh) {
      vocabulary_.pieces.push_back(std::move(piece));
      vocabulary_.kinds.push_back(PieceKind::byte_level);
    }
    return entry->second;
  }

  void remove(Token left, Token right, std::int64_t count) {
    pairs_[pairs_.index_of(left, right)].count -= count;
  }
  void add(Token left, Token right, std::uint32_t place, std::int64_t count) {
    const std::uint32_t index = pairs_.index_of(left, right);
    pairs_[index].count += count;
    pairs_[index].places.push_back(place);
    changed_.push_back(index);
  }

  void merge(const Candidate& pair) {
    const Token token = token_for(pair);
    vocabulary_.merges.push_back({pair.left, pair.right, token});
    std::vector<std::uint32_t> places = std::move(pairs_[pair.index].places);
    pairs_[pair.index].places.clear();
    // From left to right, which decides what becomes of a run such as "aaa".
    if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    changed_.clear();
    for (const std::uint32_t place : places) {
      if (!sequences_.holds(place, pair.left, pair.right)) continue;
      const std::int64_t count = sequences_.count(place);
      const std::uint32_t before = sequences_.previous(place);
      const std::uint32_t after = sequences_.next(sequences_.next(place));
      if (before != nowhere) {
        remove(sequences_.token(before), pair.left, count);
        add(sequences_.token(before), token, before, count);
      }
      if (after != nowhere) {
        remove(pair.right, sequences_.token(after), count);
        add(token, sequences_.token(after), place, count);
      }
      sequences_.merge(place, token);
    }
    pairs_[pair.index].count = 0;
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const std::uint32_t index : changed_) push(index);
  }

  Sequences sequences_;
  Pairs pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<std::uint32_t> changed_;
  std::unordered_map<std::string, Token> token_of_;
  BpeVocabulary& vocabulary_;
};

[[noreturn]] void refuse_special_token(const std::string& token, const char* why) {
  fail(ErrorKind::usage, "special_tokens", "'{}' {}; choose one such as {}", token, why, end_of_text);
}

}  // namespace

void check_training_options(const BpeTrainingOptions& options, const Pretokenizer& pretokenizer) {
  const auto least = static_cast<std::int64_t>(256 + options.special_tokens.size());
  if (options.vocab_size < std::max<std::int64_t>(least, 257) || options.vocab_size > token_number_limit) {
    fail(ErrorKind::usage, "vocab_size",
         "{} pieces are asked for; {} ... {} are possible (256 bytes and {} special "
         "tokens are always there)",
         options.vocab_size, std::max<std::int64_t>(least, 257), token_number_limit,
         options.special_tokens.size());
  }
  std::unordered_set<std::string> seen;
  for (const std::string& token : options.special_tokens) {
    if (token.empty() || token.size() > added_token_limit)
      refuse_special_token(token, "is empty or too long");
    if (!seen.insert(token).second) refuse_special_token(token, "is given twice");
    for (std::size_t place = 0; place < token.size();) {
      const Utf8Sequence sequence = utf8_sequence_at(token, place);
      if (sequence.bytes == 0) refuse_special_token(token, "is not UTF-8");
      place += sequence.bytes;
    }
    int words = 0;
    pretokenizer.for_each_word(token, [&](std::string_view) { ++words; });
    if (words == 1) {
      refuse_special_token(token, "is a word that plain text may hold, so the merges could make it too");
    }
  }
}

BpeVocabulary train_bpe(const WordTable& words, const BpeTrainingOptions& options,
                        const std::function<void(std::int64_t pieces)>& progress) {
  BpeVocabulary vocabulary;
  const ByteAlphabet alphabet;
  for (const std::uint8_t byte : alphabet.order()) {
    vocabulary.byte_tokens[byte] = static_cast<Token>(vocabulary.pieces.size());
    vocabulary.pieces.emplace_back(1, static_cast<char>(byte));
    vocabulary.kinds.push_back(PieceKind::byte_level);
  }
  const std::size_t wanted = static_cast<std::size_t>(options.vocab_size) - options.special_tokens.size();
  if (vocabulary.pieces.size() < wanted) {
    Trainer trainer(words, vocabulary);
    while (vocabulary.pieces.size() < wanted && trainer.step(options.min_frequency)) {
      progress(static_cast<std::int64_t>(vocabulary.pieces.size()));
    }
  }
  for (const std::string& content : options.special_tokens) {
    const auto token = static_cast<Token>(vocabulary.pieces.size());
    vocabulary.pieces.push_back(content);
    vocabulary.kinds.push_back(PieceKind::literal);
    vocabulary.added.push_back({content, token, true, false});
    if (content == end_of_text) vocabulary.eod = token;
  }
  return vocabulary;
}

}  // namespace megalith
