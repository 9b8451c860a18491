// GptInference: a GPT with a cache of keys and values, for generation. Sequences of a batch may have any
// lengths; each step appends tokens to some or all of them and gives the logits after each one's last token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/embedding.h"
#include "model/output_head.h"
#include "model/transformer_layer.h"

namespace megalith {

struct InferenceCapacity {
  std::int64_t sequences = 1;
  std::int64_t context = 0;  ///< most tokens a sequence may reach; at most config.max_positions
  std::int64_t chunk = 0;  ///< most tokens of a sequence computed at once; longer prompts take several passes
};

class GptInference {
 public:
  /// Takes all memory here. `store` outlives this object, and may be one that is being trained.
  /// Raises Error (usage) where the context exceeds the position table.
  GptInference(Device& device, const GptConfig& config, const ParameterStore& store,
               const InferenceCapacity& capacity);

  /// Appends tokens[b] (empty: nothing) to sequence b, b < sequences. Waits for the device. Raises Error
  /// (usage) where a sequence would outgrow the context, (input) for a token outside the vocabulary; nothing
  /// has changed then.
  void step(std::span<const std::vector<std::int32_t>> tokens);

  /// Logits after the last token of every sequence that has one, float32 [sequences, vocabulary] on the host.
  std::span<const float> logits() const { return host_logits_; }

  std::int64_t length(std::int64_t sequence) const { return lengths_.at(static_cast<std::size_t>(sequence)); }
  /// Forgets all tokens of a sequence from `length` on.
  void truncate(std::int64_t sequence, std::int64_t length);
  void reset();

  std::size_t bytes() const { return arena_.bytes(); }
  /// Bytes of such an object, without a device. Raises what the constructor raises.
  static std::size_t planned_bytes(const GptConfig& config, const InferenceCapacity& capacity);

 private:
  struct Buffers {
    Tensor tokens;       ///< int32 [B*chunk]
    Tensor positions;    ///< int32 [B*chunk]
    Tensor key_lengths;  ///< int32 [B]
    Tensor states;       ///< [B*chunk, H]
    Tensor ends;         ///< [B, H]: after the last token of each sequence in this chunk
    Tensor last;         ///< [B, H]: after the last token of each sequence
    Tensor host_copy;    ///< float32 [B, V]
    LayerActivations layer;
    HeadActivations head;
    Tensor logits;  ///< [B, padded V]
    std::vector<LayerCache> caches;
  };
  static Buffers allocate(Arena& arena, const GptConfig& config, const InferenceCapacity& capacity);
  void check(std::span<const std::vector<std::int32_t>> tokens) const;
  /// Tokens done_[b] .. done_[b] + counts_[b] of every sequence.
  void run_chunk(std::span<const std::vector<std::int32_t>> tokens, std::int64_t steps);

  Device& device_;
  GptConfig config_;
  InferenceCapacity capacity_;
  Arena arena_;
  Buffers buffers_;
  Embedding embedding_;
  std::vector<TransformerLayer> layers_;
  OutputHead head_;
  std::vector<std::int64_t> lengths_;
  // Kept from step to step, which then need no memory.
  std::vector<std::int64_t> done_;
  std::vector<std::int64_t> counts_;
  std::vector<std::int32_t> host_tokens_;
  std::vector<std::int32_t> host_positions_;
  std::vector<std::int32_t> host_key_lengths_;
  std::vector<float> host_logits_;
};

}  // namespace megalith
