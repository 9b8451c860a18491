// Word and learned position embeddings with dropout: x = dropout(words[token] + positions[position]).
#pragma once

#include "model/gpt_config.h"
#include "model/gradient_sink.h"
#include "model/micro_batch.h"
#include "model/parameter_store.h"

namespace megalith {

class Embedding {
 public:
  Embedding(const GptConfig& config, const ParameterStore& store);

  /// x [R, H] is written.
  void forward(Device& device, const MicroBatch& batch, Pass pass, const Tensor& x) const;
  /// Adds both tables' gradients; x_grad [R, H] is overwritten (dropout undone in place).
  void backward(Device& device, const MicroBatch& batch, const Tensor& x_grad) const;

 private:
  GptConfig config_;
  Tensor words_;
  Tensor positions_;
  GradientSink words_gradient_;
  bool has_word_gradient_ = false;
  GradientSink positions_gradient_;
  PhiloxKey key_;
};

}  // namespace megalith
