// What `megalith doctor` looks at.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace megalith {

struct Finding {
  std::string subject;
  std::string found;
  bool well = true;
  std::string cost = {};    ///< what the lack costs
  std::string remedy = {};  ///< what to install or set
};

/// Devices, processors, instruction sets, memory, huge pages, disk, terminal, libraries, in this order.
std::vector<Finding> examine_machine();

}  // namespace megalith
