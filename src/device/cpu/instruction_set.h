// The instruction set that the cpu device's kernels run with on this machine.
#pragma once

#include <string>

namespace megalith {

/// Highway's name of it: "AVX3" (AVX-512), "AVX2", "NEON" ...
std::string instruction_set();

}  // namespace megalith
