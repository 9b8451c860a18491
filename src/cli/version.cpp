#include "cli/command.h"
#include "core/build_libraries.h"
#include "core/format.h"
#include "core/version_data.h"

namespace megalith {

std::string version_text() {
  std::string text = format("megalith {} ({})\n", version_number, version_commit);
  text += format("  compiler      {}, {} build\n", version_compiler, version_build_type);
  text += "  libraries    ";
  for (const BuildLibrary& library : build_libraries) {
    if (library.found) text += format(" {} {},", library.name, library.version);
  }
  text.back() = '\n';
  return text;
}

}  // namespace megalith
