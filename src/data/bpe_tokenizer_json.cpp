// Hugging Face's tokenizer.json, as far as it says what GPT-2's files say: a BPE model over bytes, the
// ByteLevel pre-tokenizer with its pattern, added tokens. Everything else is refused with the name of what
// differs, because reading it as this kind would give other tokens without a word.
#include "core/error.h"
#include "data/bpe_files.h"
#include "data/bpe_json.h"

namespace megalith {
namespace {

using nlohmann::json;

const json& member(const json& object, const char* key) {
  static const json missing;
  const auto found = object.find(key);
  return found == object.end() ? missing : *found;
}

std::string type_of(const json& part) {
  const json& type = part.is_object() ? member(part, "type") : part;
  return type.is_string() ? type.get<std::string>() : std::string("without a type");
}

bool flag(const json& object, const char* key, bool absent, const std::string& name) {
  const json& value = member(object, key);
  if (value.is_null()) return absent;
  if (!value.is_boolean()) fail(ErrorKind::input, name, "'{}' is neither true nor false", key);
  return value.get<bool>();
}

/// A pipeline stage that may be spelled as a Sequence of one, or of none (then null). A view into `part`.
// NOLINTBEGIN(bugprone-return-const-ref-from-parameter): every caller keeps the document that holds `part`.
const json& unwrapped(const json& part, const char* list) {
  static const json missing;
  if (type_of(part) != "Sequence") return part;
  const json& parts = member(part, list);
  if (!parts.is_array() || parts.size() > 1) return part;
  return parts.empty() ? missing : parts.front();
}
// NOLINTEND(bugprone-return-const-ref-from-parameter)

[[noreturn]] void refuse(const std::string& name, const std::string& what, const std::string& why) {
  fail(ErrorKind::input, name,
       "{}: {}; byte-level BPE tokenizers of GPT-2's kind are read (pre_tokenizer ByteLevel, model BPE, no "
       "normalizer)",
       what, why);
}

void check_stages(const json& root, const std::string& name) {
  const json& normalizer = unwrapped(member(root, "normalizer"), "normalizers");
  if (!normalizer.is_null()) {
    refuse(name, "normalizer " + type_of(normalizer), "it changes text before it is tokenized");
  }
  const json& words = unwrapped(member(root, "pre_tokenizer"), "pretokenizers");
  if (words.is_null()) refuse(name, "pre_tokenizer none", "text would not be cut into words");
  if (type_of(words) != "ByteLevel")
    refuse(name, "pre_tokenizer " + type_of(words), "it cuts words another way");
  if (flag(words, "add_prefix_space", true, name)) {
    refuse(name, "pre_tokenizer ByteLevel with add_prefix_space",
           "it adds a space that is not in the text (set it to false where the model allows)");
  }
  if (!flag(words, "use_regex", true, name)) {
    refuse(name, "pre_tokenizer ByteLevel without use_regex", "it does not cut words with GPT-2's pattern");
  }
  const json& decoder = unwrapped(member(root, "decoder"), "decoders");
  if (type_of(decoder) != "ByteLevel") refuse(name, "decoder " + type_of(decoder), "it is not ByteLevel");
}

/// ByteLevel only moves offsets; a template is harmless where it adds no token.
void check_post_processor(const json& root, const std::string& name) {
  const json& processor = unwrapped(member(root, "post_processor"), "processors");
  if (processor.is_null() || type_of(processor) == "ByteLevel") return;
  bool adds = type_of(processor) != "TemplateProcessing" || !member(processor, "single").is_array();
  if (!adds) {
    for (const json& part : member(processor, "single")) {
      adds = adds || !part.is_object() || !part.contains("Sequence");
    }
  }
  if (adds) refuse(name, "post_processor " + type_of(processor), "it adds tokens of its own to every text");
}

void check_model(const json& model, const std::string& name) {
  if (!model.is_object()) fail(ErrorKind::input, name, "has no 'model'; is this a tokenizer.json?");
  const json& type = member(model, "type");
  if (!type.is_null() && type != "BPE") refuse(name, "model " + type_of(model), "it is not BPE");
  const json& dropout = member(model, "dropout");
  if (!dropout.is_null() && dropout != 0) refuse(name, "model with dropout", "its tokens are random");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& affix = member(model, key);
    if (!affix.is_null() && affix != "")
      refuse(name, std::string("model with ") + key, "it marks parts of words");
  }
  // An unknown token is harmless: all 256 bytes are required, so nothing is ever unknown.
  if (flag(model, "byte_fallback", false, name)) {
    refuse(name, "model with byte_fallback", "it writes bytes as <0x..> pieces (SentencePiece's kind)");
  }
}

void read_vocab(const json& vocab, BpeVocabularyBuilder& builder, const std::string& name) {
  if (!vocab.is_object())
    fail(ErrorKind::input, name, "model.vocab is no object of pieces and their numbers");
  for (const auto& [text, number] : vocab.items()) {
    if (!number.is_number_integer() || number < 0 || number >= token_number_limit) {
      fail(ErrorKind::input, name, "the number of '{}' in model.vocab is not an integer of 0 ... {}", text,
           token_number_limit - 1);
    }
    builder.add_piece(text, number.get<std::int64_t>());
  }
}

void read_merges(const json& merges, BpeVocabularyBuilder& builder, const std::string& name) {
  if (!merges.is_array()) fail(ErrorKind::input, name, "model.merges is no list");
  std::size_t number = 0;
  for (const json& merge : merges) {
    ++number;
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      builder.add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      continue;
    }
    if (merge.is_string()) {
      const std::string_view text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
        builder.add_merge(text.substr(0, space), text.substr(space + 1));
        continue;
      }
    }
    fail(ErrorKind::input, name, "merge {} is neither \"left right\" nor [\"left\", \"right\"]", number);
  }
}

void read_added_tokens(const json& list, BpeVocabularyBuilder& builder, const std::string& name) {
  if (list.is_null()) return;
  if (!list.is_array()) fail(ErrorKind::input, name, "added_tokens is no list");
  for (const json& entry : list) {
    const json& id = entry.is_object() ? member(entry, "id") : entry;
    if (!id.is_number_integer() || id < 0 || id >= token_number_limit ||
        !member(entry, "content").is_string()) {
      fail(ErrorKind::input, name, "an entry of added_tokens lacks 'content', or an 'id' of 0 ... {}",
           token_number_limit - 1);
    }
    AddedToken added{member(entry, "content").get<std::string>(), 0, flag(entry, "special", false, name),
                     flag(entry, "normalized", true, name)};
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      if (flag(entry, key, false, name)) {
        refuse(name, format("added token '{}' with {}", added.content, key),
               "not every text would come back");
      }
    }
    builder.add_token(std::move(added), id.get<std::int64_t>());
  }
}

}  // namespace

BpeVocabulary parse_tokenizer_json(std::string_view text, const std::string& name,
                                   const std::string& eod_content) {
  const json root = parse_untrusted_json(text, name);
  if (!root.is_object()) fail(ErrorKind::input, name, "is no JSON object; is this a tokenizer.json?");
  const json& model = member(root, "model");
  check_model(model, name);
  check_stages(root, name);
  check_post_processor(root, name);
  BpeVocabularyBuilder builder(name, member(model, "vocab").size() + member(root, "added_tokens").size());
  read_vocab(member(model, "vocab"), builder, name);
  read_merges(member(model, "merges"), builder, name);
  read_added_tokens(member(root, "added_tokens"), builder, name);
  builder.vocabulary().ignore_merges = flag(model, "ignore_merges", false, name);
  return builder.finish(eod_content);
}

std::string parse_eos_token(std::string_view text, const std::string& name) {
  const json root = parse_untrusted_json(text, name);
  if (!root.is_object()) return {};
  const json& token = member(root, "eos_token");
  const json& content = token.is_object() ? member(token, "content") : token;
  return content.is_string() ? content.get<std::string>() : std::string();
}

std::string tokenizer_json_text(const BpeVocabulary& vocabulary) {
  const ByteAlphabet alphabet;
  std::string text =
      "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [";
  bool first = true;
  for (const AddedToken& added : vocabulary.added) {
    text += format(
        "{}\n    {{\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, \"rstrip\": "
        "false, "
        "\"normalized\": {}, \"special\": {}}}",
        first ? "" : ",", added.token, json_quoted(added.content), added.normalized ? "true" : "false",
        added.special ? "true" : "false");
    first = false;
  }
  const std::string byte_level = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": ";
  text += first ? "],\n" : "\n  ],\n";
  text += "  \"normalizer\": null,\n";
  text += "  \"pre_tokenizer\": " + byte_level + "true, \"use_regex\": true},\n";
  text += "  \"post_processor\": " + byte_level + "false, \"use_regex\": true},\n";
  text += "  \"decoder\": " + byte_level + "true, \"use_regex\": true},\n";
  text += format(
      "  \"model\": {{\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
      "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": "
      "false,\n"
      "    \"byte_fallback\": false,\n    \"ignore_merges\": {},\n    \"vocab\": ",
      vocabulary.ignore_merges ? "true" : "false");
  text += vocab_json_text(vocabulary) + ",\n    \"merges\": [";
  first = true;
  for (const BpeMerge& merge : vocabulary.merges) {
    text += first ? "\n" : ",\n";
    text += "      " + json_quoted(vocabulary.file_text(merge.left, alphabet) + ' ' +
                                   vocabulary.file_text(merge.right, alphabet));
    first = false;
  }
  return text + (first ? "]\n  }\n}\n" : "\n    ]\n  }\n}\n");
}

}  // namespace megalith
