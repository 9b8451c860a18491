// Pages generated from the schemas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace megalith {

/// docs/config.md: every key and flag of every subcommand.
std::string config_page(const std::vector<std::unique_ptr<Command>>& commands);

/// The flag table of docs/from-megatron.md: Megatron-LM's flags that are keys here, accepted without effect,
/// refused.
std::string megatron_table();

/// megalith(1), the page that lists the subcommands.
std::string main_man_page(const std::vector<std::unique_ptr<Command>>& commands);

}  // namespace megalith
