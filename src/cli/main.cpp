#include <csignal>
#include <string>
#include <vector>

#include "cli/command.h"

int main(int argc, char** argv) {
  // A closed pipe (megalith ... | head) must end in a message or silence, not in a signal amid a write to
  // disk.
  std::signal(SIGPIPE, SIG_IGN);
  return megalith::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
