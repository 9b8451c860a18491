#include <algorithm>

#include "model/gpt_stage.h"

namespace megalith {
namespace {

// One slot's tensors. `shared` are the activations that recomputed groups use, `shared_inputs` the inputs of
// such a group's layers after the first.
StageBuffers::Slot allocate_slot(Arena& arena, const std::string& name, const GptConfig& config,
                                 const StageRange& range, std::int64_t sequences,
                                 const std::vector<LayerGroup>& groups, const CheapActivations& cheap,
                                 const std::vector<LayerActivations>& shared,
                                 const std::vector<Tensor>& shared_inputs) {
  const Shape states{sequences * config.sequence, config.hidden};
  StageBuffers::Slot slot;
  for (const LayerGroup& group : groups) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::string layer = format("{}.layer{}", name, group.first + i);
      const auto place = static_cast<std::size_t>(i);
      const bool own_input = !group.recomputed || i == 0;
      slot.inputs.push_back(own_input ? arena.allocate(layer + ".input", config.compute, states)
                                      : shared_inputs.at(place));
      slot.layers.push_back(group.recomputed
                                ? shared.at(place)
                                : allocate_layer_activations(arena, layer, config, sequences, cheap));
    }
  }
  slot.inputs.push_back(arena.allocate(name + ".output", config.compute, states));
  if (range.head) slot.head = allocate_head_activations(arena, name + ".head", config, sequences);
  return slot;
}

// Without a backward pass nothing needs to last: all layers share one set, and the states one tensor, because
// a layer does not read its input once its attention has run.
StageBuffers::Slot allocate_forward_slot(Arena& arena, const GptConfig& config, const StageRange& range,
                                         std::int64_t sequences) {
  GptConfig keep_all = config;
  keep_all.recompute = RecomputeGranularity::none;
  const auto layers = static_cast<std::size_t>(range.layers);
  StageBuffers::Slot slot;
  slot.inputs.assign(layers + 1,
                     arena.allocate("states", config.compute, {sequences * config.sequence, config.hidden}));
  slot.layers.assign(layers, allocate_layer_activations(arena, "layer", keep_all, sequences, {}));
  if (range.head) slot.head = allocate_head_activations(arena, "head", config, sequences);
  return slot;
}

struct SharedBackward {
  std::vector<LayerGradients> gradients;  ///< by layer
  LayerScratch scratch;
};

// Without split_backward two input gradients take turns and the rest is shared by all layers.
SharedBackward share_backward(Arena& inputs, Arena& arena, const GptConfig& config, std::int64_t sequences,
                              std::int64_t layers) {
  SharedBackward shared;
  shared.scratch = allocate_layer_scratch(arena, "scratch", config, sequences);
  if (layers == 0) return shared;
  const LayerGradients even = allocate_layer_gradients(inputs, arena, "gradients", config, sequences);
  LayerGradients odd = even;
  if (layers > 1) odd.input = inputs.allocate("gradients.input2", config.compute, even.input.shape);
  for (std::int64_t layer = 0; layer < layers; ++layer)
    shared.gradients.push_back(layer % 2 == 0 ? even : odd);
  return shared;
}

HeadScratch head_scratch(Arena& arena, const GptConfig& config, const StageRange& range,
                         std::int64_t sequences) {
  if (!range.head) return {};
  return allocate_head_scratch(arena, "scratch.head", config, sequences * config.sequence);
}

// A layer's backward pass and the head's forward pass never run at once: their scratch shares memory.
void allocate_shared_scratch(Arena& arena, StageBuffers& buffers, const GptConfig& config,
                             const StageRange& range, const StageCapacity& capacity) {
  const std::int64_t sequences = capacity.micro_batch;
  Arena inputs;
  Arena backward_bytes;
  share_backward(inputs, backward_bytes, config, sequences, range.layers);
  Arena head_bytes;
  head_scratch(head_bytes, config, range, sequences);
  const auto bytes = static_cast<std::int64_t>(std::max(backward_bytes.bytes(), head_bytes.bytes()));
  const Tensor block = arena.allocate("scratch", DType::uint8, {bytes});
  Arena for_head(block);
  buffers.head_scratch = head_scratch(for_head, config, range, sequences);
  Arena for_backward(block);
  const SharedBackward backward = share_backward(arena, for_backward, config, sequences, range.layers);
  buffers.scratch = backward.scratch;
  buffers.gradients.assign(static_cast<std::size_t>(capacity.slots), backward.gradients);
}

}  // namespace

std::vector<LayerGroup> layer_groups(const GptConfig& config, std::int64_t layers) {
  std::vector<LayerGroup> groups;
  const std::int64_t chosen =
      std::clamp<std::int64_t>(config.recompute_layers, 1, std::max<std::int64_t>(layers, 1));
  if (config.recompute != RecomputeGranularity::full) {
    if (layers > 0) groups.push_back({0, layers, false});
  } else if (config.recompute_method == RecomputeMethod::uniform) {
    for (std::int64_t first = 0; first < layers; first += chosen) {
      groups.push_back({first, std::min(chosen, layers - first), true});
    }
  } else {
    for (std::int64_t first = 0; first < std::min(chosen, layers); ++first)
      groups.push_back({first, 1, true});
    if (layers > chosen) groups.push_back({chosen, layers - chosen, false});
  }
  return groups;
}

StageBuffers allocate_stage_buffers(Arena& arena, const GptConfig& config, const StageRange& range,
                                    const StageCapacity& capacity) {
  const std::int64_t sequences = capacity.micro_batch;
  const Shape states{sequences * config.sequence, config.hidden};
  const std::vector<LayerGroup> groups = layer_groups(config, range.layers);

  StageBuffers buffers;
  if (!capacity.training) {
    buffers.head_scratch = head_scratch(arena, config, range, sequences);
    buffers.slots.assign(static_cast<std::size_t>(capacity.slots),
                         allocate_forward_slot(arena, config, range, sequences));
    return buffers;
  }
  buffers.cheap = allocate_cheap_activations(arena, "cheap", config, sequences);
  std::int64_t longest = 0;
  for (const LayerGroup& group : groups) {
    if (group.recomputed) longest = std::max(longest, group.count);
  }
  std::vector<LayerActivations> shared;
  std::vector<Tensor> shared_inputs;
  for (std::int64_t i = 0; i < longest; ++i) {
    const std::string name = format("shared.layer{}", i);
    shared.push_back(allocate_layer_activations(arena, name, config, sequences, buffers.cheap));
    shared_inputs.push_back(i == 0 ? Tensor() : arena.allocate(name + ".input", config.compute, states));
  }
  for (int slot = 0; slot < capacity.slots; ++slot) {
    buffers.slots.push_back(allocate_slot(arena, format("slot{}", slot), config, range, sequences, groups,
                                          buffers.cheap, shared, shared_inputs));
  }
  if (!capacity.split_backward) {
    allocate_shared_scratch(arena, buffers, config, range, capacity);
    const auto slots = static_cast<std::size_t>(capacity.slots);
    buffers.output_gradients.assign(slots, arena.allocate("gradients.output", config.compute, states));
    return buffers;
  }
  buffers.head_scratch = head_scratch(arena, config, range, sequences);
  buffers.scratch = allocate_layer_scratch(arena, "scratch", config, sequences);
  for (int slot = 0; slot < capacity.slots; ++slot) {
    std::vector<LayerGradients> all;
    for (std::int64_t layer = 0; layer < range.layers; ++layer) {
      all.push_back(allocate_layer_gradients(arena, arena, format("gradients.slot{}.layer{}", slot, layer),
                                             config, sequences));
    }
    buffers.gradients.push_back(std::move(all));
    buffers.output_gradients.push_back(
        arena.allocate(format("gradients.slot{}.output", slot), config.compute, states));
  }
  return buffers;
}

std::size_t stage_bytes(const GptConfig& config, const StageRange& range, const StageCapacity& capacity) {
  Arena counting;
  allocate_stage_buffers(counting, config, range, capacity);
  return counting.bytes();
}

}  // namespace megalith
