// --help, the reference page and the man page of a subcommand.
#include <algorithm>

#include "core/format.h"
#include "core/schema.h"
#include "core/version_data.h"

namespace megalith {
namespace {

constexpr std::size_t help_width = 96;
constexpr std::size_t help_indent = 34;

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::size_t length = end - start;
    if (column > indent && column + 1 + length > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(start, length);
    column += length;
    start = end + 1;
  }
  return out;
}

std::string flags_of(const Setting& key) {
  std::string text = key.short_flag_letter() != 0 ? format("-{}, ", key.short_flag_letter()) : "";
  text += key.flag();
  for (const std::string& alias : key.aliases()) text += ", --" + alias;
  return text;
}

/// "rule; default 3"
std::string notes_of(const Setting& key) {
  std::string notes = key.is_required() ? "required" : "";
  const auto append = [&notes](const std::string& note) {
    notes += format("{}{}", notes.empty() ? "" : "; ", note);
  };
  if (!key.rule_text().empty()) append(key.rule_text());
  if (!key.default_as_text().empty()) append("default: " + key.default_as_text());
  return notes;
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    if (c == '<') {
      cell += "&lt;";
    } else {
      cell += c == '\n' ? ' ' : c;
    }
  }
  return cell;
}

std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

}  // namespace

std::vector<const Setting*> Schema::visible_settings(std::string_view section) const {
  std::vector<const Setting*> found;
  for (const auto& key : settings_) {
    if (key->section_ == section && !key->hidden_) found.push_back(key.get());
  }
  return found;
}

std::string Schema::usage_line() const {
  std::string line = "megalith " + command_;
  if (accepts_config_file_) line += " [--config FILE]";
  for (const auto& key : settings_) {
    if (!key->required_ || accepts_config_file_) continue;
    line += format(" {} {}", key->flag(), key->metavar_text());
  }
  line += " [flags]";
  if (positional_field_ != nullptr) line += " " + positional_metavar_;
  return line;
}

std::string Schema::help_text(bool colour) const {
  const std::string bold = colour ? "\x1b[1m" : "";
  const std::string plain = colour ? "\x1b[0m" : "";
  std::string text = format("{}\n\n{}Usage:{} {}\n", summary_, bold, plain, usage_line());
  const auto row = [&](const std::string& left, const std::string& right) {
    text += format("  {}{}{}", bold, left, plain);
    const bool own_line = left.size() + 4 > help_indent;
    text += own_line ? "\n" + std::string(help_indent, ' ') : std::string(help_indent - 2 - left.size(), ' ');
    text += wrapped(right, help_indent, help_width) + "\n";
  };
  if (positional_field_ != nullptr) {
    text += "\n";
    row(positional_metavar_, positional_help_);
  }
  std::vector<std::pair<std::string, std::string>> sections = sections_;
  if (sections.empty() ||
      std::none_of(sections.begin(), sections.end(), [](const auto& s) { return s.first.empty(); })) {
    sections.insert(sections.begin(), {"", ""});
  }
  for (const auto& [name, description] : sections) {
    const std::vector<const Setting*> keys = visible_settings(name);
    if (keys.empty()) continue;
    if (accepts_config_file_ && !name.empty()) {
      text += format("\n{}[{}]{} {}\n", bold, name, plain, description);
    } else {
      text += format("\n{}{}{}\n", bold, description.empty() ? "Flags" : description, plain);
    }
    for (const Setting* key : keys) {
      std::string left = flags_of(*key);
      if (!key->metavar_text().empty()) left += " " + key->metavar_text();
      std::string right = key->help();
      const std::string notes = notes_of(*key);
      if (!notes.empty()) right += format(" ({})", notes);
      row(left, right);
    }
  }
  text += "\n";
  if (accepts_config_file_) {
    row("--config FILE",
        "read a TOML file first; flags win over it. May be given several times; later files win.");
  }
  row("-h, --help", "this text");
  if (!epilogue_.empty()) text += "\n" + epilogue_ + "\n";
  return text;
}

std::string Schema::reference_markdown() const {
  std::string text = format("## megalith {}\n\n{}\n\n    {}\n", command_, summary_, usage_line());
  if (positional_field_ != nullptr) text += format("\n`{}`: {}\n", positional_metavar_, positional_help_);
  std::vector<std::pair<std::string, std::string>> sections = {{"", ""}};
  sections.insert(sections.end(), sections_.begin(), sections_.end());
  for (const auto& [name, description] : sections) {
    const std::vector<const Setting*> keys = visible_settings(name);
    if (keys.empty()) continue;
    if (!name.empty())
      text += format("\n### {}{}{}: {}\n", accepts_config_file_ ? "[" : "", name,
                     accepts_config_file_ ? "]" : "", description);
    text += accepts_config_file_ ? "\n| key | type | default | rule | meaning |\n|---|---|---|---|---|\n"
                                 : "\n| flag | type | default | rule | meaning |\n|---|---|---|---|---|\n";
    for (const Setting* key : keys) {
      std::string name_cell = "`" + (accepts_config_file_ ? key->name() : key->flag()) + "`";
      if (key->short_flag_letter() != 0) name_cell += format(", `-{}`", key->short_flag_letter());
      for (const std::string& alias : key->aliases()) name_cell += format(", `--{}`", alias);
      const std::string default_cell =
          key->is_required() ? "required" : markdown_cell(key->default_as_text());
      text += format("| {} | {} | {} | {} | {} |\n", name_cell, key->type_name(), default_cell,
                     markdown_cell(key->rule_text()), markdown_cell(key->help()));
    }
  }
  if (!epilogue_.empty()) text += "\n```text\n" + epilogue_ + "\n```\n";
  return text;
}

std::string Schema::man_page() const {
  std::string dashed = "megalith-" + command_;
  std::replace(dashed.begin(), dashed.end(), ' ', '-');
  std::string upper = dashed;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::string text = format(".TH {} 1 \"\" \"megalith {}\" \"Megalith\"\n", roff(upper), version_number);
  text += format(".SH NAME\n{} \\- {}\n", roff(dashed), roff(summary_));
  text += format(".SH SYNOPSIS\n{}\n", roff(usage_line()));
  if (positional_field_ != nullptr) {
    text += format(".SH ARGUMENTS\n.TP\n.I {}\n{}\n", roff(positional_metavar_), roff(positional_help_));
  }
  text += ".SH OPTIONS\n";
  std::vector<std::pair<std::string, std::string>> sections = {{"", ""}};
  sections.insert(sections.end(), sections_.begin(), sections_.end());
  for (const auto& [name, description] : sections) {
    const std::vector<const Setting*> keys = visible_settings(name);
    if (keys.empty()) continue;
    if (!description.empty()) text += format(".SS {}\n", roff(description));
    for (const Setting* key : keys) {
      text += format(".TP\n.B {}\n", roff(flags_of(*key)));
      text += roff(key->help());
      const std::string notes = notes_of(*key);
      if (!notes.empty()) text += roff(format(" ({})", notes));
      text += "\n";
    }
  }
  if (accepts_config_file_) text += ".TP\n.B \\-\\-config\nRead a TOML file first; flags win over it.\n";
  text += ".TP\n.B \\-h, \\-\\-help\nPrint help.\n";
  if (!epilogue_.empty()) text += ".SH NOTES\n.nf\n" + roff(epilogue_) + "\n.fi\n";
  text += ".SH SEE ALSO\n.BR megalith (1)\n";
  return text;
}

}  // namespace megalith
