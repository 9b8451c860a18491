// What `megalith bench kernels` runs: passes of a model on random tokens, each with the least time it could
// take.
#pragma once

#include <memory>
#include <string>

#include "core/log.h"
#include "core/options.h"
#include "device/device.h"
#include "device/yardsticks.h"
#include "model/gpt_config.h"

namespace megalith {

class BenchPass {
 public:
  BenchPass() = default;
  virtual ~BenchPass() = default;
  BenchPass(const BenchPass&) = delete;
  BenchPass& operator=(const BenchPass&) = delete;

  /// One pass; waits for the device.
  virtual void run() = 0;
  /// The least time of one pass: its model FLOPs at the multiply-add peak, or where each weight is used for
  /// few tokens, the weights' bytes at the memory's rate of reading.
  virtual KernelLimit limit(const Yardsticks& yardsticks) const = 0;
};

/// `name`: "training" (a step of one microbatch), "evaluation" (its forward pass and loss), "prompt" (one
/// prompt a sequence long), "generation" (the 16 tokens that end a sequence, one by one). Takes the memory it
/// needs here.
std::unique_ptr<BenchPass> make_bench_pass(const std::string& name, Device& device,
                                           const TrainOptions& options, const GptConfig& config, Log& log);

}  // namespace megalith
