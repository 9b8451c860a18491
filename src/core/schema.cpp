#include "core/schema.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/schema_intake.h"
#include "core/schema_values.h"
#include "core/utf8.h"

namespace megalith {

SettingValue field_value(const SettingField& field) {
  return std::visit([](const auto* bound) -> SettingValue { return *bound; }, field);
}

void assign_field(const SettingField& field, const SettingValue& value) {
  std::visit(
      [&value](auto* bound) {
        using Value = std::remove_pointer_t<decltype(bound)>;
        MEGALITH_ASSERT(std::holds_alternative<Value>(value),
                        "a setting's value has another type than its field");
        *bound = std::get<Value>(value);
      },
      field);
}

Schema::Schema(std::string command, std::string summary)
    : command_(std::move(command)), summary_(std::move(summary)) {}

void Schema::section(std::string name, std::string description) {
  current_section_ = name;
  const auto same = [&name](const auto& known) { return known.first == name; };
  if (std::any_of(sections_.begin(), sections_.end(), same)) return;
  sections_.emplace_back(std::move(name), std::move(description));
}

Setting& Schema::add(std::string name, SettingField field, const SettingValue& default_value,
                     std::string help) {
  MEGALITH_ASSERT(find(name) == nullptr, format("two settings of the name {}", name));
  const SettingValue like = field_value(field);
  SettingValue value = like;
  const bool is_array = like.index() >= 4;
  if (is_array && default_value == SettingValue(false)) {
    value = std::holds_alternative<std::vector<std::string>>(like)
                ? SettingValue(std::vector<std::string>())
                : SettingValue(std::vector<std::int64_t>());
  } else {
    MEGALITH_ASSERT(convert_setting_value(default_value, like, value),
                    format("the default of {} has another type than its field", name));
  }
  assign_field(field, value);
  return *settings_.emplace_back(
      std::make_unique<Setting>(current_section_, std::move(name), field, std::move(value), std::move(help)));
}

void Schema::positional(std::vector<std::string>& field, std::string metavar, std::string help,
                        std::size_t minimum, std::size_t maximum) {
  positional_field_ = &field;
  positional_metavar_ = std::move(metavar);
  positional_help_ = std::move(help);
  positional_minimum_ = minimum;
  positional_maximum_ = maximum;
}

void Schema::positional_replaces_settings() {
  positional_replaces_settings_ = true;
}

void Schema::accept_config_file() {
  accepts_config_file_ = true;
}

void Schema::foreign_flags(std::vector<ForeignFlag> flags) {
  foreign_flags_.insert(foreign_flags_.end(), flags.begin(), flags.end());
}

void Schema::check(std::function<void(std::vector<std::string>& errors)> rule) {
  checks_.push_back(std::move(rule));
}

void Schema::epilogue(std::string text) {
  epilogue_ = std::move(text);
}

Setting* Schema::find(std::string_view name) const {
  const std::string key = key_form(name);
  for (const auto& setting : settings_) {
    if (setting->name_ == key) return setting.get();
    for (const std::string& alias : setting->aliases_) {
      if (key_form(alias) == key) return setting.get();
    }
  }
  return nullptr;
}

const Setting& Schema::setting(std::string_view name) const {
  const Setting* found = find(name);
  MEGALITH_ASSERT(found != nullptr, format("no setting of the name {}", name));
  return *found;
}

Setting& Schema::setting(std::string_view name) {
  Setting* found = find(name);
  MEGALITH_ASSERT(found != nullptr, format("no setting of the name {}", name));
  return *found;
}

bool Schema::given(std::string_view name) const {
  const SettingOrigin origin = setting(name).origin_;
  return origin == SettingOrigin::file || origin == SettingOrigin::flag;
}

bool Schema::usable(std::initializer_list<std::string_view> names) const {
  return std::none_of(names.begin(), names.end(),
                      [this](std::string_view name) { return setting(name).faulty_; });
}

std::string Schema::describe(std::string_view name) const {
  const Setting& key = setting(name);
  const std::string value = setting_text(key.value());
  if (key.origin_ == SettingOrigin::flag) {
    return std::holds_alternative<bool>(key.default_value_) ? key.origin_place_
                                                            : format("{} {}", key.origin_place_, value);
  }
  if (key.origin_ == SettingOrigin::file) {
    return format("{}: {} = {}", key.origin_place_, key.name_, setting_toml(key.value()));
  }
  return format("{} = {} ({})", key.name_, value,
                key.origin_ == SettingOrigin::derived ? "derived" : "default");
}

void Schema::mark_derived(std::string_view name, bool keep) {
  Setting& key = setting(name);
  key.origin_ = SettingOrigin::derived;
  key.origin_place_.clear();
  key.kept_in_effective_ = keep;
}

void Schema::parse(std::span<const std::string> arguments) {
  std::vector<std::string> notes;
  parse(arguments, notes);
}

void Schema::parse(std::span<const std::string> arguments, std::vector<std::string>& notes) {
  SchemaIntake intake;
  for (const auto& key : settings_) {
    assign_field(key->field_, key->default_value_);
    key->origin_ = SettingOrigin::by_default;
    key->origin_place_.clear();
    key->faulty_ = false;
  }
  // Files first, wherever --config stands: a flag wins over a file.
  for (std::size_t i = 0; accepts_config_file_ && i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i].starts_with("--config=")) {
      intake.config_files.push_back(arguments[i].substr(9));
    } else if (arguments[i] == "--config" && i + 1 < arguments.size()) {
      intake.config_files.push_back(arguments[++i]);
    }
  }
  bool is_readable = true;
  for (const std::string& file : intake.config_files) {
    is_readable = read_config_file(file, intake) && is_readable;
  }
  read_flags(arguments, intake);
  // Complaints about what may well stand in an unreadable file, or is not needed, would hide the true
  // mistake.
  const bool is_complete = is_readable && !(positional_replaces_settings_ && !intake.words.empty());
  for (const auto& key : settings_) {
    if (is_complete && key->required_ && key->origin_ == SettingOrigin::by_default && !key->faulty_) {
      key->faulty_ = true;
      std::string how =
          format("give {}{}{}", key->flag(), key->metavar_text().empty() ? "" : " ", key->metavar_text());
      if (accepts_config_file_) how += format(", or {} in the config file", key->name_);
      intake.errors.push_back(format("{}: is required; {}", key->name_, how));
    }
  }
  if (positional_field_ != nullptr) {
    if (intake.words.size() < positional_minimum_) {
      intake.errors.push_back(format("{}: {} given, at least {} needed: {}", positional_metavar_,
                                     intake.words.size(), positional_minimum_, positional_help_));
    } else if (intake.words.size() > positional_maximum_) {
      intake.errors.push_back(format("'{}': one word too many; at most {} {} allowed",
                                     intake.words[positional_maximum_], positional_maximum_,
                                     positional_metavar_));
    }
    *positional_field_ = std::move(intake.words);
  }
  if (is_complete) {
    for (const auto& rule : checks_) rule(intake.errors);
  }
  for (const auto& [reason, places] : intake.without_effect) {
    const bool several = places.find(", ") != std::string::npos;
    notes.push_back(format("{} {} no effect here: {}", places, several ? "have" : "has", reason));
  }
  notes.insert(notes.end(), intake.notes.begin(), intake.notes.end());
  if (intake.errors.empty()) return;
  std::string text =
      intake.errors.size() == 1 ? intake.errors[0] : format("{} mistakes", intake.errors.size());
  for (std::size_t i = 0; intake.errors.size() > 1 && i < intake.errors.size(); ++i) {
    text += format("\n  {}. {}", i + 1, intake.errors[i]);
  }
  throw Error(ErrorKind::usage, command_, text);
}

void Schema::store(Setting& key, std::span<const std::string> words, SettingOrigin origin,
                   const std::string& place, SchemaIntake& intake) {
  SettingValue value;
  std::string rule;
  if (read_setting_value(words, key.default_value_, value, rule)) {
    store_value(key, value, origin, place, intake);
    return;
  }
  key.faulty_ = true;
  key.origin_ = origin;
  std::string typed;
  for (const std::string& word : words) typed += format("{}'{}'", typed.empty() ? "" : " ", word);
  // A switch's place is the whole word, --x=maybe.
  const bool shown = origin == SettingOrigin::flag && place.find('=') != std::string::npos;
  intake.errors.push_back(shown ? format("{}: {}", place, rule) : format("{} {}: {}", place, typed, rule));
}

void Schema::store_value(Setting& key, const SettingValue& value, SettingOrigin origin,
                         const std::string& place, SchemaIntake& intake) {
  if (key.origin_ == SettingOrigin::flag && origin == SettingOrigin::flag) {
    intake.notes.push_back(format("{} is given more than once; the last one counts", key.flag()));
  }
  assign_field(key.field_, value);
  key.origin_ = origin;
  key.origin_place_ = place;
  key.faulty_ = false;
  std::string complaint = key.complaint_about(value);
  const std::string text = setting_text(value);
  if (complaint.empty() && accepts_config_file_ && !is_utf8(text)) complaint = "must be valid UTF-8";
  if (complaint.empty() && text.find('\0') != std::string::npos) complaint = "must not contain a zero byte";
  if (complaint.empty()) return;
  key.faulty_ = true;
  intake.errors.push_back(format("{}: {}", describe(key.name_), complaint));
}

void Schema::apply_foreign(const ForeignFlag& flag, const std::string& place, const std::string& value,
                           SchemaIntake& intake) const {
  const bool harmless = std::find(flag.harmless.begin(), flag.harmless.end(), value) != flag.harmless.end();
  if (flag.refused && !harmless) {
    intake.errors.push_back(format("{}{}{}: {}", place, value.empty() ? "" : " ", value, flag.reason));
    return;
  }
  if (flag.refused) {
    const std::string note = format("{} {} is what is done anyway", place, value);
    if (std::find(intake.notes.begin(), intake.notes.end(), note) == intake.notes.end()) {
      intake.notes.push_back(note);
    }
    return;
  }
  for (auto& [reason, places] : intake.without_effect) {
    if (reason != flag.reason) continue;
    if ((" " + places + ",").find(" " + place + ",") == std::string::npos) places += ", " + place;
    return;
  }
  intake.without_effect.emplace_back(flag.reason, place);
}

std::vector<std::string> Schema::all_names() const {
  std::vector<std::string> names;
  for (const auto& key : settings_) {
    if (key->hidden_) continue;
    names.push_back(key->name_);
    for (const std::string& alias : key->aliases_) names.push_back(key_form(alias));
  }
  if (accepts_config_file_) names.emplace_back("config");
  return names;
}

}  // namespace megalith
