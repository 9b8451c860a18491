// The effective config: every key with its value and where that came from.
#include "core/format.h"
#include "core/schema.h"
#include "core/schema_values.h"
#include "core/version_data.h"

namespace megalith {

std::string Schema::effective_toml() const {
  std::string text = format("# Effective config of megalith {} (version {}, commit {}).\n", command_,
                            version_number, version_commit);
  text +=
      "# Derived values are comments: reading this file computes them again. So is what concerned one start "
      "only.\n";
  std::vector<std::pair<std::string, std::string>> sections = {{"", ""}};
  sections.insert(sections.end(), sections_.begin(), sections_.end());
  for (const auto& [name, description] : sections) {
    std::string body;
    for (const auto& key : settings_) {
      if (key->section_ != name) continue;
      const bool derived = key->origin_ == SettingOrigin::derived;
      std::string origin;
      switch (key->origin_) {
        case SettingOrigin::by_default:
          origin = "default";
          break;
        case SettingOrigin::file:
        case SettingOrigin::flag:
          origin = key->origin_place_;
          break;
        case SettingOrigin::derived:
          origin = key->default_text_.empty() ? "derived" : "derived: " + key->default_text_;
          break;
      }
      // A comment may hold no control characters; a path may.
      for (char& c : origin) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
      }
      const bool is_comment = (derived && !key->kept_in_effective_) || key->once_;
      body +=
          format("{}{} = {}  # {}\n", is_comment ? "# " : "", key->name_, setting_toml(key->value()), origin);
    }
    if (body.empty()) continue;
    text += name.empty() ? "\n" + body : format("\n[{}]\n{}", name, body);
  }
  return text;
}

}  // namespace megalith
