// The end of a GPT: final norm, output layer, cross-entropy. Logits are stored once and become their own
// gradient.
#pragma once

#include "model/arena.h"
#include "model/gpt_config.h"
#include "model/linear.h"
#include "model/micro_batch.h"

namespace megalith {

struct HeadActivations {
  Tensor norm;          ///< [R, H] input of the output layer
  Tensor mean;          ///< sum type [R]
  Tensor rstd;          ///< sum type [R]
  Tensor logits;        ///< [R, padded V]
  Tensor row_max;       ///< sum type [R]
  Tensor row_sum;       ///< sum type [R]
  Tensor target_logit;  ///< sum type [R]
  Tensor losses;        ///< sum type [R]
};

HeadActivations allocate_head_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                          std::int64_t sequences);

class OutputHead {
 public:
  OutputHead(const GptConfig& config, const ParameterStore& store);

  /// kept.logits from x [R, H]; columns at or past the true vocabulary are meaningless.
  void forward_logits(Device& device, const HeadActivations& kept, const Tensor& x) const;
  /// kept.losses of every token, and batch.loss_sum += sum of losses * loss_mask. After forward_logits.
  void forward_loss(Device& device, const MicroBatch& batch, const HeadActivations& kept) const;

  /// x_grad [R, H]; overwrites kept.logits with their gradient, for backward_weight.
  void backward_input(Device& device, const MicroBatch& batch, const HeadActivations& kept, const Tensor& x,
                      const Tensor& x_grad) const;
  /// Adds the output layer's gradient.
  void backward_weight(Device& device, const HeadActivations& kept) const;

 private:
  GptConfig config_;
  Norm norm_;
  Linear output_;
};

}  // namespace megalith
