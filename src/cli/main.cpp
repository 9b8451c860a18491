#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/command.h"

namespace {

#ifdef MEGALITH_HAVE_OPENMP
// OpenMP's threads wait for one another by spinning, for milliseconds before they sleep. Where another
// program wants the processors too, that makes a step up to a hundred times slower; a spin of some 30
// microseconds costs nothing and does not. The library reads this setting only when it is loaded, so the
// program starts itself once more.
void limit_spinning(char** argv) {
  constexpr const char* spins = "GOMP_SPINCOUNT";
  if (std::getenv(spins) != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv(spins, "10000", 1);
  // The same for LLVM's library, in milliseconds.
  ::setenv("KMP_BLOCKTIME", "0", 0);
  ::execv("/proc/self/exe", argv);
}
#endif

}  // namespace

int main(int argc, char** argv) {
#ifdef MEGALITH_HAVE_OPENMP
  limit_spinning(argv);
#endif
  // A closed pipe (megalith ... | head) must end in a message or silence, not in a signal amid a write to
  // disk.
  std::signal(SIGPIPE, SIG_IGN);
  return megalith::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
