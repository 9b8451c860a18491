// One pre-norm transformer layer (Radford et al. 2019): attention, then MLP, each added to the residual
// stream. Stateless between calls: what it keeps lies in LayerActivations and LayerGradients that the stage
// hands in.
#pragma once

#include "model/mlp.h"
#include "model/self_attention.h"

namespace megalith {

class TransformerLayer {
 public:
  TransformerLayer(const GptConfig& config, const ParameterStore& store, std::int64_t layer)
      : attention_(config, store, layer), mlp_(config, store, layer) {}

  /// y [R, H] = layer(x [R, H]); fills `kept`. An absent y stops before the MLP's output, for recomputation.
  void forward(Device& device, const MicroBatch& batch, Pass pass, const LayerActivations& kept,
               const Tensor& x, const Tensor& y) const;

  /// From y_grad to gradients.input. `x` and `kept` as in forward. y_grad must stay until backward_weight has
  /// run.
  void backward_input(Device& device, const MicroBatch& batch, const LayerActivations& kept, const Tensor& x,
                      const Tensor& y_grad, const LayerGradients& gradients,
                      const LayerScratch& scratch) const;

  /// Adds the gradients of the four linear layers' parameters.
  void backward_weight(Device& device, const LayerActivations& kept, const Tensor& x, const Tensor& y_grad,
                       const LayerGradients& gradients) const;

  /// Generation: y = layer(x [B*steps, H]); keys and values go to `cache`. y has as many rows, and may be x's
  /// memory, or is [B, H]: the output after each sequence's last token.
  void forward_cached(Device& device, const CachedStep& step, const LayerCache& cache,
                      const LayerActivations& scratch, const Tensor& x, const Tensor& y) const;

 private:
  SelfAttention attention_;
  Mlp mlp_;
};

}  // namespace megalith
