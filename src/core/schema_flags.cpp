// Command-line arguments into settings.
#include <algorithm>

#include "core/format.h"
#include "core/schema.h"
#include "core/schema_intake.h"
#include "core/schema_values.h"

namespace megalith {
namespace {

/// "-x" and "--x", but not "-", "-3" and "--".
bool looks_like_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--" && !is_negative_number(word);
}

/// Words from `index` on up to the next flag.
std::size_t end_of_values(std::span<const std::string> arguments, std::size_t index) {
  while (index < arguments.size() && arguments[index] != "--" && !looks_like_flag(arguments[index])) ++index;
  return index;
}

const ForeignFlag* find_foreign(const std::vector<ForeignFlag>& flags, std::string_view name) {
  const std::string key = key_form(name);
  for (const ForeignFlag& flag : flags) {
    if (key_form(flag.name) == key) return &flag;
  }
  return nullptr;
}

}  // namespace

void Schema::read_flags(std::span<const std::string> arguments, SchemaIntake& intake) {
  for (std::size_t i = 0; i < arguments.size();) {
    if (arguments[i] == "--") {
      intake.words.insert(intake.words.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                          arguments.end());
      break;
    }
    if (looks_like_flag(arguments[i])) {
      i = read_flag(arguments, i, intake);
    } else {
      intake.words.push_back(arguments[i++]);
    }
  }
  if (positional_field_ != nullptr) return;
  for (const std::string& word : intake.words) {
    std::string hint;
    const auto position = std::find(arguments.begin(), arguments.end(), word);
    if (position != arguments.begin() && position != arguments.end()) {
      const std::string& before = *(position - 1);
      const Setting* key =
          looks_like_flag(before) ? find(before.substr(before.find_first_not_of('-'))) : nullptr;
      if (key != nullptr && std::holds_alternative<bool>(key->default_value_)) {
        hint = format("; {} is a switch and takes no value (write {}={} or {})", before, before, word,
                      "--no-" + key->flag().substr(2));
      }
    }
    intake.errors.push_back(format("'{}': this word belongs to no flag{}", word, hint));
  }
}

std::size_t Schema::read_flag(std::span<const std::string> arguments, std::size_t index,
                              SchemaIntake& intake) {
  const std::string& word = arguments[index];
  const std::size_t equals = word.find('=');
  const std::string flag_word = word.substr(0, equals);
  std::optional<std::string> attached;
  if (equals != std::string::npos) attached = word.substr(equals + 1);
  ++index;

  Setting* key = nullptr;
  bool negated = false;
  const std::string name = flag_word.substr(flag_word.starts_with("--") ? 2 : 1);
  if (flag_word.starts_with("--")) {
    if (accepts_config_file_ && name == "config") {
      if (!attached && index >= arguments.size()) intake.errors.emplace_back("--config: needs a FILE");
      return attached ? index : index + 1;
    }
    key = find(name);
    if (key == nullptr && (name.starts_with("no-") || name.starts_with("no_"))) {
      key = find(name.substr(3));
      negated = key != nullptr && std::holds_alternative<bool>(key->default_value_);
      if (!negated) key = nullptr;
    }
  } else {
    for (const auto& candidate : settings_) {
      if (name.size() == 1 && candidate->short_flag_ == name[0]) key = candidate.get();
    }
  }
  if (key == nullptr) {
    if (const ForeignFlag* foreign =
            flag_word.starts_with("--") ? find_foreign(foreign_flags_, name) : nullptr) {
      return read_foreign(*foreign, attached, arguments, index, intake);
    }
    if (flag_word.starts_with("--no-") && !attached) {
      const ForeignFlag* foreign = find_foreign(foreign_flags_, name.substr(3));
      if (foreign != nullptr && foreign->values == 0) return index;  // switches off what is off
    }
    complain_unknown_flag(flag_word, intake);
    return positional_field_ != nullptr ? index : end_of_values(arguments, index);
  }

  if (std::holds_alternative<bool>(key->default_value_)) {
    if (negated && attached) {
      intake.errors.push_back(format("{}: takes no value; write {} or {}", word, flag_word, key->flag()));
      return index;
    }
    const std::string text = attached ? *attached : negated ? "false" : "true";
    store(*key, std::span(&text, 1), SettingOrigin::flag, attached ? word : flag_word, intake);
    return index;
  }
  const bool array = key->default_value_.index() >= 4;
  if (attached) {
    store(*key, std::span(&*attached, 1), SettingOrigin::flag, flag_word, intake);
    return index;
  }
  const std::size_t end = array ? end_of_values(arguments, index)
                                : index + (index < arguments.size() && arguments[index] != "--" &&
                                                   !looks_like_flag(arguments[index])
                                               ? 1
                                               : 0);
  if (end == index && !array) {
    key->faulty_ = true;
    key->origin_ = SettingOrigin::flag;
    std::string hint;
    if (index < arguments.size() && arguments[index] != "--") {
      hint = format("; '{}' looks like a flag (write {}={} if it is the value)", arguments[index], flag_word,
                    arguments[index]);
    }
    intake.errors.push_back(format("{}: needs a value ({}){}", flag_word, key->metavar_text(), hint));
    return index;
  }
  store(*key, arguments.subspan(index, end - index), SettingOrigin::flag, flag_word, intake);
  return end;
}

std::size_t Schema::read_foreign(const ForeignFlag& flag, const std::optional<std::string>& attached,
                                 std::span<const std::string> arguments, std::size_t index,
                                 SchemaIntake& intake) {
  const std::string place = "--" + flag.name;
  if (attached) {
    apply_foreign(flag, place, *attached, intake);
    return index;
  }
  const std::size_t available = end_of_values(arguments, index) - index;
  const std::size_t taken =
      flag.values < 0 ? available : std::min(available, static_cast<std::size_t>(flag.values));
  if (flag.values > 0 && taken < static_cast<std::size_t>(flag.values)) {
    intake.errors.push_back(format("{}: needs {} value{}", place, flag.values, flag.values == 1 ? "" : "s"));
    return index + taken;
  }
  std::string value;
  for (std::size_t i = index; i < index + taken; ++i)
    value += format("{}{}", i == index ? "" : " ", arguments[i]);
  apply_foreign(flag, place, value, intake);
  return index + taken;
}

void Schema::complain_unknown_flag(const std::string& word, SchemaIntake& intake) const {
  std::vector<std::string> names;
  for (const std::string& name : all_names()) {
    std::string flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    names.push_back(std::move(flag));
  }
  std::string dashed = word;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (!dashed.starts_with("--") && dashed.size() > 2) dashed = "-" + dashed;
  std::string hint = suggestion(dashed, names);
  if (hint.empty() && dashed.starts_with("--no-")) hint = suggestion("--" + dashed.substr(5), names);
  if (hint.empty()) hint = format("; megalith {} --help lists all", command_);
  intake.errors.push_back(format("{}: unknown flag{}", word, hint));
}

}  // namespace megalith
