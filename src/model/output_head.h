// The end of a GPT: final norm, output layer, cross-entropy. Logits are the largest tensor of a step, R rows
// of the whole vocabulary, so they only ever exist for a chunk of rows: softmax, loss and, in training, both
// gradients of the output layer follow at once, and the next chunk takes the same memory. So the output
// layer's backward pass is part of forward, and nothing is computed twice.
//
// Vocabulary parallelism: each chunk's row_max, row_sum and target_logit are combined over the ranks between
// cross_entropy_forward and what follows, and the gradient of the norm's output is summed over them.
#pragma once

#include "model/arena.h"
#include "model/gpt_config.h"
#include "model/linear.h"
#include "model/micro_batch.h"

namespace megalith {

struct HeadActivations {
  Tensor norm;    ///< [R, H] input of the output layer; after a training pass its gradient
  Tensor mean;    ///< sum type [R]
  Tensor rstd;    ///< sum type [R]
  Tensor losses;  ///< sum type [R]
};

/// Of one chunk of C rows; nothing in it outlasts a call.
struct HeadScratch {
  Tensor logits;        ///< [C, padded V], overwritten with their gradient
  Tensor row_max;       ///< sum type [C]
  Tensor row_sum;       ///< sum type [C]
  Tensor target_logit;  ///< sum type [C]
};

/// Most rows whose logits exist at once. A chunk of C rows computes 6 C V H FLOPs and moves the output
/// layer's weight twice and its gradient twice, whatever C: 256 rows keep memory well behind float32
/// arithmetic. Types of two bytes may be computed several times as fast and move half of the weight.
constexpr std::int64_t head_chunk_rows(DType compute) {
  return size_of(compute) <= 2 ? 1024 : 256;
}

HeadActivations allocate_head_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                          std::int64_t sequences);
/// Scratch for `rows` rows in chunks.
HeadScratch allocate_head_scratch(Arena& arena, const std::string& name, const GptConfig& config,
                                  std::int64_t rows);

class OutputHead {
 public:
  OutputHead(const GptConfig& config, const ParameterStore& store);

  /// logits [R, padded V] of x [R, H]; columns at or past the true vocabulary are meaningless. Fills
  /// kept.norm, mean and rstd.
  void forward_logits(Device& device, const HeadActivations& kept, const Tensor& logits,
                      const Tensor& x) const;

  /// kept.losses of every row of x [R, H], and batch.loss_sum += sum of losses * loss_mask. A training pass
  /// leaves the gradient of the norm's output in kept.norm and adds the output layer's gradient.
  void forward_loss(Device& device, const MicroBatch& batch, Pass pass, const HeadActivations& kept,
                    const HeadScratch& scratch, const Tensor& x) const;

  /// x_grad [R, H] from what a training pass left; adds the norm's gradients.
  void backward_input(Device& device, const HeadActivations& kept, const Tensor& x,
                      const Tensor& x_grad) const;

 private:
  void run_chunk(Device& device, const MicroBatch& batch, Pass pass, const HeadScratch& chunk,
                 const Tensor& norm, const Tensor& losses, std::int64_t first) const;

  GptConfig config_;
  Norm norm_;
  Linear output_;
};

}  // namespace megalith
