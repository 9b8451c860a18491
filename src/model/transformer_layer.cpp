#include "model/transformer_layer.h"

namespace megalith {

void TransformerLayer::forward(Device& device, const MicroBatch& batch, Pass pass,
                               const LayerActivations& kept, const Tensor& x, const Tensor& y) const {
  attention_.forward(device, batch, pass, kept, x, kept.middle);
  mlp_.forward(device, batch, pass, kept, kept.middle, y);
}

void TransformerLayer::backward_input(Device& device, const MicroBatch& batch, const LayerActivations& kept,
                                      const Tensor& x, const Tensor& y_grad, const LayerGradients& gradients,
                                      const LayerScratch& scratch) const {
  mlp_.backward_input(device, batch, kept, kept.middle, y_grad, gradients);
  attention_.backward_input(device, batch, kept, x, gradients.middle, gradients, scratch);
}

void TransformerLayer::backward_weight(Device& device, const LayerActivations& kept, const Tensor& x,
                                       const Tensor& y_grad, const LayerGradients& gradients) const {
  mlp_.backward_weight(device, kept, kept.middle, y_grad, gradients);
  attention_.backward_weight(device, kept, x, gradients.middle, gradients);
}

void TransformerLayer::forward_cached(Device& device, const CachedStep& step, const LayerCache& cache,
                                      const LayerActivations& scratch, const Tensor& x,
                                      const Tensor& y) const {
  attention_.forward_cached(device, step, cache, scratch, x, y);
  mlp_.forward_inference(device, scratch, y, y);
}

}  // namespace megalith
