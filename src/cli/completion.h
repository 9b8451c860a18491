// Completion scripts for shells, generated from the schemas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace megalith {

/// `shell`: "bash", "zsh" or "fish".
std::string completion_script(const std::string& shell,
                              const std::vector<std::unique_ptr<Command>>& commands);

}  // namespace megalith
