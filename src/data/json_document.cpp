#include "data/json_document.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/utf8.h"
#include "data/byte_words.h"

namespace megalith {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// Where the texts of a line are put, and what was wrong with a value: said only if no later one of the same
/// key takes its place.
struct Value {
  std::vector<std::string_view>* texts;
  bool found = false;
  std::string fault{};
  std::size_t fault_place = 0;
};

/// Walks over the JSON of one line. Strings are unescaped into `out`, which has room for them all.
class JsonScanner {
 public:
  JsonScanner(std::string_view text, InvalidUtf8 invalid, char* out, std::string_view file,
              std::uint64_t line)
      : text_(text), invalid_(invalid), out_(out), file_(file), line_(line) {
    if (text_.starts_with(byte_order_mark)) place_ = byte_order_mark.size();
  }

  void read_line(std::span<const std::string> keys, std::span<Value> values) {
    skip_white_space();
    const std::size_t begin = place_;
    if (peek() == '{') {
      read_object(keys, values);
    } else {
      skip_value();
    }
    skip_white_space();
    if (place_ < text_.size())
      refuse(place_, "nothing may follow the value; expected one JSON object on each line");
    if (text_[begin] != '{') {
      refuse(begin, format("holds a JSON {}; expected one object on each line", type_at(begin)));
    }
  }

  /// The object's keys, for a message.
  std::string key_list() {
    std::string list;
    skip_white_space();
    read_members([&](std::string_view key) {
      if (list.size() < 80) list.append(list.empty() ? "" : ", ").append(key);
      skip_value();
    });
    return list.empty() ? "none" : list;
  }

  [[noreturn]] void refuse(std::size_t place, std::string_view what) const {
    fail(ErrorKind::input, format("{}:{}:{}", file_, line_, place + 1), "{}", what);
  }

 private:
  static constexpr int end_of_text = -1;

  int peek() const { return place_ < text_.size() ? static_cast<unsigned char>(text_[place_]) : end_of_text; }

  void skip_white_space() {
    while (place_ < text_.size() && (text_[place_] == ' ' || text_[place_] == '\t' || text_[place_] == '\n' ||
                                     text_[place_] == '\r')) {
      ++place_;
    }
  }

  [[noreturn]] void refuse_here(std::string_view expected) const {
    const char* const ended = place_ < text_.size() ? "" : "the line ends too early: ";
    refuse(place_, format("{}expected {}; expected one JSON object on each line", ended, expected));
  }
  [[noreturn]] void refuse_encoding(std::size_t place, std::string_view what) const {
    refuse(place, format("{}; repair the file, or give --invalid-utf8 replace", what));
  }

  std::string_view type_at(std::size_t place) const {
    switch (text_[place]) {
      case '{':
        return "object";
      case '[':
        return "array";
      case '"':
        return "string";
      case 't':
      case 'f':
        return "boolean";
      case 'n':
        return "null";
      default:
        return "number";
    }
  }

  /// Calls member(key) for each member, with the place at its value.
  template <typename Member>
  void read_members(Member&& member) {
    ++place_;
    skip_white_space();
    if (peek() == '}') {
      ++place_;
      return;
    }
    while (true) {
      member(read_key());
      skip_white_space();
      if (peek() != ',' && peek() != '}') refuse_here("',' or '}' after a member of the object");
      if (text_[place_++] == '}') return;
      skip_white_space();
    }
  }

  /// A key and the colon; valid until the next string is read.
  std::string_view read_key() {
    if (peek() != '"') refuse_here("a key in quotation marks");
    const std::string_view key = read_string();
    skip_white_space();
    if (peek() != ':') refuse_here("':' after the key");
    ++place_;
    skip_white_space();
    return key;
  }

  void read_object(std::span<const std::string> keys, std::span<Value> values) {
    read_members([&](std::string_view key) {
      const auto wanted = std::find(keys.begin(), keys.end(), key);
      if (wanted == keys.end()) {
        skip_value();
      } else {
        read_texts(key, values[static_cast<std::size_t>(wanted - keys.begin())]);
      }
    });
  }

  void keep_string(Value& value) {
    const std::string_view text = read_string();
    value.texts->push_back(text);
    out_ += text.size();
  }

  void read_texts(std::string_view key, Value& value) {
    value.texts->clear();
    value.found = true;
    value.fault.clear();
    value.fault_place = place_;
    if (peek() == '"') {
      keep_string(value);
    } else if (peek() != '[') {
      const std::size_t begin = place_;
      const std::string name(key);
      skip_value();
      value.fault =
          format("key \"{}\" holds a {}; expected a string, or a list of strings", name, type_at(begin));
    } else {
      const std::string name(key);
      read_elements([&] {
        if (peek() == '"') return keep_string(value);
        const std::size_t begin = place_;
        skip_value();
        if (!value.fault.empty()) return;
        value.fault_place = begin;
        value.fault =
            format("the list of key \"{}\" holds a {}; expected strings only", name, type_at(begin));
      });
    }
  }

  /// Calls element() for each element of a list, with the place there.
  template <typename Element>
  void read_elements(Element&& element) {
    ++place_;
    skip_white_space();
    if (peek() == ']') {
      ++place_;
      return;
    }
    while (true) {
      element();
      skip_white_space();
      if (peek() != ',' && peek() != ']') refuse_here("',' or ']' after an element of the list");
      if (text_[place_++] == ']') return;
      skip_white_space();
    }
  }

  /// Any value, however deep. `open` are the brackets around the place.
  void skip_value() {
    std::string open;
    while (true) {
      const int first = peek();
      if (first == '{' || first == '[') {
        ++place_;
        skip_white_space();
        if (peek() != (first == '{' ? '}' : ']')) {
          open.push_back(static_cast<char>(first));
          if (first == '{') read_key();
          continue;
        }
        ++place_;
      } else {
        skip_scalar(first);
      }
      while (true) {  // the value has ended, and with it perhaps those around it
        if (open.empty()) return;
        skip_white_space();
        const bool object = open.back() == '{';
        if (peek() == ',') break;
        if (peek() != (object ? '}' : ']')) {
          refuse_here(object ? "',' or '}' after a member of the object"
                             : "',' or ']' after an element of the list");
        }
        open.pop_back();
        ++place_;
      }
      ++place_;
      skip_white_space();
      if (open.back() == '{') read_key();
    }
  }

  void skip_scalar(int first) {
    if (first == '"') {
      read_string();
    } else if (first == 't') {
      skip_literal("true");
    } else if (first == 'f') {
      skip_literal("false");
    } else if (first == 'n') {
      skip_literal("null");
    } else if (first == '-' || (first >= '0' && first <= '9')) {
      skip_number();
    } else {
      refuse_here("a value");
    }
  }

  void skip_literal(std::string_view literal) {
    for (const char letter : literal) {
      if (peek() != letter) refuse_here(format("'{}'", literal));
      ++place_;
    }
  }

  bool at_digit() const { return peek() >= '0' && peek() <= '9'; }
  void skip_digits() {
    if (!at_digit()) refuse_here("a digit");
    while (at_digit()) ++place_;
  }
  void skip_number() {
    if (peek() == '-') ++place_;
    if (peek() == '0') {
      ++place_;
    } else {
      skip_digits();
    }
    if (peek() == '.') {
      ++place_;
      skip_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++place_;
      if (peek() == '+' || peek() == '-') ++place_;
      skip_digits();
    }
  }

  /// The string at the place, unescaped at `out_`; the next one overwrites it unless `out_` moves on.
  std::string_view read_string() {
    ++place_;
    char* out = out_;
    while (true) {
      // Eight bytes at a time as far as nothing in them is special; most text goes through here.
      while (place_ + 8 <= text_.size()) {
        const std::uint64_t word = load_word(text_.data() + place_);
        store_word(out, word);
        const std::uint64_t special =
            bytes_below(word, 0x20) | bytes_equal(word, '"') | bytes_equal(word, '\\') | (word & high_bits);
        const std::size_t plain = special == 0 ? 8 : first_marked(special);
        place_ += plain;
        out += plain;
        if (special != 0) break;
      }
      const int byte = peek();
      if (byte == '"') break;
      if (byte == '\\') {
        read_escape(out);
      } else if (byte >= 0x80) {
        read_wide(out);
      } else if (byte >= 0x20) {
        *out++ = static_cast<char>(byte);
        ++place_;
      } else if (byte == end_of_text) {
        refuse_here("a quotation mark that closes the string");
      } else {
        refuse(place_,
               format("a string holds the control character \\u{:04x}, which must be written so", byte));
      }
    }
    ++place_;
    return {out_, static_cast<std::size_t>(out - out_)};
  }

  static void append(char*& out, std::string_view bytes) {
    std::memcpy(out, bytes.data(), bytes.size());
    out += bytes.size();
  }

  void read_wide(char*& out) {
    const std::size_t bytes = utf8_sequence_at(text_, place_).bytes;
    if (bytes != 0) {
      append(out, text_.substr(place_, bytes));
      place_ += bytes;
      return;
    }
    if (invalid_ == InvalidUtf8::refuse) {
      refuse_encoding(place_, format("the byte 0x{:02x} does not belong to UTF-8 text", peek()));
    }
    append(out, replacement);
    ++place_;
  }

  /// The number in \uXXXX at `place`, or -1.
  int escaped_unit(std::size_t place) const {
    if (place + 6 > text_.size() || text_[place] != '\\' || text_[place + 1] != 'u') return -1;
    int value = 0;
    for (std::size_t i = 2; i < 6; ++i) {
      const char letter = text_[place + i];
      const int digit = letter >= '0' && letter <= '9'   ? letter - '0'
                        : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                        : letter >= 'A' && letter <= 'F' ? letter - 'A' + 10
                                                         : -1;
      if (digit < 0) return -1;
      value = value * 16 + digit;
    }
    return value;
  }

  void read_escape(char*& out) {
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    const char letter = place_ + 1 < text_.size() ? text_[place_ + 1] : '\0';
    if (letter != 'u') {
      const std::size_t known = letter == '\0' ? std::string_view::npos : letters.find(letter);
      if (known == std::string_view::npos) refuse(place_, "a backslash begins no escape that JSON knows");
      *out++ = meanings[known];
      place_ += 2;
      return;
    }
    const int unit = escaped_unit(place_);
    if (unit < 0) refuse(place_, "\\u wants four hexadecimal digits behind it");
    auto code_point = static_cast<std::uint32_t>(unit);
    std::size_t bytes = 6;
    if (unit >= 0xd800 && unit < 0xe000) {
      const int second = unit < 0xdc00 ? escaped_unit(place_ + 6) : -1;
      if (second >= 0xdc00 && second < 0xe000) {
        code_point =
            0x10000U + ((code_point - 0xd800U) << 10U) + (static_cast<std::uint32_t>(second) - 0xdc00U);
        bytes = 12;
      } else if (invalid_ == InvalidUtf8::refuse) {
        refuse_encoding(place_, format("{} is half of a surrogate pair", text_.substr(place_, 6)));
      } else {
        code_point = 0xfffd;
      }
    }
    append_code_point(out, code_point);
    place_ += bytes;
  }

  static void append_code_point(char*& out, std::uint32_t code_point) {
    const auto put = [&](std::uint32_t byte) { *out++ = static_cast<char>(byte); };
    const auto continuation = [&](unsigned shift) { put(0x80U | ((code_point >> shift) & 0x3fU)); };
    if (code_point < 0x80) {
      put(code_point);
    } else if (code_point < 0x800) {
      put(0xc0U | (code_point >> 6U));
      continuation(0);
    } else if (code_point < 0x10000) {
      put(0xe0U | (code_point >> 12U));
      continuation(6);
      continuation(0);
    } else {
      put(0xf0U | (code_point >> 18U));
      continuation(12);
      continuation(6);
      continuation(0);
    }
  }

  std::string_view text_;
  InvalidUtf8 invalid_;
  char* out_;
  std::string_view file_;
  std::uint64_t line_;
  std::size_t place_ = 0;
};

}  // namespace

std::span<const std::vector<std::string_view>> JsonTexts::read(std::string_view json, std::string_view file,
                                                               std::uint64_t line) {
  // A byte that is replaced becomes three; whole words are stored, so some bytes behind the last may change.
  const std::size_t room = json.size() * (invalid_ == InvalidUtf8::replace ? replacement.size() : 1) + 16;
  if (unescaped_.size() < room) unescaped_.resize(room);
  values_.resize(keys_.size());
  std::vector<Value> values;
  values.reserve(values_.size());
  for (std::vector<std::string_view>& texts : values_) {
    texts.clear();
    values.push_back({.texts = &texts});
  }
  JsonScanner scanner(json, invalid_, unescaped_.data(), file, line);
  scanner.read_line(keys_, values);
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!values[k].found) {
      const std::string present = JsonScanner(json, invalid_, unescaped_.data(), file, line).key_list();
      fail(ErrorKind::input, format("{}:{}:1", file, line),
           "has no key \"{}\"; it has: {}. Name the key that holds the text by --json-keys", keys_[k],
           present);
    }
    if (!values[k].fault.empty()) scanner.refuse(values[k].fault_place, values[k].fault);
  }
  return values_;
}

}  // namespace megalith
