// What a GPT needs of a device's memory, from the same lists that allocate it.
#pragma once

#include <cstddef>

#include "model/gpt_stage.h"
#include "model/parameter_table.h"

namespace megalith {

struct GptMemory {
  std::size_t master_weights = 0;
  std::size_t compute_copies = 0;  ///< 0 where compute and master type agree
  std::size_t gradients = 0;
  std::size_t activations = 0;  ///< activations and scratch of the stage's steps

  std::size_t total() const { return master_weights + compute_copies + gradients + activations; }
};

/// most_words: as ParameterStore's. Without the optimizer's state (optim/optimizer.h: optimizer_bytes) and
/// the caller's batches.
GptMemory gpt_memory(const GptConfig& config, const ParameterTable& table, const StageRange& range,
                     const StageCapacity& capacity, std::int64_t most_words = 0);

}  // namespace megalith
