// Setting: the rules of one key and how they read.
#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "core/schema.h"
#include "core/schema_intake.h"
#include "core/schema_values.h"

namespace megalith {
namespace {

std::string bound_text(double bound) {
  if (bound == std::floor(bound) && std::abs(bound) < 9e15)
    return format("{}", static_cast<std::int64_t>(bound));
  return shortest(bound);
}

}  // namespace

Setting::Setting(std::string section, std::string name, SettingField field, SettingValue default_value,
                 std::string help)
    : section_(std::move(section)),
      name_(std::move(name)),
      field_(field),
      default_value_(std::move(default_value)),
      help_(std::move(help)) {}

Setting& Setting::required() {
  required_ = true;
  return *this;
}

Setting& Setting::at_least(double minimum) {
  minimum_ = minimum;
  minimum_open_ = false;
  return *this;
}

Setting& Setting::at_most(double maximum) {
  maximum_ = maximum;
  maximum_open_ = false;
  return *this;
}

Setting& Setting::more_than(double bound) {
  minimum_ = bound;
  minimum_open_ = true;
  return *this;
}

Setting& Setting::less_than(double bound) {
  maximum_ = bound;
  maximum_open_ = true;
  return *this;
}

Setting& Setting::one_of(std::vector<std::string> choices) {
  choices_ = std::move(choices);
  return *this;
}

Setting& Setting::refuses(std::string value, std::string reason) {
  refused_.emplace_back(std::move(value), std::move(reason));
  return *this;
}

Setting& Setting::metavar(std::string name) {
  metavar_ = std::move(name);
  return *this;
}

Setting& Setting::short_flag(char letter) {
  short_flag_ = letter;
  return *this;
}

Setting& Setting::alias(std::string other_name) {
  aliases_.push_back(std::move(other_name));
  return *this;
}

Setting& Setting::completes_file() {
  completes_file_ = true;
  return *this;
}

Setting& Setting::default_to(const SettingValue& value) {
  assign_field(field_, value);
  default_value_ = value;
  default_text_.clear();
  required_ = false;
  return *this;
}

Setting& Setting::default_text(std::string text) {
  default_text_ = std::move(text);
  return *this;
}

Setting& Setting::once() {
  once_ = true;
  return *this;
}

Setting& Setting::hidden() {
  hidden_ = true;
  return *this;
}

std::string Setting::flag() const {
  std::string text = "--" + name_;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string Setting::type_name() const {
  return std::string(setting_type_name(default_value_));
}

SettingValue Setting::value() const {
  return field_value(field_);
}

std::string Setting::metavar_text() const {
  if (std::holds_alternative<bool>(default_value_)) return "";
  const bool array = default_value_.index() >= 4;
  if (!metavar_.empty())
    return array && metavar_.find("...") == std::string::npos ? metavar_ + " ..." : metavar_;
  if (completes_file_) return array ? "FILE ..." : "FILE";
  constexpr std::string_view names[] = {"", "N", "X", "TEXT", "N ...", "TEXT ..."};
  return std::string(names[default_value_.index()]);
}

std::string Setting::default_as_text() const {
  if (!default_text_.empty()) return default_text_;
  if (required_) return "";
  if (const auto* flag = std::get_if<bool>(&default_value_)) return *flag ? "on" : "off";
  return setting_text(default_value_);
}

std::string Setting::rule_text() const {
  if (!choices_.empty()) {
    std::string text = "one of: ";
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      text += format("{}{}", i == 0 ? "" : ", ", choices_[i].empty() ? "\"\"" : choices_[i]);
    }
    return text;
  }
  std::string text;
  if (minimum_) text = format("{} {}", minimum_open_ ? "more than" : "at least", bound_text(*minimum_));
  if (maximum_) {
    text += format("{}{} {}", text.empty() ? "" : ", ", maximum_open_ ? "less than" : "at most",
                   bound_text(*maximum_));
  }
  return text;
}

std::string Setting::complaint_about(const SettingValue& value) const {
  if (value == default_value_ && !required_) return "";
  if (!choices_.empty()) {
    const auto allowed = [this](const std::string& word) {
      return std::find(choices_.begin(), choices_.end(), word) != choices_.end();
    };
    std::vector<std::string> words;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      words = *texts;
    } else {
      words.push_back(setting_text(value));
    }
    for (const std::string& word : words) {
      for (const auto& [refused, reason] : refused_) {
        if (word == refused) return "is refused: " + reason;
      }
      if (!allowed(word)) return format("must be {}{}", rule_text(), suggestion(word, choices_));
    }
    return "";
  }
  std::vector<double> numbers;
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    numbers.push_back(static_cast<double>(*integer));
  if (const auto* number = std::get_if<double>(&value)) numbers.push_back(*number);
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    numbers.assign(integers->begin(), integers->end());
  }
  for (const double number : numbers) {
    const bool low = minimum_ && (minimum_open_ ? number <= *minimum_ : number < *minimum_);
    const bool high = maximum_ && (maximum_open_ ? number >= *maximum_ : number > *maximum_);
    if (!low && !high) continue;
    const bool whole = !std::holds_alternative<double>(default_value_);
    const double bound = low ? *minimum_ : *maximum_;
    const bool open = low ? minimum_open_ : maximum_open_;
    std::string nearest;
    if (!open) {
      nearest = format("; the nearest is {}", bound_text(bound));
    } else if (whole) {
      nearest = format("; the nearest is {}", bound_text(low ? bound + 1 : bound - 1));
    }
    return format("must be {}{}", rule_text(), nearest);
  }
  return "";
}

}  // namespace megalith
