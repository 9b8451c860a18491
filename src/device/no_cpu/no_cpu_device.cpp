// Stands in for the cpu device in builds without Highway.
#include "core/error.h"
#include "device/cpu/cpu_device.h"

namespace megalith {

std::unique_ptr<Device> make_cpu_device(const DeviceOptions&) {
  fail(ErrorKind::environment, "device cpu",
       "this build lacks it, because the Highway library (1.0.3 or newer) was not found; without it only the "
       "reference device runs: one thread, no vectors, no bfloat16, a hundred times slower; install "
       "libhwy-dev and "
       "build again, or choose the reference device");
}

}  // namespace megalith
