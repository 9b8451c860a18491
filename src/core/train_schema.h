// The keys of a training run: names, defaults, rules and help of every field of TrainOptions, and the rules
// that tie several keys together. Names and defaults are Megatron-LM's, so that command lines carry over.
#pragma once

#include <cstdint>
#include <vector>

#include "core/options.h"
#include "core/schema.h"

namespace megalith {

/// What the settings are for: a run needs data, batch sizes, a length and a learning rate; a description of
/// the model
/// (`megalith inspect`) does not.
enum class SettingsUse : std::uint8_t { train, describe };

/// Adds every key of TrainOptions, Megatron-LM's other flags, and resolve_options as the last check of
/// parse(). `options` must outlive the schema; neither may move.
void declare_train_settings(Schema& schema, TrainOptions& options, SettingsUse use = SettingsUse::train);

/// Fills in derived defaults and checks the rules over several keys; parse() does this already, a second call
/// changes nothing. Raises one Error (usage) with all mistakes.
void resolve_options(Schema& schema, TrainOptions& options, SettingsUse use = SettingsUse::train);

/// The same, with mistakes appended to `errors`.
void resolve_options(Schema& schema, TrainOptions& options, SettingsUse use,
                     std::vector<std::string>& errors);

/// Flags of Megatron-LM that are not keys here: accepted without effect, or refused with the reason.
std::vector<ForeignFlag> megatron_flags();

}  // namespace megalith
