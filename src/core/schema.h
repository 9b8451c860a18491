// Schema: the settings of one subcommand. From one list of keys come the flag parser, the TOML reader, the
// checks,
// --help, the reference page, shell completion, man pages and the effective config.
//
//   Schema schema("data prepare", "Tokenize text into .bin/.idx files");
//   schema.section("input", "What to read");
//   schema.add("input", options.input, "", "JSONL or plain
//   text").required().metavar("FILE").completes_file(); schema.add("workers", options.workers, 0, "Threads;
//   0: all cores").at_least(0); schema.parse(arguments);          // fills the bound fields or raises one
//   Error that lists every mistake
//
// Precedence: default < TOML file (--config FILE, where the schema allows one) < flag. A key `num_layers` is
// the flag
// `--num-layers` (underscores are accepted too) and the TOML key `num_layers` in its section or at top level.
// Switches: `--x`, `--no-x`, `--x=true`. Arrays take every value up to the next flag.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  Setting& metavar(std::string name);  ///< shown in help: --input FILE
  Setting& short_flag(char letter);
  Setting& alias(std::string other_name);   ///< a second flag name
  Setting& completes_file();                ///< shell completion offers files
  Setting& default_text(std::string text);  ///< how help words a derived default: "4 * hidden_size"
  Setting& hidden();                        ///< parsed, not listed

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
  std::vector<std::string> aliases_;
  std::optional<double> minimum_;
  std::optional<double> maximum_;
  bool minimum_open_ = false;
  bool maximum_open_ = false;
  char short_flag_ = 0;
  bool required_ = false;
  bool hidden_ = false;
  bool completes_file_ = false;
  SettingOrigin origin_ = SettingOrigin::by_default;
  std::string origin_place_;  ///< "gpt2.toml:12" or "--num-layers"
};

/// A flag of Megatron-LM that is not a key here.
struct ForeignFlag {
  std::string name;  ///< without dashes: "use-mcore-models"
  int values = 0;    ///< arguments it takes; -1: up to the next flag
  bool refused = false;
  std::string reason;  ///< why it is without effect, or why it is refused and what to do
};

class Schema {
 public:
  Schema(std::string command, std::string summary);

  /// Following keys belong to this TOML section.
  void section(std::string name, std::string description);
  /// Binds a field and sets it to its default. `default_value` has the field's type. Keys are unique.
  Setting& add(std::string name, SettingField field, SettingValue default_value, std::string help);
  /// `count` positional arguments ("RUN..."): at least `minimum`, at most `maximum`.
  void positional(std::vector<std::string>& field, std::string metavar, std::string help, std::size_t minimum,
                  std::size_t maximum);
  /// Allows --config FILE.
  void accept_config_file();
  /// Flags that are accepted without effect (said once) or refused with a reason.
  void foreign_flags(std::vector<ForeignFlag> flags);
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
  /// Marks a key as computed from others (resolve step); shown so in the effective config.
  void mark_derived(std::string_view name);

  std::string help_text(bool colour) const;
  std::string reference_markdown() const;
  std::string man_page() const;
  /// The effective config as TOML that parse() reads back to equal values; each line says where its value
  /// came from.
  std::string effective_toml() const;

 private:
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
  bool accepts_config_file_ = false;
};

/// The candidate nearest to `word` by edit distance; empty where none is near.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

}  // namespace megalith
