#include "data/bpe_vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/hash.h"

namespace megalith {
namespace {

/// Numbers go in as eight bytes, so that no two contents give one sequence of bytes.
void add_number(Hasher& hash, std::uint64_t number) {
  hash.update(std::as_bytes(std::span(&number, 1)));
}

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  return text.size() <= longest ? std::string(text) : std::string(text.substr(0, longest)) + "...";
}

}  // namespace

std::string BpeVocabulary::fingerprint() const {
  Hasher hash;
  add_number(hash, pieces.size());
  for (std::size_t token = 0; token < pieces.size(); ++token) {
    add_number(hash, kinds[token] == PieceKind::absent ? std::uint64_t{0} : pieces[token].size() + 1);
    hash.update(pieces[token]);
  }
  add_number(hash, merges.size());
  for (const BpeMerge& merge : merges) {
    for (const Token token : {merge.left, merge.right, merge.result}) {
      add_number(hash, static_cast<std::uint64_t>(token));
    }
  }
  std::vector<std::pair<Token, bool>> sorted;
  for (const AddedToken& token : added) sorted.emplace_back(token.token, token.special);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [token, special] : sorted) {
    add_number(hash, static_cast<std::uint64_t>(token) * 2 + (special ? 1 : 0));
  }
  add_number(hash, static_cast<std::uint64_t>(eod));
  add_number(hash, ignore_merges ? 1 : 0);
  return hash.hex();
}

std::string BpeVocabulary::file_text(Token token, const ByteAlphabet& alphabet) const {
  const auto index = static_cast<std::size_t>(token);
  return kinds[index] == PieceKind::byte_level ? alphabet.to_text(pieces[index]) : pieces[index];
}

BpeVocabularyBuilder::BpeVocabularyBuilder(std::string place, std::size_t entries)
    : place_(std::move(place)),
      number_limit_(std::min(token_number_limit, static_cast<std::int64_t>(entries) * 4 + 4096)) {}

void BpeVocabularyBuilder::add_piece(std::string_view text, std::int64_t token) {
  if (token < 0 || token >= number_limit_) {
    fail(ErrorKind::input, place_,
         "token number {} of '{}' is outside 0 ... {} (four times the pieces listed)", token, shown(text),
         number_limit_ - 1);
  }
  const auto index = static_cast<std::size_t>(token);
  if (index >= vocabulary_.pieces.size()) {
    vocabulary_.pieces.resize(index + 1);
    vocabulary_.kinds.resize(index + 1, PieceKind::absent);
  }
  if (vocabulary_.kinds[index] != PieceKind::absent) {
    fail(ErrorKind::input, place_, "token number {} stands for two pieces, one of them '{}'", token,
         shown(text));
  }
  if (!token_of_text_.emplace(text, static_cast<Token>(token)).second) {
    fail(ErrorKind::input, place_, "the piece '{}' has two token numbers", shown(text));
  }
  std::optional<std::string> bytes = alphabet_.to_bytes(text);
  vocabulary_.kinds[index] = bytes ? PieceKind::byte_level : PieceKind::literal;
  vocabulary_.pieces[index] = bytes ? std::move(*bytes) : std::string(text);
}

Token BpeVocabularyBuilder::piece_token(std::string_view text, std::string_view what) const {
  const auto found = token_of_text_.find(std::string(text));
  if (found == token_of_text_.end()) {
    fail(ErrorKind::input, place_,
         "merge {} {} '{}', which is not in the vocabulary; do both files belong together?",
         vocabulary_.merges.size() + 1, what, shown(text));
  }
  return found->second;
}

void BpeVocabularyBuilder::add_merge(std::string_view left, std::string_view right) {
  const Token left_token = piece_token(left, "begins with");
  const Token right_token = piece_token(right, "ends with");
  const Token result = piece_token(std::string(left) + std::string(right), "makes");
  // No text is tokenized to a piece that spells no bytes or is empty, so such a merge never happens;
  // merges.txt could not even say it.
  const bool spells_bytes = vocabulary_.kinds[static_cast<std::size_t>(result)] == PieceKind::byte_level;
  if (!spells_bytes || left.empty() || right.empty()) return;
  vocabulary_.merges.push_back({left_token, right_token, result});
}

void BpeVocabularyBuilder::add_token(AddedToken added, std::int64_t token) {
  if (added.content.empty() || added.content.size() > added_token_limit) {
    fail(ErrorKind::input, place_, "the added token of number {} has {} bytes; 1 to {} are allowed", token,
         added.content.size(), added_token_limit);
  }
  const auto known = token_of_text_.find(added.content);
  if (known == token_of_text_.end()) {
    add_piece(added.content, token);
  } else if (known->second != token) {
    fail(ErrorKind::input, place_, "the added token '{}' has the number {}, but {} in the vocabulary",
         shown(added.content), token, known->second);
  } else if (vocabulary_.kinds[static_cast<std::size_t>(token)] == PieceKind::byte_level &&
             vocabulary_.pieces[static_cast<std::size_t>(token)] != added.content) {
    fail(ErrorKind::input, place_, "the added token '{}' is also the vocabulary's name of other bytes",
         shown(added.content));
  }
  if (!added_.insert(static_cast<Token>(token)).second)
    fail(ErrorKind::input, place_, "the added token '{}' is listed twice", shown(added.content));
  vocabulary_.pieces[static_cast<std::size_t>(token)] = added.content;
  vocabulary_.kinds[static_cast<std::size_t>(token)] = PieceKind::literal;
  added.token = static_cast<Token>(token);
  vocabulary_.added.push_back(std::move(added));
}

Token BpeVocabularyBuilder::find(const std::string& content) const {
  const auto found = token_of_text_.find(content);
  return found == token_of_text_.end() ? -1 : found->second;
}

BpeVocabulary BpeVocabularyBuilder::finish(const std::string& eod_content) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const Token token = find(alphabet_.to_text(std::string(1, static_cast<char>(byte))));
    if (token < 0) {
      fail(ErrorKind::input, place_,
           "byte 0x{:02x} has no token, so not every text could be written; a byte-level vocabulary holds "
           "all 256 "
           "bytes (in the training library: initial_alphabet)",
           byte);
    }
    vocabulary_.byte_tokens[byte] = token;
  }
  vocabulary_.eod = find(std::string(end_of_text));
  if (vocabulary_.eod < 0 && !eod_content.empty()) vocabulary_.eod = find(eod_content);
  return std::move(vocabulary_);
}

}  // namespace megalith
