#include "model/gpt_inference.h"

#include <algorithm>

namespace megalith {
namespace {

// The buffers of a chunk of `steps` tokens in memory planned for longer ones.
LayerActivations shaped(const LayerActivations& planned, const GptConfig& config, std::int64_t sequences,
                        std::int64_t steps) {
  const std::int64_t rows = sequences * steps;
  LayerActivations kept = planned;
  for (Tensor* tensor : {&kept.norm_1, &kept.mean_1, &kept.rstd_1, &kept.qkv, &kept.attended, &kept.middle,
                         &kept.norm_2, &kept.mean_2, &kept.rstd_2, &kept.preactivation, &kept.activated}) {
    *tensor = tensor->sliced(0, 0, rows);
  }
  kept.log_sum_exp = prefix_view(kept.log_sum_exp, {sequences, config.heads, steps});
  return kept;
}

}  // namespace

GptInference::Buffers GptInference::allocate(Arena& arena, const GptConfig& config,
                                             const InferenceCapacity& capacity) {
  GptConfig chunk = config;
  chunk.sequence = capacity.chunk;
  chunk.recompute = RecomputeGranularity::none;
  GptConfig one = chunk;
  one.sequence = 1;
  const std::int64_t sequences = capacity.sequences;
  const std::int64_t rows = sequences * capacity.chunk;
  Buffers buffers;
  buffers.tokens = arena.allocate("tokens", DType::int32, {rows});
  buffers.positions = arena.allocate("positions", DType::int32, {rows});
  buffers.key_lengths = arena.allocate("key_lengths", DType::int32, {sequences});
  buffers.states = arena.allocate("states", config.compute, {rows, config.hidden});
  buffers.ends = arena.allocate("ends", config.compute, {sequences, config.hidden});
  buffers.last = arena.allocate("last", config.compute, {sequences, config.hidden});
  buffers.host_copy = arena.allocate("host_copy", DType::float32, {sequences, config.vocabulary});
  buffers.layer = allocate_layer_activations(arena, "layer", chunk, sequences, {});
  buffers.head = allocate_head_activations(arena, "head", one, sequences);
  buffers.logits = arena.allocate("logits", config.compute, {sequences, config.padded_vocabulary});
  const Shape cache{sequences, capacity.context, config.heads, config.head_size};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    buffers.caches.push_back({arena.allocate(format("keys{}", layer), config.compute, cache),
                              arena.allocate(format("values{}", layer), config.compute, cache)});
  }
  return buffers;
}

std::size_t GptInference::planned_bytes(const GptConfig& config, const InferenceCapacity& capacity) {
  MEGALITH_ASSERT(capacity.sequences > 0 && capacity.context > 0 && capacity.chunk > 0,
                  "generation needs room for at least one token");
  if (capacity.context > config.max_positions) {
    fail(ErrorKind::usage, "generate",
         "a context of {} tokens, but the model has {} positions; ask for fewer tokens", capacity.context,
         config.max_positions);
  }
  Arena counting;
  allocate(counting, config, capacity);
  return counting.bytes();
}

GptInference::GptInference(Device& device, const GptConfig& config, const ParameterStore& store,
                           const InferenceCapacity& capacity)
    : device_(device),
      config_(config),
      capacity_(capacity),
      arena_(device, planned_bytes(config, capacity)),
      buffers_(allocate(arena_, config, capacity)),
      embedding_(config, store),
      head_(config, store),
      lengths_(static_cast<std::size_t>(capacity.sequences), 0),
      done_(lengths_.size()),
      counts_(lengths_.size()),
      host_key_lengths_(lengths_.size()),
      host_logits_(static_cast<std::size_t>(capacity.sequences * config.vocabulary), 0.0F) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer) layers_.emplace_back(config, store, layer);
  // Sequences that have no token yet take part in the last matrix product too: their rows must be numbers.
  device_.fill(QueueKind::compute, buffers_.last, 0.0);
}

void GptInference::check(std::span<const std::vector<std::int32_t>> tokens) const {
  MEGALITH_ASSERT(tokens.size() == lengths_.size(),
                  format("{} token lists for {} sequences", tokens.size(), lengths_.size()));
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    const std::int64_t length = lengths_[b] + static_cast<std::int64_t>(tokens[b].size());
    if (length > capacity_.context) {
      fail(ErrorKind::usage, "generate", "sequence {} would have {} tokens; the context holds {}", b, length,
           capacity_.context);
    }
    for (const std::int32_t token : tokens[b]) {
      if (token < 0 || token >= config_.vocabulary) {
        fail(ErrorKind::input, "generate", "token {} in sequence {}; the vocabulary has {} tokens", token, b,
             config_.vocabulary);
      }
    }
  }
}

void GptInference::run_chunk(std::span<const std::vector<std::int32_t>> tokens, std::int64_t steps) {
  const std::int64_t sequences = capacity_.sequences;
  const std::int64_t rows = sequences * steps;
  // New tokens stand at the right end of their rows; what is left of them is padding that sees no key.
  host_tokens_.assign(static_cast<std::size_t>(rows), 0);
  host_positions_.assign(static_cast<std::size_t>(rows), 0);
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    const std::size_t first =
        (b + 1) * static_cast<std::size_t>(steps) - static_cast<std::size_t>(counts_[b]);
    for (std::int64_t i = 0; i < counts_[b]; ++i) {
      host_tokens_[first + static_cast<std::size_t>(i)] = tokens[b][static_cast<std::size_t>(done_[b] + i)];
      host_positions_[first + static_cast<std::size_t>(i)] = static_cast<std::int32_t>(lengths_[b] + i);
    }
    host_key_lengths_[b] = static_cast<std::int32_t>(lengths_[b] + counts_[b]);
  }
  MicroBatch batch;
  batch.tokens = buffers_.tokens.sliced(0, 0, rows);
  batch.positions = buffers_.positions.sliced(0, 0, rows);
  device_.copy_to_device(QueueKind::compute, batch.tokens, host_tokens_.data());
  device_.copy_to_device(QueueKind::compute, batch.positions, host_positions_.data());
  device_.copy_to_device(QueueKind::compute, buffers_.key_lengths, host_key_lengths_.data());

  const Tensor states = buffers_.states.sliced(0, 0, rows);
  const LayerActivations scratch = shaped(buffers_.layer, config_, sequences, steps);
  const CachedStep step{sequences, steps, counts_, lengths_, buffers_.key_lengths};
  embedding_.forward(device_, batch, Pass::evaluation, states);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    // Of the last layer only the tokens are needed whose logits may be.
    const Tensor y = layer + 1 < layers_.size() ? states : buffers_.ends;
    layers_[layer].forward_cached(device_, step, buffers_.caches[layer], scratch, states, y);
  }
  for (std::int64_t b = 0; b < sequences; ++b) {
    if (counts_[static_cast<std::size_t>(b)] == 0) continue;
    device_.copy(QueueKind::compute, buffers_.last.sliced(0, b, b + 1), buffers_.ends.sliced(0, b, b + 1));
  }
  device_.synchronize(QueueKind::compute);
  for (std::size_t b = 0; b < tokens.size(); ++b) lengths_[b] += counts_[b];
}

void GptInference::step(std::span<const std::vector<std::int32_t>> tokens) {
  check(tokens);
  std::fill(done_.begin(), done_.end(), 0);
  bool any = false;
  while (true) {
    std::int64_t steps = 0;
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      counts_[b] = std::min(capacity_.chunk, static_cast<std::int64_t>(tokens[b].size()) - done_[b]);
      steps = std::max(steps, counts_[b]);
    }
    if (steps == 0) break;
    any = true;
    run_chunk(tokens, steps);
    for (std::size_t b = 0; b < tokens.size(); ++b) done_[b] += counts_[b];
  }
  if (!any) return;
  head_.forward_logits(device_, buffers_.head, buffers_.logits, buffers_.last);
  device_.copy(QueueKind::compute, buffers_.host_copy, buffers_.logits.sliced(1, 0, config_.vocabulary));
  device_.copy_to_host(QueueKind::compute, host_logits_.data(), buffers_.host_copy);
  device_.synchronize(QueueKind::compute);
}

void GptInference::truncate(std::int64_t sequence, std::int64_t length) {
  std::int64_t& current = lengths_.at(static_cast<std::size_t>(sequence));
  MEGALITH_ASSERT(length >= 0 && length <= current, format("cannot cut {} tokens to {}", current, length));
  current = length;
}

void GptInference::reset() {
  std::fill(lengths_.begin(), lengths_.end(), 0);
}

}  // namespace megalith
