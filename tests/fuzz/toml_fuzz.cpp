// TOML config files: read into entries, and through a whole schema with keys of every type. Whatever the
// bytes are, the outcome is values or one Error of kind usage or input; values that were taken survive the
// effective config.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/schema.h"
#include "core/schema_intake.h"

namespace {

using megalith::Error;
using megalith::ErrorKind;
using megalith::Schema;

struct Settings {
  bool bf16 = false;
  std::int64_t num_layers = 0;
  double lr = 0;
  std::string save;
  std::vector<std::int64_t> rampup_batch_size;
  std::vector<std::string> data_path;
};

void declare(Schema& schema, Settings& settings) {
  schema.accept_config_file();
  schema.section("model", "The model");
  schema.add("num_layers", &settings.num_layers, std::int64_t{2}, "layers").at_least(1).at_most(1000);
  schema.add("bf16", &settings.bf16, false, "compute in bfloat16");
  schema.section("training", "The training");
  schema.add("lr", &settings.lr, 1e-3, "learning rate").more_than(0);
  schema.add("rampup_batch_size", &settings.rampup_batch_size, std::vector<std::int64_t>{}, "ramp-up");
  schema.section("data", "The data");
  schema.add("data_path", &settings.data_path, std::vector<std::string>{}, "files");
  schema.add("save", &settings.save, std::string(), "folder");
}

/// A file in memory, with a path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : descriptor_(memfd_create("fuzz.toml", 0)) {
    std::size_t written = 0;
    while (written < content.size()) {
      const ssize_t count = write(descriptor_, content.data() + written, content.size() - written);
      if (count <= 0) std::abort();
      written += static_cast<std::size_t>(count);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

bool parse(Schema& schema, const std::string& text) {
  const MemoryFile file(text);
  try {
    schema.parse(std::vector<std::string>{"--config", file.path()});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::input) throw;
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  std::vector<std::string> errors;
  megalith::parse_toml_entries(text, "fuzz.toml", errors);

  Settings first;
  Schema schema("fuzz", "A target");
  declare(schema, first);
  if (!parse(schema, text)) return 0;

  Settings second;
  Schema again("fuzz", "A target");
  declare(again, second);
  const bool same = parse(again, schema.effective_toml()) && first.bf16 == second.bf16 &&
                    first.num_layers == second.num_layers && first.lr == second.lr &&
                    first.save == second.save && first.rampup_batch_size == second.rampup_batch_size &&
                    first.data_path == second.data_path;
  if (!same) std::abort();
  return 0;
}
