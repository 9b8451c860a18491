// The tokenizer's own files beside a run's checkpoints, so that text can be generated from the folder alone.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/tokenizer.h"

namespace megalith {

/// Copies the files that `options` name to ROOT/tokenizer and describes the tokenizer for a checkpoint's
/// metadata: {type, fingerprint, vocab_size, files, paths}.
nlohmann::json store_tokenizer(const std::filesystem::path& root, const TokenizerOptions& options,
                               const Tokenizer& tokenizer);

/// The options that open the tokenizer a checkpoint was trained with: from ROOT/tokenizer, else from the
/// recorded paths. An empty tokenizer_type where the run had none.
TokenizerOptions stored_tokenizer(const std::filesystem::path& root, const nlohmann::json& metadata);

}  // namespace megalith
