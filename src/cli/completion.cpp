#include "cli/completion.h"

#include <algorithm>
#include <cstdio>

#include "core/format.h"

namespace megalith {
namespace {

/// One line of text safe inside single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

/// For zsh's _arguments, where colons and brackets end a description.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : quoted(text)) {
    if (c == ':' || c == '[' || c == ']') out += '\\';
    out += c;
  }
  return out;
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

struct CommandWords {
  std::string name;
  std::string summary;
  Schema schema;
};

std::vector<CommandWords> words_of(const std::vector<std::unique_ptr<Command>>& commands) {
  std::vector<CommandWords> all;
  all.reserve(commands.size());
  for (const auto& command : commands)
    all.push_back({command->name(), command->summary(), schema_of(*command)});
  return all;
}

std::vector<std::string> first_words(const std::vector<CommandWords>& commands) {
  std::vector<std::string> words;
  for (const CommandWords& command : commands) {
    const std::string first = command.name.substr(0, command.name.find(' '));
    if (std::find(words.begin(), words.end(), first) == words.end()) words.push_back(first);
  }
  return words;
}

std::vector<std::string> second_words(const std::vector<CommandWords>& commands, const std::string& first) {
  std::vector<std::string> words;
  for (const CommandWords& command : commands) {
    if (command.name.starts_with(first + " ")) words.push_back(command.name.substr(first.size() + 1));
  }
  return words;
}

std::vector<std::string> choices_of(const Setting& key) {
  std::vector<std::string> choices = key.choices();
  choices.erase(std::remove(choices.begin(), choices.end(), ""), choices.end());
  return choices;
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::string text =
      "# bash completion for megalith; use: source <(megalith completion bash)\n"
      "_megalith() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command=${COMP_WORDS[1]} flags=\n"
      "  COMPREPLY=()\n"
      "  if [[ $COMP_CWORD -eq 1 ]]; then\n";
  text +=
      format("    COMPREPLY=($(compgen -W '{} help --help --version' -- \"$current\"))\n    return\n  fi\n",
             joined(first_words(commands), " "));
  text += "  case $command in\n";
  for (const std::string& first : first_words(commands)) {
    const std::vector<std::string> second = second_words(commands, first);
    if (second.empty()) continue;
    text += format("    {})\n      if [[ $COMP_CWORD -eq 2 ]]; then\n", first);
    text += format("        COMPREPLY=($(compgen -W '{}' -- \"$current\"))\n        return\n      fi\n",
                   joined(second, " "));
    text += "      command=\"$command ${COMP_WORDS[2]}\" ;;\n";
  }
  text += "  esac\n  case \"$command $previous\" in\n";
  for (const CommandWords& command : commands) {
    std::vector<std::string> files;
    if (command.schema.accepts_config()) files.push_back(format("'{} --config'", command.name));
    for (const auto& key : command.schema.settings()) {
      if (key->is_hidden()) continue;
      if (key->is_file()) files.push_back(format("'{} {}'", command.name, key->flag()));
      const std::vector<std::string> choices = choices_of(*key);
      if (choices.empty()) continue;
      text += format("    '{} {}')\n      COMPREPLY=($(compgen -W '{}' -- \"$current\"))\n      return ;;\n",
                     command.name, key->flag(), quoted(joined(choices, " ")));
    }
    if (!files.empty()) {
      text += format("    {})\n      COMPREPLY=($(compgen -f -- \"$current\"))\n      return ;;\n",
                     joined(files, "|"));
    }
  }
  text += "  esac\n  case $command in\n";
  for (const CommandWords& command : commands) {
    std::vector<std::string> flags = {"--help"};
    if (command.schema.accepts_config()) flags.emplace_back("--config");
    for (const auto& key : command.schema.settings()) {
      if (key->is_hidden()) continue;
      flags.push_back(key->flag());
      if (key->type_name() == "switch") flags.push_back("--no-" + key->flag().substr(2));
    }
    text += format("    '{}') flags='{}' ;;\n", command.name, joined(flags, " "));
  }
  text +=
      "  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _megalith megalith\n";
  return text;
}

std::string zsh_arguments(const CommandWords& command) {
  std::string text;
  const auto line = [&text](const std::string& spec) { text += " \\\n        '" + spec + "'"; };
  if (command.schema.accepts_config()) line("--config[read a TOML file first]:file:_files");
  for (const auto& key : command.schema.settings()) {
    if (key->is_hidden()) continue;
    std::string spec = format("{}[{}]", key->flag(), zsh_text(key->help()));
    if (key->type_name() != "switch") {
      const std::vector<std::string> choices = choices_of(*key);
      const std::string action = !choices.empty() ? format("({})", quoted(joined(choices, " ")))
                                 : key->is_file() ? "_files"
                                                  : " ";
      spec += format(":{}:{}", zsh_text(key->metavar_text()), action);
    }
    line(spec);
  }
  line("*:file:_files");
  return text;
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  std::string text =
      "#compdef megalith\n"
      "# zsh completion for megalith; put it into a folder of $fpath as _megalith\n"
      "_megalith() {\n"
      "  local command=$words[2]\n"
      "  if (( CURRENT == 2 )); then\n"
      "    local -a commands=(\n";
  for (const std::string& first : first_words(commands)) {
    const std::vector<std::string> second = second_words(commands, first);
    std::string summary = joined(second, ", ");
    for (const CommandWords& command : commands) {
      if (command.name == first) summary = command.summary;
    }
    text += format("      '{}:{}'\n", first, zsh_text(summary));
  }
  text += "    )\n    _describe 'subcommand' commands\n    return\n  fi\n  case $command in\n";
  for (const std::string& first : first_words(commands)) {
    const std::vector<std::string> second = second_words(commands, first);
    if (second.empty()) continue;
    text +=
        format("    {})\n      if (( CURRENT == 3 )); then\n        compadd {}\n        return\n      fi\n",
               first, joined(second, " "));
    text += "      command=\"$command $words[3]\"\n      shift words\n      (( CURRENT-- )) ;;\n";
  }
  text += "  esac\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CommandWords& command : commands) {
    text += format("    '{}')\n      _arguments{} ;;\n", command.name, zsh_arguments(command));
  }
  text += "  esac\n}\n_megalith \"$@\"\n";
  return text;
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string text = "# fish completion for megalith; use: megalith completion fish | source\n";
  for (const std::string& first : first_words(commands)) {
    text += format("complete -c megalith -n __fish_use_subcommand -f -a '{}'\n", first);
    const std::vector<std::string> second = second_words(commands, first);
    if (second.empty()) continue;
    text += format(
        "complete -c megalith -n '__fish_seen_subcommand_from {}; and not __fish_seen_subcommand_from {}' -f "
        "-a "
        "'{}'\n",
        first, joined(second, " "), joined(second, " "));
  }
  for (const CommandWords& command : commands) {
    const std::size_t space = command.name.find(' ');
    std::string condition = "__fish_seen_subcommand_from " + command.name.substr(0, space);
    if (space != std::string::npos) {
      condition += "; and __fish_seen_subcommand_from " + command.name.substr(space + 1);
    }
    const auto line = [&](const std::string& rest) {
      text += format("complete -c megalith -n '{}' {}\n", condition, rest);
    };
    if (command.schema.accepts_config()) line("-l config -r -F -d 'read a TOML file first'");
    for (const auto& key : command.schema.settings()) {
      if (key->is_hidden()) continue;
      std::string rest = "-l " + key->flag().substr(2);
      if (key->short_flag_letter() != 0) rest += format(" -s {}", key->short_flag_letter());
      const std::vector<std::string> choices = choices_of(*key);
      if (!choices.empty()) {
        rest += format(" -x -a '{}'", quoted(joined(choices, " ")));
      } else if (key->type_name() != "switch") {
        rest += key->is_file() ? " -r -F" : " -x";
      }
      line(rest + format(" -d '{}'", quoted(key->help())));
    }
  }
  return text;
}

class CompletionCommand : public Command {
 public:
  std::string name() const override { return "completion"; }
  std::string summary() const override { return "Print a completion script for bash, zsh or fish"; }
  void declare(Schema& schema) override {
    schema.positional(shell_, "bash|zsh|fish", "the shell", 1, 1);
    schema.check([this](std::vector<std::string>& errors) {
      const std::vector<std::string> known = {"bash", "zsh", "fish"};
      if (shell_.size() == 1 && std::find(known.begin(), known.end(), shell_[0]) == known.end()) {
        const std::string nearest = nearest_name(shell_[0], known);
        errors.push_back(format("'{}': must be bash, zsh or fish{}", shell_[0],
                                nearest.empty() ? "" : format("; did you mean {}?", nearest)));
      }
    });
    schema.epilogue(
        "Examples:\n"
        "  source <(megalith completion bash)\n"
        "  megalith completion zsh > ~/.zfunc/_megalith\n"
        "  megalith completion fish | source");
  }
  int run(Schema& /*schema*/, Log& /*messages*/) override {
    const std::string script = completion_script(shell_[0], make_commands());
    std::fwrite(script.data(), 1, script.size(), stdout);
    return 0;
  }

 private:
  std::vector<std::string> shell_;
};

}  // namespace

std::string completion_script(const std::string& shell,
                              const std::vector<std::unique_ptr<Command>>& commands) {
  const std::vector<CommandWords> words = words_of(commands);
  if (shell == "zsh") return zsh_script(words);
  if (shell == "fish") return fish_script(words);
  return bash_script(words);
}

std::unique_ptr<Command> make_completion_command() {
  return std::make_unique<CompletionCommand>();
}

}  // namespace megalith
