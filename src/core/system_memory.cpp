#include "core/system_memory.h"

#include <fstream>
#include <string>

namespace megalith {

SystemMemory read_system_memory() {
  constexpr std::uint64_t kibibyte = 1024;
  SystemMemory memory;
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t amount = 0;
  std::string unit;
  while (file >> name >> amount && std::getline(file, unit)) {
    if (name == "MemTotal:") memory.total = amount * kibibyte;
    if (name == "MemAvailable:") memory.available = amount * kibibyte;
  }
  return memory;
}

std::uint64_t peak_process_memory() {
  constexpr std::uint64_t kibibyte = 1024;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6)) * kibibyte;
  }
  return 0;
}

}  // namespace megalith
