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
  virtual ~Command() = default;
  /// "train", "data prepare"
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  /// Adds the command's settings, bound to its own fields.
  virtual void declare(Schema& schema) = 0;
  /// Runs with the fields filled in; returns the exit status. `out` is standard output, `messages` standard
  /// error.
  virtual int run(Schema& schema, Log& messages) = 0;
};

/// Every subcommand, in the order of `megalith --help`.
std::vector<std::unique_ptr<Command>> make_commands();

}  // namespace megalith
