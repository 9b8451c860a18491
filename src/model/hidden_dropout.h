// Dropout of the residual stream's additions: what embedding, attention and MLP share.
#pragma once

#include "device/device.h"
#include "model/gpt_config.h"
#include "model/micro_batch.h"

namespace megalith {

/// [R, H] as the [B, S, H] that dropout kernels count rows in.
inline Tensor batched(const Tensor& rows, std::int64_t sequences) {
  return rows.reshaped({sequences, rows.shape[0] / sequences, rows.shape[1]});
}

/// Dropout with config.hidden_dropout at the site that `key` names; none in an evaluation.
inline DropoutArgs hidden_dropout(const GptConfig& config, const PhiloxKey& key, const MicroBatch& batch,
                                  Pass pass) {
  DropoutArgs args;
  args.probability = pass == Pass::training ? config.hidden_dropout : 0.0;
  args.key = key;
  args.samples = batch.samples;
  return args;
}

}  // namespace megalith
