// A model's description in a checkpoint: any JSON gives a config that is sound and describes itself the same
// way, or an Error (input).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "model/gpt_config_json.h"
#include "model/gpt_memory.h"
#include "model/gpt_parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace megalith;
  const nlohmann::json json = nlohmann::json::parse(data, data + size, nullptr, false);
  try {
    const GptConfig config = gpt_config_from_json(json, "checkpoint");
    config.check();
    if (!gpt_config_differences(gpt_config_json(config), gpt_config_json(config)).empty()) std::abort();
    const GptConfig again = gpt_config_from_json(gpt_config_json(config), "again");
    if (!gpt_config_differences(gpt_config_json(config), gpt_config_json(again)).empty()) std::abort();
    if (config.layers > 100) return 0;  // tables of many layers are only slow
    const ParameterTable table = build_gpt_parameter_table(config);
    if (table.parameter_count() <= 0) std::abort();
    gpt_memory(config, table, StageRange::whole(config), {1, 1, true, false});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
  }
  return 0;
}
