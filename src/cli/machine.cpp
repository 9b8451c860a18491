#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/doctor.h"
#include "core/build_libraries.h"
#include "core/format.h"
#include "device/device.h"
#include "device/parallel_for.h"

namespace megalith {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value after "name" and a colon in a file of "name : value" lines; empty where absent.
std::string field_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

double kibibytes_field(const std::string& name) {
  const std::string text = field_of("/proc/meminfo", name);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value * 1024.0;
}

Finding processors() {
  const int usable = usable_processors();
  std::string model = field_of("/proc/cpuinfo", "model name");
  if (model.empty()) model = "processor of unknown name";
  Finding finding{"processors", format("{} usable, {}", usable, model)};
  const auto online = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (usable < online) {
    finding.well = false;
    finding.found = format("{} usable of {}, {}", usable, online, model);
    finding.cost = "training runs on a part of the machine";
    finding.remedy = "start without taskset, or give the container more processors";
  }
  // A control group may allow less time than the processors suggest.
  std::istringstream quota(first_line("/sys/fs/cgroup/cpu.max"));
  double allowed = 0;
  double period = 0;
  if (quota >> allowed >> period && period > 0 && allowed / period < usable) {
    finding.well = false;
    finding.cost =
        format("the container may use only {:.1f} processors' time; more threads wait for each other",
               allowed / period);
    finding.remedy =
        format("--num-threads {}, or a larger CPU quota", std::max(1, static_cast<int>(allowed / period)));
  }
  return finding;
}

Finding instruction_sets() {
  std::istringstream words(field_of("/proc/cpuinfo", "flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  if (flags.empty()) return {"instruction sets", "not told by this system"};
  std::string found;
  const std::pair<const char*, const char*> known[] = {{"avx2", "AVX2"},
                                                       {"fma", "FMA"},
                                                       {"f16c", "F16C"},
                                                       {"avx512f", "AVX-512"},
                                                       {"avx512_bf16", "AVX-512 BF16"},
                                                       {"avx512_vnni", "VNNI"},
                                                       {"amx_bf16", "AMX BF16"}};
  for (const auto& [flag, name] : known) {
    if (flags.contains(flag)) found += format("{}{}", found.empty() ? "" : ", ", name);
  }
  Finding finding{"instruction sets", found.empty() ? "only the baseline" : found};
  if (!flags.contains("avx2") || !flags.contains("fma")) {
    finding.well = false;
    finding.cost = "arithmetic runs several times slower than with AVX2 and FMA";
    finding.remedy = "a machine of 2013 or later; in a virtual machine, pass the host's processor through";
  } else if (!flags.contains("avx512_bf16") && !flags.contains("amx_bf16")) {
    finding.found += "; no bfloat16 arithmetic, --bf16 saves memory but no time";
  }
  return finding;
}

Finding memory() {
  const double total = kibibytes_field("MemTotal");
  double available = kibibytes_field("MemAvailable");
  std::string limit_note;
  double limit = 0;
  const std::string limit_text = first_line("/sys/fs/cgroup/memory.max");
  if (std::from_chars(limit_text.data(), limit_text.data() + limit_text.size(), limit).ec == std::errc() &&
      limit > 0 && limit < total) {
    limit_note = format(", container's limit {:.1f} GiB", limit / gibibyte);
    available = std::min(available, limit);
  }
  Finding finding{"memory", format("{:.1f} GiB available of {:.1f} GiB{}", available / gibibyte,
                                   total / gibibyte, limit_note)};
  // GPT-2 124M in float32: 16 bytes a parameter and activations of a few sequences.
  constexpr double small_model = 6.0 * gibibyte;
  if (available < small_model) {
    finding.well = false;
    finding.cost = "GPT-2 124M does not fit (about 6 GiB with micro_batch_size 4); smaller models do";
    finding.remedy = "close other programs, or use micro_batch_size 1 and recompute_granularity full";
  }
  return finding;
}

Finding huge_pages() {
  const std::string text = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (text.empty()) return {"huge pages", "not told by this system"};
  const std::size_t start = text.find('[');
  const std::size_t end = text.find(']');
  const std::string mode = start == std::string::npos || end == std::string::npos || end < start
                               ? text
                               : text.substr(start + 1, end - start - 1);
  Finding finding{"huge pages", "transparent: " + mode};
  if (mode == "never") {
    finding.well = false;
    finding.cost = "large models lose a few per cent of speed to address translation";
    finding.remedy = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return finding;
}

Finding disk() {
  struct statvfs status{};
  if (::statvfs(".", &status) != 0) {
    return {"disk here", "cannot be read", false, "checkpoints may not be written here",
            "change to another folder"};
  }
  const double free_bytes = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  Finding finding{"disk here", format("{:.1f} GiB free", free_bytes / gibibyte)};
  if ((status.f_flag & ST_RDONLY) != 0 || ::access(".", W_OK) != 0) {
    finding.well = false;
    finding.found += ", not writable";
    finding.cost = "runs cannot be saved in this folder";
    finding.remedy = "--save FOLDER on another disk";
  } else if (free_bytes < 5 * gibibyte) {
    finding.well = false;
    finding.cost = "a checkpoint of GPT-2 124M takes 1.5 GiB";
    finding.remedy = "free some space, or --save FOLDER on another disk with --save-retain 2";
  }
  return finding;
}

Finding terminal() {
  const bool tty = ::isatty(STDOUT_FILENO) == 1;
  const char* name = std::getenv("TERM");
  std::string text =
      tty ? format("yes, {} columns, TERM={}", Log(stdout).width(), name != nullptr ? name : "unset")
          : "standard output is no terminal: no live line, no colour";
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') text += "; NO_COLOR is set";
  return {"terminal", text};
}

std::string package_of(const std::string& library) {
  const std::pair<const char*, const char*> packages[] = {
      {"oneDNN", "libdnnl-dev"}, {"Highway", "libhwy-dev"}, {"OpenMP", "libgomp1 (g++)"},
      {"PCRE2", "libpcre2-dev"}, {"zlib", "zlib1g-dev"},    {"zstd", "libzstd-dev"}};
  for (const auto& [name, package] : packages) {
    if (library == name) return package;
  }
  return "";
}

}  // namespace

std::vector<Finding> examine_machine() {
  std::vector<Finding> findings;
  for (const DeviceStatus& device : list_devices()) {
    Finding finding{"device " + device.name, device.detail, device.available};
    if (!device.available) {
      finding.found = "missing";
      finding.cost = device.detail;
      finding.remedy = "scripts/install-deps.sh, then scripts/build.sh";
    }
    findings.push_back(std::move(finding));
  }
  findings.push_back(processors());
  findings.push_back(instruction_sets());
  findings.push_back(memory());
  findings.push_back(huge_pages());
  findings.push_back(disk());
  findings.push_back(terminal());
  for (const BuildLibrary& library : build_libraries) {
    if (std::string_view(library.lost).starts_with("required")) continue;
    Finding finding{library.name, library.version};
    if (!library.found) {
      finding.well = false;
      finding.found = library.version[0] == '\0' ? "not in this build"
                                                 : format("not in this build ({})", library.version);
      finding.cost = library.lost;
      const std::string package = package_of(library.name);
      finding.remedy = format("scripts/install-deps.sh{}, then scripts/build.sh",
                              package.empty() ? "" : format(" (Debian: apt-get install {})", package));
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace megalith
