// GPT-2's vocab.json (an object: piece to number) and merges.txt (a line "left right" each, after
// "#version").
#include <limits>

#include "core/error.h"
#include "data/bpe_files.h"
#include "data/bpe_json.h"

namespace megalith {
namespace {

void read_pieces(const nlohmann::json& vocab, BpeVocabularyBuilder& builder, const std::string& name) {
  if (!vocab.is_object()) fail(ErrorKind::input, name, "holds no JSON object of pieces and their numbers");
  for (const auto& [text, number] : vocab.items()) {
    if (!number.is_number_integer())
      fail(ErrorKind::input, name, "the number of '{}' is not an integer", text);
    const bool huge = number.is_number_unsigned() &&
                      number.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int32_t>::max()};
    builder.add_piece(text, huge ? std::numeric_limits<std::int64_t>::max() : number.get<std::int64_t>());
  }
}

void read_merges(std::string_view text, BpeVocabularyBuilder& builder, const std::string& name) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    const bool two_pieces = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                            line.find(' ', space + 1) == std::string_view::npos;
    if (!two_pieces) {
      fail(ErrorKind::input, name, "line {} is not two pieces with one space between; is this a merges.txt?",
           number);
    }
    builder.add_merge(line.substr(0, space), line.substr(space + 1));
  }
}

// A merges.txt that was cut short at the end of a line still reads well, but text would silently become other
// tokens. Some vocabularies hold a few pieces beside the merges, such as control tokens.
void check_merges_are_whole(const BpeVocabulary& vocabulary, const std::string& vocab_name,
                            const std::string& merges_name) {
  std::vector<bool> is_made(vocabulary.pieces.size());
  for (const BpeMerge& merge : vocabulary.merges) is_made[static_cast<std::size_t>(merge.result)] = true;
  std::size_t orphans = 0;
  std::size_t example = 0;
  for (std::size_t token = 0; token < vocabulary.pieces.size(); ++token) {
    if (vocabulary.kinds[token] != PieceKind::byte_level || vocabulary.pieces[token].size() < 2 ||
        is_made[token])
      continue;
    if (vocabulary.pieces[token].front() == '<' || vocabulary.pieces[token].front() == '[') continue;
    if (orphans++ == 0) example = token;
  }
  if (orphans <= 16 + vocabulary.pieces.size() / 100) return;
  fail(ErrorKind::input, merges_name,
       "has {} merges, and none of them makes {} of the pieces in {}, such as number {}; it is cut short or "
       "belongs to "
       "another vocabulary",
       vocabulary.merges.size(), orphans, vocab_name, example);
}

}  // namespace

BpeVocabulary parse_vocab_and_merges(std::string_view vocab_json, std::string_view merges_txt,
                                     const std::string& vocab_name, const std::string& merges_name) {
  const nlohmann::json vocab = parse_untrusted_json(vocab_json, vocab_name);
  BpeVocabularyBuilder builder(format("{} with {}", vocab_name, merges_name), vocab.size());
  read_pieces(vocab, builder, vocab_name);
  read_merges(merges_txt, builder, merges_name);
  check_merges_are_whole(builder.vocabulary(), vocab_name, merges_name);
  const Token end = builder.find(std::string(end_of_text));
  if (end >= 0) builder.add_token({std::string(end_of_text), end, true, false}, end);
  return builder.finish();
}

std::string vocab_json_text(const BpeVocabulary& vocabulary) {
  const ByteAlphabet alphabet;
  std::string text = "{";
  for (std::size_t token = 0; token < vocabulary.pieces.size(); ++token) {
    if (vocabulary.kinds[token] == PieceKind::absent) continue;
    if (text.size() > 1) text += ',';
    text += json_quoted(vocabulary.file_text(static_cast<Token>(token), alphabet));
    text += format(":{}", token);
  }
  return text + "}";
}

std::string merges_txt_text(const BpeVocabulary& vocabulary) {
  const ByteAlphabet alphabet;
  std::string text = "#version: 0.2\n";
  for (const BpeMerge& merge : vocabulary.merges) {
    text +=
        vocabulary.file_text(merge.left, alphabet) + ' ' + vocabulary.file_text(merge.right, alphabet) + '\n';
  }
  return text;
}

}  // namespace megalith
