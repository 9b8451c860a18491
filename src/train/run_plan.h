// What a run will be, said before it starts: parameters, memory, steps, numbers that decide its arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/log.h"
#include "core/options.h"
#include "model/gpt_config.h"
#include "optim/num_microbatches_calculator.h"

namespace megalith {

/// Device memory of TrainingState: weights, gradients, optimizer, activations, one microbatch, and of sample
/// texts.
std::size_t planned_device_bytes(const TrainOptions& options, const GptConfig& config);

/// Host memory of --async-save, the most it may take.
std::size_t planned_host_bytes(const TrainOptions& options, const GptConfig& config);

void print_run_plan(const TrainOptions& options, const GptConfig& config,
                    const NumMicrobatchesCalculator& calculator, std::int64_t train_samples, Log& log);

}  // namespace megalith
