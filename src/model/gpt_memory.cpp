#include "model/gpt_memory.h"

#include "model/parameter_store.h"

namespace megalith {

GptMemory gpt_memory(const GptConfig& config, const ParameterTable& table, const StageRange& range,
                     const StageCapacity& capacity, std::int64_t most_words) {
  const ParameterMemory parameters = parameter_memory(table, most_words);
  return {parameters.master, parameters.compute_copies, parameters.gradients,
          stage_bytes(config, range, capacity)};
}

}  // namespace megalith
