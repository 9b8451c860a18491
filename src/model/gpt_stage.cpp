#include "model/gpt_stage.h"

namespace megalith {

GptStage::GptStage(Device& device, const GptConfig& config, const ParameterStore& store,
                   const StageRange& range, const StageCapacity& capacity)
    : device_(device),
      config_(config),
      range_(range),
      capacity_(capacity),
      groups_(layer_groups(config, range.layers)),
      arena_(device, stage_bytes(config, range, capacity)) {
  MEGALITH_ASSERT(device.supports(config.compute),
                  format("device {} has no {}", device.name(), name_of(config.compute)));
  MEGALITH_ASSERT(!(capacity.split_backward && config.recompute == RecomputeGranularity::full),
                  "a split backward pass needs the activations that full recomputation shares");
  buffers_ = allocate_stage_buffers(arena_, config, range, capacity);
  if (range.embedding) embedding_.emplace(config, store);
  for (std::int64_t layer = 0; layer < range.layers; ++layer) {
    layers_.emplace_back(config, store, range.first_layer + layer);
  }
  if (range.head) head_.emplace(config, store);
}

void GptStage::check_batch(const MicroBatch& batch, bool with_targets) const {
  const Shape rows{capacity_.micro_batch * config_.sequence};
  MEGALITH_ASSERT(
      batch.samples.shape == Shape{capacity_.micro_batch},
      format("samples {} for microbatches of {}", batch.samples.shape.to_string(), capacity_.micro_batch));
  const bool inputs = !range_.embedding || (batch.tokens.shape == rows && batch.positions.shape == rows);
  const bool outputs = !with_targets || (batch.targets.shape == rows && batch.loss_mask.shape == rows);
  MEGALITH_ASSERT(inputs && outputs, format("a microbatch must have {} tokens", rows.to_string()));
}

const LayerGradients& GptStage::gradients(int slot, std::int64_t layer) const {
  return buffers_.gradients.at(static_cast<std::size_t>(slot)).at(static_cast<std::size_t>(layer));
}

Tensor GptStage::gradient_after(int slot, std::int64_t layer) const {
  return layer + 1 == range_.layers ? output_gradient(slot) : gradients(slot, layer + 1).input;
}

Tensor GptStage::input_gradient(int slot) const {
  return gradient_after(slot, -1);
}

void GptStage::forward(int slot, const MicroBatch& batch, Pass pass) {
  const StageBuffers::Slot& kept = buffers(slot);
  MEGALITH_ASSERT(capacity_.training || pass == Pass::evaluation,
                  "this stage was made without memory for a backward pass");
  check_batch(batch, head_.has_value());
  const Region region(device_, "forward");
  if (embedding_) embedding_->forward(device_, batch, pass, kept.inputs.front());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const Region layer_region(device_, "layer", static_cast<std::int64_t>(layer));
    layers_[layer].forward(device_, batch, pass, kept.layers[layer], kept.inputs[layer],
                           kept.inputs[layer + 1]);
  }
  if (head_) {
    head_->forward_loss(device_, batch, pass, kept.head, buffers_.head_scratch, kept.inputs.back());
  }
}

void GptStage::recompute(const LayerGroup& group, int slot, const MicroBatch& batch) {
  const StageBuffers::Slot& kept = buffers(slot);
  const Region region(device_, "recompute");
  for (std::int64_t i = 0; i < group.count; ++i) {
    const auto layer = static_cast<std::size_t>(group.first + i);
    // The group's result is kept or no longer needed: its last layer stops short of it.
    const Tensor y = i + 1 == group.count ? Tensor() : kept.inputs[layer + 1];
    layers_[layer].forward(device_, batch, Pass::training, kept.layers[layer], kept.inputs[layer], y);
  }
}

void GptStage::run_backward(int slot, const MicroBatch& batch, bool with_weights) {
  MEGALITH_ASSERT(capacity_.training, "this stage was made without memory for a backward pass");
  const StageBuffers::Slot& kept = buffers(slot);
  check_batch(batch, head_.has_value());
  const Region region(device_, "backward");
  if (head_) head_->backward_input(device_, kept.head, kept.inputs.back(), output_gradient(slot));
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    if (group->recomputed) recompute(*group, slot, batch);
    for (std::int64_t layer = group->first + group->count - 1; layer >= group->first; --layer) {
      const Region layer_region(device_, "layer", layer);
      const auto place = static_cast<std::size_t>(layer);
      const Tensor y_grad = gradient_after(slot, layer);
      layers_[place].backward_input(device_, batch, kept.layers[place], kept.inputs[place], y_grad,
                                    gradients(slot, layer), buffers_.scratch);
      if (with_weights) {
        layers_[place].backward_weight(device_, kept.layers[place], kept.inputs[place], y_grad,
                                       gradients(slot, layer));
      }
    }
  }
  if (embedding_) embedding_->backward(device_, batch, input_gradient(slot));
}

void GptStage::backward(int slot, const MicroBatch& batch) {
  run_backward(slot, batch, true);
}

void GptStage::backward_input(int slot, const MicroBatch& batch) {
  MEGALITH_ASSERT(capacity_.split_backward, "this stage was made without split_backward");
  run_backward(slot, batch, false);
}

void GptStage::backward_weight(int slot) {
  MEGALITH_ASSERT(capacity_.split_backward, "this stage was made without split_backward");
  const Region region(device_, "backward weight");
  const StageBuffers::Slot& kept = buffers(slot);
  for (std::int64_t layer = range_.layers - 1; layer >= 0; --layer) {
    const auto place = static_cast<std::size_t>(layer);
    layers_[place].backward_weight(device_, kept.layers[place], kept.inputs[place],
                                   gradient_after(slot, layer), gradients(slot, layer));
  }
}

}  // namespace megalith
