#include "generate/loaded_model.h"

#include "core/error.h"
#include "generate/tokenizer_files.h"
#include "model/gpt_config_json.h"
#include "model/gpt_parameters.h"

namespace megalith {

void load_weights(const CheckpointReader& reader, ParameterStore& store) {
  reader.read(store.device(), store.weights());
  store.refresh_compute_copies();
}

void check_tokenizer(const CheckpointReader& reader, const Tokenizer& tokenizer) {
  const nlohmann::json description = reader.metadata().value("tokenizer", nlohmann::json());
  if (!description.is_object() || !description.value("fingerprint", nlohmann::json()).is_string()) return;
  const auto stored = description["fingerprint"].get<std::string>();
  if (stored == tokenizer.fingerprint()) return;
  fail(ErrorKind::input, reader.folder().string(),
       "was trained with another tokenizer (fingerprint {}, {} pieces) than the one given ({}, {} pieces); "
       "its token numbers "
       "mean other text. Give the tokenizer files it was trained with",
       stored, description.value("vocab_size", nlohmann::json()).dump(), tokenizer.fingerprint(),
       tokenizer.vocab_size());
}

LoadedModel load_model(Device& device, const std::filesystem::path& path, std::int64_t iteration,
                       DType compute, const TokenizerOptions& tokenizer) {
  const CheckpointReader reader(path, iteration);
  LoadedModel model;
  model.folder = reader.folder();
  model.iteration = reader.iteration();
  model.config =
      gpt_config_from_json(reader.metadata().value("model", nlohmann::json()), reader.folder().string());
  model.config.compute = compute;
  model.config.check();
  TokenizerOptions options = tokenizer;
  if (options.tokenizer_type.empty())
    options = stored_tokenizer(reader.folder().parent_path(), reader.metadata());
  if (!options.tokenizer_type.empty()) {
    model.tokenizer = load_tokenizer(options);
    check_tokenizer(reader, *model.tokenizer);
    if (model.tokenizer->vocab_size() > model.config.vocabulary) {
      fail(ErrorKind::input, reader.folder().string(),
           "has a vocabulary of {}, the tokenizer has {} pieces; give the tokenizer it was trained with",
           model.config.vocabulary, model.tokenizer->vocab_size());
    }
  }
  // The stored shapes are compared before memory is taken: a damaged size must not ask for terabytes.
  const ParameterTable table = build_gpt_parameter_table(model.config);
  for (const Parameter& row : table.rows()) {
    if (row.tie_group < 0 || reader.contains(row.name)) reader.check_shape(row.name, row.logical_shape);
  }
  model.store = std::make_unique<ParameterStore>(device, table, false);
  load_weights(reader, *model.store);
  return model;
}

}  // namespace megalith
