// Schema: the settings of one subcommand. From one list of keys come the flag parser, the TOML reader, the
// checks, --help, the reference page, shell completion, man pages and the effective config.
//
//   Schema schema("data prepare", "Tokenize text into .bin/.idx files");
//   schema.section("input", "What to read");
//   schema.add("input", &options.input, "", "JSONL or plain text").required().completes_file();
//   schema.add("workers", &options.workers, 0, "Threads; 0: all cores").at_least(0);
//   schema.parse(arguments);  // fills the bound fields, or raises one Error that lists every mistake
//
// Precedence: default < TOML file (--config FILE, where the schema allows one) < flag. A key `num_layers` is
// the flag `--num-layers` (underscores are accepted too) and the TOML key `num_layers` in its section or at
// top level. Switches: `--x`, `--no-x`, `--x=true`. Arrays take every value up to the next flag. A flag given
// twice counts the last time, as in argparse. A word that starts with a dash is a value only where it is a
// number or "-"; write --x=-word else.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace megalith {

/// The value of a key, also what fields are bound to.
using SettingValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                  std::vector<std::string>>;
using SettingField = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::int64_t>*,
                                  std::vector<std::string>*>;

enum class SettingOrigin : std::uint8_t { by_default, file, flag, derived };

/// One key. The chaining functions return the key itself.
class Setting {
 public:
  Setting(std::string section, std::string name, SettingField field, SettingValue default_value,
          std::string help);

  Setting& required();
  Setting& at_least(double minimum);  ///< numbers, and each element of an array of numbers
  Setting& at_most(double maximum);
  Setting& more_than(double bound);
  Setting& less_than(double bound);
  Setting& one_of(std::vector<std::string> choices);
  /// A value that is known but not allowed, with the reason and what to do.
  Setting& refuses(std::string value, std::string reason);
  Setting& metavar(std::string name);  ///< shown in help: --input FILE
  Setting& short_flag(char letter);
  Setting& alias(std::string other_name);  ///< a second flag name
  Setting& completes_file();               ///< shell completion offers files
  /// Another default than add() gave; the key is then not required. The value has the field's type.
  Setting& default_to(const SettingValue& value);
  Setting& default_text(std::string text);  ///< how help words a derived default: "4 * hidden_size"
  /// Says how one start behaves, not what the run is: a comment in the effective config, so that a config
  /// used again does not repeat it.
  Setting& once();
  Setting& hidden();  ///< parsed, not listed

  const std::string& name() const { return name_; }
  const std::string& section() const { return section_; }
  const std::string& help() const { return help_; }
  /// "--num-layers"
  std::string flag() const;
  /// "switch", "integer", "number", "text", "integers", "texts"
  std::string type_name() const;
  SettingOrigin origin() const { return origin_; }
  /// Present value of the bound field.
  SettingValue value() const;
  const SettingValue& default_value() const { return default_value_; }
  const std::vector<std::string>& choices() const { return choices_; }
  const std::vector<std::string>& aliases() const { return aliases_; }
  char short_flag_letter() const { return short_flag_; }
  bool is_required() const { return required_; }
  bool is_hidden() const { return hidden_; }
  bool is_file() const { return completes_file_; }
  /// "FILE", "N", "TEXT ..."; empty for switches.
  std::string metavar_text() const;
  /// The default as help shows it: "0.1", "4 * hidden_size", "" where there is none.
  std::string default_as_text() const;
  /// What values must be, as help shows it: "at least 1", "one of: a, b"; empty where anything is allowed.
  std::string rule_text() const;
  /// Why `value` is not allowed, with the nearest allowed value; empty where it is. The default is always
  /// allowed.
  std::string complaint_about(const SettingValue& value) const;

 private:
  friend class Schema;

  std::string section_;
  std::string name_;
  SettingField field_;
  SettingValue default_value_;
  std::string help_;
  std::string metavar_;
  std::string default_text_;
  std::vector<std::string> choices_;
  std::vector<std::pair<std::string, std::string>> refused_;
  std::vector<std::string> aliases_;
  std::optional<double> minimum_;
  std::optional<double> maximum_;
  bool minimum_open_ = false;
  bool maximum_open_ = false;
  char short_flag_ = 0;
  bool required_ = false;
  bool once_ = false;
  bool hidden_ = false;
  bool completes_file_ = false;
  SettingOrigin origin_ = SettingOrigin::by_default;
  std::string origin_place_;  ///< "gpt2.toml:12:1" or "--num-layers"
  bool faulty_ = false;       ///< given, but not usable
  bool kept_in_effective_ = false;
};

/// A flag of Megatron-LM that is not a key here.
struct ForeignFlag {
  std::string name;  ///< without dashes: "use-mcore-models"
  int values = 0;    ///< arguments it takes; -1: up to the next flag
  bool refused = false;
  std::string reason;  ///< why it is without effect, or why it is refused and what to do
  /// Values with which a refused flag is accepted without effect ("1" for a parallel size).
  std::vector<std::string> harmless = {};
};

struct SchemaIntake;

class Schema {
 public:
  Schema(std::string command, std::string summary);

  /// Following keys belong to this TOML section.
  void section(std::string name, std::string description);
  /// Binds a field and sets it to its default. `default_value` has the field's type. Keys are unique.
  Setting& add(std::string name, SettingField field, const SettingValue& default_value, std::string help);
  /// `count` positional arguments ("RUN..."): at least `minimum`, at most `maximum`.
  void positional(std::vector<std::string>& field, std::string metavar, std::string help, std::size_t minimum,
                  std::size_t maximum);
  /// Allows --config FILE.
  void accept_config_file();
  /// Flags that are accepted without effect (said once) or refused with a reason.
  void foreign_flags(std::vector<ForeignFlag> flags);
  /// With positional arguments, required keys may be missing and the rules of check() are not applied: the
  /// words say what the keys would have said.
  void positional_replaces_settings();
  /// Called after all values are in; adds its complaints (each "key: value: rule; what to do") to the list.
  void check(std::function<void(std::vector<std::string>& errors)> rule);
  /// Paragraphs and examples below the help text.
  void epilogue(std::string text);

  /// Fills every bound field. Raises one Error (usage) that lists all mistakes, each with key, origin, value,
  /// rule and nearest valid choice. Notes (accepted-without-effect flags) are appended to `notes`.
  void parse(std::span<const std::string> arguments, std::vector<std::string>& notes);
  void parse(std::span<const std::string> arguments);

  const std::string& command() const { return command_; }
  const std::string& summary() const { return summary_; }
  const std::vector<std::unique_ptr<Setting>>& settings() const { return settings_; }
  Setting& setting(std::string_view name);
  const Setting& setting(std::string_view name) const;
  /// Null where there is no such key, flag or alias; `name` with underscores or dashes, without leading
  /// dashes.
  Setting* find(std::string_view name) const;
  /// Whether the key was set by a file or a flag.
  bool given(std::string_view name) const;
  /// Whether none of these keys has a mistake of its own, so that rules over several keys make sense.
  bool usable(std::initializer_list<std::string_view> names) const;
  /// Place and value for a message: "--num-layers 3", "gpt2.toml:4:1: num_layers = 3", "num_layers = 3
  /// (default)".
  std::string describe(std::string_view name) const;
  /// Marks a key as computed from others (resolve step). The effective config shows it as a comment, so that
  /// reading it back computes it again; with `keep` as a plain line.
  void mark_derived(std::string_view name, bool keep = false);

  const std::vector<std::pair<std::string, std::string>>& sections() const { return sections_; }
  const std::vector<ForeignFlag>& foreign() const { return foreign_flags_; }
  bool accepts_config() const { return accepts_config_file_; }
  bool has_positional() const { return positional_field_ != nullptr; }
  const std::string& positional_name() const { return positional_metavar_; }

  std::string help_text(bool colour) const;
  std::string reference_markdown() const;
  std::string man_page() const;
  /// The effective config as TOML that parse() reads back to equal values; each line says where its value
  /// came from.
  std::string effective_toml() const;

 private:
  void read_flags(std::span<const std::string> arguments, SchemaIntake& intake);
  std::size_t read_flag(std::span<const std::string> arguments, std::size_t index, SchemaIntake& intake);
  std::size_t read_foreign(const ForeignFlag& flag, const std::optional<std::string>& attached,
                           std::span<const std::string> arguments, std::size_t index, SchemaIntake& intake);
  void complain_unknown_flag(const std::string& word, SchemaIntake& intake) const;
  /// False where the file could not be read as TOML.
  bool read_config_file(const std::string& path, SchemaIntake& intake);
  void read_config_key(const struct ConfigEntry& entry, SchemaIntake& intake);
  void store(Setting& setting, std::span<const std::string> words, SettingOrigin origin,
             const std::string& place, SchemaIntake& intake);
  void store_value(Setting& setting, const SettingValue& value, SettingOrigin origin,
                   const std::string& place, SchemaIntake& intake);
  void apply_foreign(const ForeignFlag& flag, const std::string& place, const std::string& value,
                     SchemaIntake& intake) const;
  std::vector<std::string> all_names() const;
  std::vector<const Setting*> visible_settings(std::string_view section) const;
  std::string usage_line() const;

  std::string command_;
  std::string summary_;
  std::string epilogue_;
  std::string current_section_;
  std::vector<std::pair<std::string, std::string>> sections_;
  std::vector<std::unique_ptr<Setting>> settings_;
  std::vector<ForeignFlag> foreign_flags_;
  std::vector<std::function<void(std::vector<std::string>&)>> checks_;
  std::vector<std::string>* positional_field_ = nullptr;
  std::string positional_metavar_;
  std::string positional_help_;
  std::size_t positional_minimum_ = 0;
  std::size_t positional_maximum_ = 0;
  bool positional_replaces_settings_ = false;
  bool accepts_config_file_ = false;
};

/// Assigns a value of the field's own type to it.
void assign_field(const SettingField& field, const SettingValue& value);
/// Present value of a bound field.
SettingValue field_value(const SettingField& field);

/// The candidate nearest to `word` by edit distance; empty where none is near.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

}  // namespace megalith
