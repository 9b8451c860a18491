#include "generate/tokenizer_files.h"

#include <array>
#include <system_error>
#include <utility>

#include "core/files.h"

namespace megalith {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
using Field = std::string TokenizerOptions::*;

constexpr const char* folder_name = "tokenizer";

struct NamedField {
  const char* name;
  Field field;
};
constexpr std::array<NamedField, 3> file_fields{{{"vocab_file", &TokenizerOptions::vocab_file},
                                                 {"merge_file", &TokenizerOptions::merge_file},
                                                 {"tokenizer_model", &TokenizerOptions::tokenizer_model}}};

// A Hugging Face model may be given as the folder that holds tokenizer.json.
fs::path actual_file(const std::string& given) {
  std::error_code code;
  return fs::is_directory(given, code) ? fs::path(given) / "tokenizer.json" : fs::path(given);
}

// description[group][name], null where either is missing or of another kind.
Json field_of(const Json& description, const char* group, const char* name) {
  const Json fields = description.value(group, Json());
  return fields.is_object() ? fields.value(name, Json()) : Json();
}

}  // namespace

Json store_tokenizer(const fs::path& root, const TokenizerOptions& options, const Tokenizer& tokenizer) {
  Json description = {{"type", options.tokenizer_type},
                      {"fingerprint", tokenizer.fingerprint()},
                      {"vocab_size", tokenizer.vocab_size()},
                      {"files", Json::object()},
                      {"paths", Json::object()}};
  for (const auto& [name, field] : file_fields) {
    const std::string& given = options.*field;
    if (given.empty()) continue;
    const fs::path source = actual_file(given);
    const fs::path target = root / folder_name / source.filename();
    create_folders(target.parent_path());
    const std::string content = read_file(source);
    std::error_code code;
    if (!fs::exists(target, code) || read_file(target) != content) write_file_atomically(target, content);
    description["files"][name] = source.filename().string();
    description["paths"][name] = fs::absolute(source, code).string();
  }
  return description;
}

TokenizerOptions stored_tokenizer(const fs::path& root, const Json& metadata) {
  TokenizerOptions options;
  const Json description = metadata.is_object() ? metadata.value("tokenizer", Json()) : Json();
  if (!description.is_object() || !description.value("type", Json()).is_string()) return options;
  options.tokenizer_type = description["type"].get<std::string>();
  const Json size = description.value("vocab_size", Json());
  if (options.tokenizer_type == "NullTokenizer" && size.is_number_integer())
    options.vocab_size = size.get<std::int64_t>();
  for (const auto& [name, field] : file_fields) {
    const Json file = field_of(description, "files", name);
    const Json path = field_of(description, "paths", name);
    if (!file.is_string()) continue;
    // Only a plain name may be joined to the folder.
    const fs::path beside = root / folder_name / fs::path(file.get<std::string>()).filename();
    std::error_code code;
    const bool use_recorded = !fs::exists(beside, code) && path.is_string();
    options.*field = use_recorded ? path.get<std::string>() : beside.string();
  }
  return options;
}

}  // namespace megalith
