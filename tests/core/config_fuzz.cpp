// Config files and command lines: any bytes end in settings or in one Error of kind usage, and settings that
// were accepted survive the way through the effective config.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/train_schema.h"

namespace {

using megalith::Error;
using megalith::ErrorKind;
using megalith::Schema;
using megalith::TrainOptions;

/// A file in memory with a name that can be opened.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text) : descriptor_(::memfd_create("config", 0)) {
    if (descriptor_ < 0 ||
        ::write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      std::abort();
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return megalith::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

struct Settings {
  TrainOptions options;
  Schema schema{"train", "Train"};
  Settings() { declare_train_settings(schema, options); }
  bool parse(const std::vector<std::string>& arguments) {
    try {
      schema.parse(arguments);
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) std::abort();
      return false;
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const MemoryFile file(text);
  Settings from_file;
  if (from_file.parse({"--config", file.path()})) {
    const MemoryFile effective(from_file.schema.effective_toml());
    Settings again;
    if (!again.parse({"--config", effective.path()})) std::abort();
    for (const auto& key : from_file.schema.settings()) {
      if (key->value() != again.schema.setting(key->name()).value()) std::abort();
    }
  }
  std::istringstream words(text);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) {
    if (!word.starts_with("--config")) arguments.push_back(word);
  }
  Settings from_flags;
  from_flags.parse(arguments);
  return 0;
}
