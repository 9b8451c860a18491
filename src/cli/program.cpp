#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "cli/command.h"
#include "core/error.h"

namespace megalith {
namespace {

using Commands = std::vector<std::unique_ptr<Command>>;

constexpr int exit_closed_pipe = 141;

struct Match {
  Command* command = nullptr;
  std::size_t words = 0;
};

/// The command whose one or two words begin `arguments`.
Match find_command(const Commands& commands, const std::vector<std::string>& arguments) {
  Match best;
  for (const auto& command : commands) {
    const std::string name = command->name();
    const std::size_t space = name.find(' ');
    const std::size_t words = space == std::string::npos ? 1 : 2;
    if (arguments.size() < words || words <= best.words) continue;
    const std::string typed = words == 1 ? arguments[0] : arguments[0] + " " + arguments[1];
    if (typed == name) best = {command.get(), words};
  }
  return best;
}

/// Commands that begin with this word and a second one: "data" -> data prepare, data inspect.
std::string family_of(const Commands& commands, const std::string& word) {
  std::string names;
  for (const auto& command : commands) {
    if (command->name().starts_with(word + " "))
      names += format("{}megalith {}", names.empty() ? "" : ", ", command->name());
  }
  return names;
}

[[noreturn]] void unknown_command(const Commands& commands, const std::vector<std::string>& arguments) {
  const std::string family = family_of(commands, arguments[0]);
  if (!family.empty()) {
    fail(ErrorKind::usage, arguments[0], "is followed by a second word; there are: {}", family);
  }
  std::vector<std::string> names;
  for (const auto& command : commands) names.push_back(command->name());
  const std::string two = arguments.size() > 1 ? arguments[0] + " " + arguments[1] : arguments[0];
  std::string nearest = nearest_name(two, names);
  if (nearest.empty()) nearest = nearest_name(arguments[0], names);
  fail(ErrorKind::usage, arguments[0], "unknown subcommand{}",
       nearest.empty() ? "; megalith --help lists all" : format("; did you mean {}?", nearest));
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

bool asks_for_help(const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

/// Flushing finds out whether the reader of standard output is still there and the disk behind it is not
/// full.
int finish_output(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  if (errno == EPIPE) return exit_closed_pipe;
  if (status != 0) return status;
  fail(ErrorKind::environment, "standard output", "cannot write: {}", std::generic_category().message(errno));
}

int dispatch(const std::vector<std::string>& arguments) {
  const Commands commands = make_commands();
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      (arguments.size() == 1 && arguments[0] == "help")) {
    print(program_help(commands, wants_colour(stdout)));
    return finish_output(0);
  }
  if (arguments[0] == "--version" || arguments[0] == "-V" || arguments[0] == "version") {
    print(version_text());
    return finish_output(0);
  }
  std::vector<std::string> rest = arguments;
  const bool help_word = rest[0] == "help";
  if (help_word) rest.erase(rest.begin());
  if (rest[0].starts_with('-')) {
    fail(ErrorKind::usage, rest[0],
         "a subcommand comes first: megalith SUBCOMMAND {} ...; megalith --help lists all", rest[0]);
  }
  const Match match = find_command(commands, rest);
  if (match.command == nullptr) {
    if (asks_for_help(rest) && !family_of(commands, rest[0]).empty()) {
      for (const auto& command : commands) {
        if (command->name().starts_with(rest[0] + " ")) {
          print(format("  megalith {:<24} {}\n", command->name(), command->summary()));
        }
      }
      return finish_output(0);
    }
    unknown_command(commands, rest);
  }
  rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(match.words));
  Schema schema = schema_of(*match.command);
  if (help_word || asks_for_help(rest)) {
    print(schema.help_text(wants_colour(stdout)));
    return finish_output(0);
  }
  std::vector<std::string> notes;
  schema.parse(rest, notes);
  Log messages(stderr);
  for (const std::string& note : notes) messages.line("note: " + note);
  return finish_output(match.command->run(schema, messages));
}

int report(std::string_view text, int status) {
  Log(stderr).line(format("{}megalith: error:{} {}", wants_colour(stderr) ? "\x1b[31m" : "",
                          wants_colour(stderr) ? "\x1b[0m" : "", text));
  return status;
}

}  // namespace

Schema schema_of(Command& command) {
  Schema schema(command.name(), command.summary());
  command.declare(schema);
  return schema;
}

std::string program_help(const Commands& commands, bool colour) {
  const std::string bold = colour ? "\x1b[1m" : "";
  const std::string plain = colour ? "\x1b[0m" : "";
  std::string text =
      "Megalith trains transformer language models: prepare text, train, evaluate, generate.\n\n";
  text += format("{}Usage:{} megalith SUBCOMMAND [flags]\n\n{}Subcommands{}\n", bold, plain, bold, plain);
  for (const auto& command : commands) {
    text += format("  {}{:<20}{} {}\n", bold, command->name(), plain, command->summary());
  }
  text += format("\n  megalith SUBCOMMAND --help   flags of one subcommand\n");
  text += "  megalith --version           version, compiler, libraries, devices\n\n";
  text +=
      "Exit status: 0 done, 2 wrong command line or config, 3 wrong or damaged input, 4 disk, memory, device "
      "or\n"
      "library missing, 5 training stopped, 70 a bug in megalith (docs/exit-codes.md).\n";
  return text;
}

int run_program(const std::vector<std::string>& arguments) {
  try {
    return dispatch(arguments);
  } catch (const Error& error) {
    std::fflush(stdout);
    return report(error.what(), static_cast<int>(error.kind()));
  } catch (const std::bad_alloc&) {
    return report("out of memory: the system refused an allocation; use a smaller micro_batch_size or model",
                  static_cast<int>(ErrorKind::environment));
  } catch (const std::filesystem::filesystem_error& error) {
    return report(format("{}: {}", error.path1().string(), error.code().message()),
                  static_cast<int>(ErrorKind::environment));
  } catch (const std::exception& error) {
    return report(format("internal error: {}; this is a bug in megalith, please report it", error.what()),
                  static_cast<int>(ErrorKind::internal));
  }
}

}  // namespace megalith
