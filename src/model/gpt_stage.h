// GptStage: the part of a GPT that one pipeline stage runs, forward and backward, in memory planned up front.
// A single device is stage 0 of 1: embedding, all layers and head.
//
// The caller owns parameters (ParameterStore) and batches; a step is store.zero_gradients(), then for each
// microbatch stage.forward(0, batch, Pass::training) and stage.backward(0, batch). With a head, forward adds
// the output layer's gradient already (model/output_head.h), so batch.gradient_scale must stand by then.
// Everything is enqueued on the compute queue and nothing waits.
#pragma once

#include <optional>
#include <vector>

#include "model/embedding.h"
#include "model/output_head.h"
#include "model/transformer_layer.h"

namespace megalith {

/// Which part of the model a stage holds.
struct StageRange {
  bool embedding = true;
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
  bool head = true;

  static StageRange whole(const GptConfig& config) { return {true, 0, config.layers, true}; }
};

struct StageCapacity {
  std::int64_t micro_batch = 1;  ///< sequences; every microbatch has this many
  int slots = 1;                 ///< microbatches between forward and backward at one time
  bool training = true;          ///< false: no memory for backward
  /// Keep every layer's gradients until backward_weight, for schedules that delay it. Excludes full
  /// recomputation.
  bool split_backward = false;
};

/// Consecutive layers whose activations are kept, or whose first input is kept and the rest computed again.
struct LayerGroup {
  std::int64_t first = 0;  ///< within the stage
  std::int64_t count = 0;
  bool recomputed = false;
};

/// The groups of a stage of `layers` layers, first to last, as Megatron's uniform and block methods make
/// them.
std::vector<LayerGroup> layer_groups(const GptConfig& config, std::int64_t layers);

/// All the memory of a stage's steps.
struct StageBuffers {
  struct Slot {
    std::vector<Tensor> inputs;            ///< of each layer, then the last layer's output; [R, H]
    std::vector<LayerActivations> layers;  ///< groups that are recomputed share theirs across slots
    HeadActivations head;
  };
  std::vector<Slot> slots;
  CheapActivations cheap;
  std::vector<std::vector<LayerGradients>>
      gradients;  ///< [slot][layer]; without split_backward memory is shared
  std::vector<Tensor>
      output_gradients;  ///< [slot] of the last layer's output, [R, H]; shared without split_backward
  LayerScratch scratch;
  HeadScratch head_scratch;
};

/// Lists every tensor of a stage; with a counting arena, its exact need of memory.
StageBuffers allocate_stage_buffers(Arena& arena, const GptConfig& config, const StageRange& range,
                                    const StageCapacity& capacity);

/// Bytes of allocate_stage_buffers: activations and scratch, without parameters.
std::size_t stage_bytes(const GptConfig& config, const StageRange& range, const StageCapacity& capacity);

class GptStage {
 public:
  /// `store` holds at least the parameters of `range` and outlives the stage. Takes all memory here, none in
  /// steps.
  GptStage(Device& device, const GptConfig& config, const ParameterStore& store, const StageRange& range,
           const StageCapacity& capacity);

  /// Where the previous stage's output is expected (stages without embedding), [R, H].
  Tensor input(int slot) const { return buffers(slot).inputs.front(); }
  /// The last layer's output, [R, H].
  Tensor output(int slot) const { return buffers(slot).inputs.back(); }
  /// Where the next stage's input gradient is expected (stages without head), [R, H].
  Tensor output_gradient(int slot) const {
    return buffers_.output_gradients.at(static_cast<std::size_t>(slot));
  }
  /// After a backward pass: gradient of input(slot), [R, H].
  Tensor input_gradient(int slot) const;

  /// Runs the stage; with a head losses too, and in a training pass the head's gradients. The results of a
  /// slot stay until its next forward.
  void forward(int slot, const MicroBatch& batch, Pass pass);
  /// Adds all parameter gradients of the microbatch that forward(slot) ran with Pass::training.
  void backward(int slot, const MicroBatch& batch);
  /// The two halves, for split_backward: all of the first, later all of the second.
  void backward_input(int slot, const MicroBatch& batch);
  void backward_weight(int slot);

  /// Of the head: sum type [R].
  Tensor losses(int slot) const { return buffers(slot).head.losses; }

  std::size_t bytes() const { return arena_.bytes(); }

 private:
  const StageBuffers::Slot& buffers(int slot) const {
    return buffers_.slots.at(static_cast<std::size_t>(slot));
  }
  const LayerGradients& gradients(int slot, std::int64_t layer) const;
  /// Gradient of layer's output.
  Tensor gradient_after(int slot, std::int64_t layer) const;
  void check_batch(const MicroBatch& batch, bool with_targets) const;
  void recompute(const LayerGroup& group, int slot, const MicroBatch& batch);
  void run_backward(int slot, const MicroBatch& batch, bool with_weights);

  Device& device_;
  GptConfig config_;
  StageRange range_;
  StageCapacity capacity_;
  std::vector<LayerGroup> groups_;
  Arena arena_;
  StageBuffers buffers_;
  std::optional<Embedding> embedding_;
  std::vector<TransformerLayer> layers_;
  std::optional<OutputHead> head_;
};

}  // namespace megalith
