#include "model/embedding.h"

#include "model/hidden_dropout.h"

namespace megalith {

Embedding::Embedding(const GptConfig& config, const ParameterStore& store)
    : config_(config), key_(philox_key(config.seed, "dropout:embedding")) {
  const int words = store.row("embedding.word_embeddings.weight");
  const int positions = store.row("embedding.position_embeddings.weight");
  words_ = store.compute(words);
  positions_ = store.compute(positions);
  words_gradient_ = store.gradient_sink(words);
  has_word_gradient_ = words_gradient_.tensor && store.has_word_gradient(words);
  positions_gradient_ = store.gradient_sink(positions);
}

void Embedding::forward(Device& device, const MicroBatch& batch, Pass pass, const Tensor& x) const {
  const Region region(device, "embedding");
  EmbeddingArgs args;
  args.tokens = batch.tokens;
  args.table = words_;
  args.rows = x;
  device.embedding_forward(QueueKind::compute, args);
  args.tokens = batch.positions;
  args.table = positions_;
  args.accumulate = true;
  device.embedding_forward(QueueKind::compute, args);
  if (pass == Pass::evaluation || config_.hidden_dropout == 0.0) return;
  const std::int64_t sequences = batch.samples.shape[0];
  const Tensor states = batched(x, sequences);
  device.dropout_add_forward(
      QueueKind::compute, {states, Tensor(), Tensor(), states, hidden_dropout(config_, key_, batch, pass)});
}

void Embedding::backward(Device& device, const MicroBatch& batch, const Tensor& x_grad) const {
  const Region region(device, "embedding");
  if (config_.hidden_dropout > 0.0) {
    const std::int64_t sequences = batch.samples.shape[0];
    const Tensor states = batched(x_grad, sequences);
    device.dropout_backward(QueueKind::compute, states, states,
                            hidden_dropout(config_, key_, batch, Pass::training));
  }
  const Tensor& words = has_word_gradient_ ? batch.word_numbers : batch.tokens;
  device.embedding_backward(QueueKind::compute, {words, x_grad, words_gradient_.to_add_to(device), 0});
  device.embedding_backward(QueueKind::compute,
                            {batch.positions, x_grad, positions_gradient_.to_add_to(device), 0});
}

}  // namespace megalith
