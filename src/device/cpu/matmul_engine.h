// MatmulEngine: who computes the cpu device's matrix products. The kernel of blocked_matmul.cpp, or oneDNN
// (folder onednn/) where the build has it and it is faster.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"
#include "device/parallel_for.h"

namespace megalith {

class MatmulEngine {
 public:
  MatmulEngine() = default;
  virtual ~MatmulEngine() = default;
  MatmulEngine(const MatmulEngine&) = delete;
  MatmulEngine& operator=(const MatmulEngine&) = delete;

  /// Name and version of the library, for the device's description.
  virtual std::string description() const = 0;
  /// The product of device.h on checked arguments. Not thread-safe: the device serialises its calls.
  virtual void run(const MatmulArgs& args) = 0;
};

/// Matrix products by oneDNN where it is faster, else by our own kernel, on the team's threads; null where
/// this build lacks it.
std::unique_ptr<MatmulEngine> make_onednn_matmul(ThreadTeam& team);

/// Matrix products by our own kernel: needs nothing but Highway.
std::unique_ptr<MatmulEngine> make_blocked_matmul(ThreadTeam& team);

}  // namespace megalith
