// One subcommand: declares its settings, then runs. cli/commands.cpp lists them all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/schema.h"

namespace megalith {

class Command {
 public:
  Command() = default;
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// "train", "data prepare"
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  /// Adds the command's settings, bound to its own fields.
  virtual void declare(Schema& schema) = 0;
  /// Runs with the fields filled in; returns the exit status. Results go to standard output, `messages` is
  /// standard error. Notes of the schema were printed before.
  virtual int run(Schema& schema, Log& messages) = 0;
};

/// Every subcommand, in the order of `megalith --help`.
std::vector<std::unique_ptr<Command>> make_commands();

/// The program without its process: picks the subcommand, parses, runs, turns exceptions into messages on
/// standard error and exit statuses (docs/exit-codes.md). `arguments` without the program's name.
int run_program(const std::vector<std::string>& arguments);

/// A schema with the command's settings declared.
Schema schema_of(Command& command);

/// `megalith --help`.
std::string program_help(const std::vector<std::unique_ptr<Command>>& commands, bool colour);

/// `megalith --version`: version, commit, compiler, build type, libraries, devices.
std::string version_text();

// One factory per subcommand, each in cli/NAME.cpp.
std::unique_ptr<Command> make_data_prepare_command();
std::unique_ptr<Command> make_data_inspect_command();
std::unique_ptr<Command> make_data_order_command();
std::unique_ptr<Command> make_train_command();
std::unique_ptr<Command> make_generate_command();
std::unique_ptr<Command> make_inspect_command();
std::unique_ptr<Command> make_plot_command();
std::unique_ptr<Command> make_bench_kernels_command();
std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_bench_disk_command();
std::unique_ptr<Command> make_completion_command();
std::unique_ptr<Command> make_docs_command();
std::unique_ptr<Command> make_tokenizer_train_command();
std::unique_ptr<Command> make_tokenizer_encode_command();
std::unique_ptr<Command> make_tokenizer_decode_command();

}  // namespace megalith
