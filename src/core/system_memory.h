// How much memory this machine has.
#pragma once

#include <cstdint>

namespace megalith {

struct SystemMemory {
  std::uint64_t total = 0;      ///< bytes; 0 where the system does not say
  std::uint64_t available = 0;  ///< bytes that can be taken without swapping
};

SystemMemory read_system_memory();

/// The most memory this process has held so far, in bytes; 0 where unknown.
std::uint64_t peak_process_memory();

}  // namespace megalith
