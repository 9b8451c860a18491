// Entries of a TOML file into settings, and suggestions for misspelt names.
#include <algorithm>

#include "core/format.h"
#include "core/schema.h"
#include "core/schema_intake.h"
#include "core/schema_values.h"

namespace megalith {

std::string key_form(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Letters to insert, remove, replace or swap with their neighbour (Damerau 1964), whatever their case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t longest = 128;
  std::string best;
  if (word.empty() || word.size() > longest) return best;
  std::size_t best_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates,
                       std::string_view prefix) {
  const std::string nearest = nearest_name(word, candidates);
  return nearest.empty() ? "" : format("; did you mean {}{}?", prefix, nearest);
}

bool Schema::read_config_file(const std::string& path, SchemaIntake& intake) {
  const std::size_t errors_before = intake.errors.size();
  const std::vector<ConfigEntry> entries = read_toml_entries(path, intake.errors);
  const bool is_readable = intake.errors.size() == errors_before;
  for (const ConfigEntry& entry : entries) read_config_key(entry, intake);
  return is_readable;
}

void Schema::read_config_key(const ConfigEntry& entry, SchemaIntake& intake) {
  const auto complain = [&](const std::string& text) { intake.errors.push_back(entry.place + ": " + text); };
  std::vector<std::string> section_names;
  for (const auto& [name, description] : sections_) {
    if (!name.empty()) section_names.push_back(name);
  }
  const bool known_section = entry.section.empty() || std::find(section_names.begin(), section_names.end(),
                                                                entry.section) != section_names.end();
  if (entry.key.empty()) {
    if (!known_section) {
      complain(format("[{}]: unknown section{}", entry.section, suggestion(entry.section, section_names)));
    }
    return;
  }
  Setting* key = find(entry.key);
  if (key != nullptr && entry.key != key->name_ && key_form(entry.key) == key->name_) {
    complain(format("{}: keys are written with underscores: {}", entry.key, key->name_));
    return;
  }
  if (key == nullptr) {
    for (const ForeignFlag& flag : foreign_flags_) {
      if (key_form(flag.name) != entry.key) continue;
      const auto* on = std::get_if<bool>(&entry.value);
      if (on != nullptr && !*on && flag.values == 0) return;
      const std::string value = on != nullptr && flag.values == 0 ? "" : setting_text(entry.value);
      apply_foreign(flag, format("{}: {}", entry.place, entry.key), value, intake);
      return;
    }
    complain(format("{}: unknown key{}{}", entry.key,
                    known_section ? "" : format(" in unknown section [{}]", entry.section),
                    suggestion(key_form(entry.key), all_names())));
    return;
  }
  if (!entry.section.empty() && entry.section != key->section_) {
    complain(format(
        "{}: stands in section [{}]; it belongs to [{}] (or to the top of the file, before any section)",
        entry.key, entry.section, key->section_));
    key->faulty_ = true;
    key->origin_ = SettingOrigin::file;
    return;
  }
  SettingValue value;
  if (!entry.unusable.empty() || !convert_setting_value(entry.value, key->default_value_, value)) {
    const bool empty_array =
        entry.unusable.empty() && entry.value == SettingValue(std::vector<std::string>());
    if (empty_array && std::holds_alternative<std::vector<std::int64_t>>(key->default_value_)) {
      store_value(*key, std::vector<std::int64_t>(), SettingOrigin::file, entry.place, intake);
      return;
    }
    // Weights in a blend may be written as numbers.
    const auto* integers = std::get_if<std::vector<std::int64_t>>(&entry.value);
    if (entry.unusable.empty() && integers != nullptr &&
        std::holds_alternative<std::vector<std::string>>(key->default_value_)) {
      std::vector<std::string> texts;
      for (const std::int64_t number : *integers) texts.push_back(format("{}", number));
      store_value(*key, texts, SettingOrigin::file, entry.place, intake);
      return;
    }
    key->faulty_ = true;
    key->origin_ = SettingOrigin::file;
    if (!entry.unusable.empty()) {
      complain(format("{}: {}", entry.key, entry.unusable));
    } else {
      complain(format("{} = {}: is {}; must be {}", entry.key, setting_toml(entry.value),
                      setting_type_name(entry.value), setting_type_name(key->default_value_)));
    }
    return;
  }
  if (key->origin_ == SettingOrigin::file && key->origin_place_.substr(0, key->origin_place_.find(':')) ==
                                                 entry.place.substr(0, entry.place.find(':'))) {
    complain(format("{}: is set a second time; the first stands at {}", entry.key, key->origin_place_));
  }
  store_value(*key, value, SettingOrigin::file, entry.place, intake);
}

}  // namespace megalith
