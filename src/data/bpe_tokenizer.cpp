#include "data/bpe_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace megalith {
namespace {

/// Walks `text`, handing what lies between matches to `between` and the matches to `found`.
template <typename Between, typename Found>
void split_at(const AddedTokenFinder& finder, std::string_view text, Between&& between, Found&& found) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const AddedTokenFinder::Match match = finder.find(text, begin);
    if (match.begin > begin) between(text.substr(begin, match.begin - begin));
    if (match.token >= 0) found(match.token);
    begin = match.end;
  }
}

/// Adds the tokens of a word that `cache` may hold; `miss` appends them where it does not. `readable` bytes
/// may be read from the word's beginning on.
template <typename Cache, typename Miss>
void append_cached(Cache& cache, std::string_view word, std::size_t readable, TokenSink& sink, Miss&& miss) {
  const typename Cache::Key key = Cache::key_of(word, readable);
  typename Cache::Slot& slot = cache.slot(key);
  if (slot.holds(key)) {
    sink.append(slot.tokens, slot.count());
    return;
  }
  const std::size_t before = sink.flush().size();
  miss();
  const std::vector<Token>& tokens = sink.flush();
  if (tokens.size() - before > Cache::token_limit) return;
  slot.key = key;
  slot.tokens.fill(-1);
  std::copy(tokens.begin() + static_cast<std::ptrdiff_t>(before), tokens.end(), slot.tokens.begin());
}

}  // namespace

/// Takes a cache for the length of one call, so that no two calls share one.
class BpeTokenizer::CacheLease {
 public:
  explicit CacheLease(const BpeTokenizer& owner) : owner_(owner) {
    {
      const std::lock_guard lock(owner_.mutex_);
      if (!owner_.idle_caches_.empty()) {
        cache_ = std::move(owner_.idle_caches_.back());
        owner_.idle_caches_.pop_back();
      }
    }
    if (!cache_) cache_ = std::make_unique<EncodeCache>();
  }
  ~CacheLease() {
    const std::lock_guard lock(owner_.mutex_);
    // The constructor reserved the room, so this does not throw; more callers than that are not worth their
    // memory.
    if (owner_.idle_caches_.size() < owner_.idle_caches_.capacity()) {
      owner_.idle_caches_.push_back(std::move(cache_));
    }
  }
  CacheLease(const CacheLease&) = delete;
  CacheLease& operator=(const CacheLease&) = delete;
  EncodeCache& cache() { return *cache_; }

 private:
  const BpeTokenizer& owner_;
  std::unique_ptr<EncodeCache> cache_;
};

BpeTokenizer::BpeTokenizer(BpeVocabulary vocabulary, CharacterClasses classes)
    : vocabulary_(std::move(vocabulary)),
      pretokenizer_(std::move(classes)),
      merger_(vocabulary_),
      plain_finders_(make_finders(false)),
      special_finders_(make_finders(true)) {
  constexpr std::size_t most_idle_caches = 64;
  idle_caches_.reserve(most_idle_caches);
  if (!vocabulary_.ignore_merges) return;
  for (std::size_t token = 0; token < vocabulary_.pieces.size(); ++token) {
    if (vocabulary_.kinds[token] == PieceKind::byte_level) {
      whole_words_.emplace(vocabulary_.pieces[token], static_cast<Token>(token));
    }
  }
}

BpeTokenizer::Finders BpeTokenizer::make_finders(bool with_special) const {
  std::array<std::vector<AddedTokenFinder::Entry>, 2> entries;
  for (const AddedToken& added : vocabulary_.added) {
    if (added.special && !with_special) continue;
    entries[added.normalized ? 1 : 0].push_back({added.content, added.token});
  }
  return {AddedTokenFinder(std::move(entries[0])), AddedTokenFinder(std::move(entries[1]))};
}

void BpeTokenizer::append_new_word(std::string_view word, std::vector<Token>& tokens) const {
  if (!whole_words_.empty()) {
    const auto found = whole_words_.find(word);
    if (found != whole_words_.end()) {
      tokens.push_back(found->second);
      return;
    }
  }
  merger_.append(word, tokens);
}

void BpeTokenizer::encode_words(std::string_view text, EncodeCache& cache, std::vector<Token>& tokens) const {
  using Short = decltype(cache.short_words);
  using Long = decltype(cache.long_words);
  static_assert(Long::token_limit >= Long::word_limit, "every word of that length fits");
  const char* const end = text.data() + text.size();
  TokenSink sink(tokens);
  pretokenizer_.for_each_word(text, [&](std::string_view word) {
    const auto readable = static_cast<std::size_t>(end - word.data());
    const auto merge = [&] { append_new_word(word, sink.flush()); };
    const auto look_among_long = [&] { append_cached(cache.long_words, word, readable, sink, merge); };
    if (word.size() <= Short::word_limit) {
      append_cached(cache.short_words, word, readable, sink, look_among_long);
    } else if (word.size() <= Long::word_limit) {
      look_among_long();
    } else {
      merge();
    }
  });
  sink.flush();
}

void BpeTokenizer::append(std::string_view text, std::vector<Token>& tokens) const {
  CacheLease lease(*this);
  append_with(plain_finders_, text, lease.cache(), tokens);
}

std::vector<Token> BpeTokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<Token> tokens;
  tokens.reserve(text.size() / 4 + 16);
  CacheLease lease(*this);
  append_with(parse_special ? special_finders_ : plain_finders_, text, lease.cache(), tokens);
  return tokens;
}

void BpeTokenizer::append_with(const Finders& finders, std::string_view text, EncodeCache& cache,
                               std::vector<Token>& tokens) const {
  const auto add_token = [&](Token token) { tokens.push_back(token); };
  split_at(
      finders.first, text,
      [&](std::string_view part) {
        split_at(
            finders.second, part, [&](std::string_view words) { encode_words(words, cache, tokens); },
            add_token);
      },
      add_token);
}

const std::string& BpeTokenizer::checked_piece(Token token) const {
  const auto index = static_cast<std::size_t>(token);
  if (token < 0 || index >= vocabulary_.pieces.size() || vocabulary_.kinds[index] == PieceKind::absent) {
    fail(ErrorKind::input, "tokenizer",
         "token {} is not in the vocabulary of 0 ... {}; was the text tokenized with "
         "another tokenizer?",
         token, vocabulary_.pieces.size() - 1);
  }
  return vocabulary_.pieces[index];
}

std::string BpeTokenizer::decode(std::span<const Token> tokens) const {
  std::size_t bytes = 0;
  for (const Token token : tokens) bytes += checked_piece(token).size();
  std::string text;
  text.reserve(bytes);
  for (const Token token : tokens) text += vocabulary_.pieces[static_cast<std::size_t>(token)];
  return text;
}

std::string BpeTokenizer::piece(Token token) const {
  const std::string& bytes = checked_piece(token);
  std::string text;
  for (std::size_t place = 0; place < bytes.size();) {
    const Utf8Sequence sequence = utf8_sequence_at(bytes, place);
    const auto byte = static_cast<unsigned char>(bytes[place]);
    const bool control = sequence.bytes != 0 && (sequence.code_point < 0x20 ||
                                                 (sequence.code_point >= 0x7f && sequence.code_point < 0xa0));
    if (byte == '\n') {
      text += "\\n";
    } else if (byte == '\t') {
      text += "\\t";
    } else if (byte == '\\') {
      text += "\\\\";
    } else if (sequence.bytes == 0 || (control && sequence.bytes == 1)) {
      text += format("\\x{:02x}", byte);
    } else if (control) {
      text += format("\\u{:04x}", sequence.code_point);
    } else {
      text += bytes.substr(place, sequence.bytes);
    }
    place += sequence.bytes == 0 ? 1 : sequence.bytes;
  }
  return text;
}

}  // namespace megalith
