// MicroBatch: what a model reads for B sequences of S tokens (R = B*S), all in device memory.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace megalith {

struct MicroBatch {
  Tensor tokens;     ///< int32 [R]
  Tensor positions;  ///< int32 [R]: rows of the position table
  Tensor samples;    ///< int64 [B]: consumed-sample number, the dropout's counter
  Tensor targets;    ///< int32 [R]; only where the loss is wanted
  Tensor loss_mask;  ///< sum type [R]: weight of each token's loss
  /// Optional int32 [B, documents + 1], each row from 0 to S without falling and padded with S: attention
  /// stays inside each document of its sequence.
  Tensor cu_seqlens = {};
  /// Optional int32 [R], for a store that keeps gradients of the step's words
  /// only (ParameterStore::has_word_gradient): which of those words each token
  /// is.
  Tensor word_numbers = {};
  /// float64 [1]: sum over tokens of loss * mask is added to it.
  Tensor loss_sum;
  /// float64 [1]: factor of every token's gradient. The loss is "sum over the unmasked tokens of the global
  /// batch / their count" with 1/count, and Megatron's mean of microbatch means with 1/(microbatches * count
  /// in this one).
  Tensor gradient_scale;
};

/// training draws dropout masks, evaluation has none.
enum class Pass : std::uint8_t { training, evaluation };

}  // namespace megalith
