// A small random GPT with batches, for tests: everything on one device, values read back as float64.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "model/gpt_parameters.h"
#include "model/gpt_stage.h"

namespace megalith::testing {

/// Two layers, 3 heads of 8 (wider than hidden 20), vocabulary 37 in 64 rows, 10 tokens a sequence, large
/// weights.
inline GptConfig tiny_config() {
  GptConfig config;
  config.layers = 2;
  config.hidden = 20;
  config.ffn = 36;
  config.heads = 3;
  config.head_size = 8;
  config.sequence = 10;
  config.max_positions = 12;
  config.vocabulary = 37;
  config.padded_vocabulary = 64;
  config.init_std = 0.3;
  config.compute = DType::float64;
  config.seed = 11;
  return config;
}

inline std::unique_ptr<Device> open_device(const std::string& name, bool strict = false) {
  DeviceOptions options;
  options.name = name;
  options.threads = 2;
  options.strict = strict;
  return make_device(options);
}

inline std::vector<double> read(Device& device, const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.count()));
  if (values.empty()) return values;
  if (tensor.dtype == DType::float64) {
    device.copy_to_host(QueueKind::compute, values.data(), tensor);
    device.synchronize(QueueKind::compute);
    return values;
  }
  const DeviceMemory staging(device, static_cast<std::size_t>(tensor.count()) * sizeof(float));
  const Tensor as_float = staging.tensor(DType::float32, tensor.shape);
  device.copy(QueueKind::compute, as_float, tensor);
  std::vector<float> floats(values.size());
  device.copy_to_host(QueueKind::compute, floats.data(), as_float);
  device.synchronize(QueueKind::compute);
  return {floats.begin(), floats.end()};
}

inline void write(Device& device, const Tensor& tensor, const std::vector<double>& values) {
  if (tensor.dtype == DType::float64) {
    device.copy_to_device(QueueKind::compute, tensor, values.data());
  } else {
    const std::vector<float> floats(values.begin(), values.end());
    device.copy_to_device(QueueKind::compute, tensor, floats.data());
    device.synchronize(QueueKind::compute);
    return;
  }
  device.synchronize(QueueKind::compute);
}

inline double test_normal(std::string_view name, std::int64_t number) {
  const auto low = static_cast<std::uint32_t>(number);
  const PhiloxCounter words = philox({low, 0, 0, 0}, philox_key(99, name));
  return normal_from_bits(words[0], words[1])[0];
}

inline std::uint32_t test_word(std::string_view name, std::int64_t number) {
  return philox({static_cast<std::uint32_t>(number), 1, 0, 0}, philox_key(99, name))[0];
}

/// Random tokens, targets and loss masks by sample number, so that a sample is the same in any microbatch.
class Batches {
 public:
  Batches(Device& device, const GptConfig& config, std::int64_t micro_batch)
      : device_(device), config_(config), sequences_(micro_batch) {
    const std::int64_t rows = micro_batch * config.sequence;
    Arena counting;
    allocate(counting, rows);
    arena_ = Arena(device, counting.bytes());
    allocate(arena_, rows);
    clear_loss();
  }

  std::vector<std::int32_t> tokens_of(std::int64_t sample) const {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i <= config_.sequence; ++i) {
      const std::uint32_t word = test_word("tokens", sample * 1000 + i);
      ids.push_back(static_cast<std::int32_t>(word % static_cast<std::uint32_t>(config_.vocabulary)));
    }
    return ids;
  }

  double mask_of(std::int64_t sample, std::int64_t i) const {
    return test_word("mask", sample * 1000 + i) % 5 == 0 ? 0.0 : 1.0;
  }

  double unmasked(std::int64_t first_sample, std::int64_t count) const {
    double total = 0.0;
    for (std::int64_t sample = first_sample; sample < first_sample + count; ++sample) {
      for (std::int64_t i = 0; i < config_.sequence; ++i) total += mask_of(sample, i);
    }
    return total;
  }

  /// The microbatch of samples first_sample .. first_sample + micro_batch - 1.
  const MicroBatch& load(std::int64_t first_sample, double gradient_scale) {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
    std::vector<std::int32_t> positions;
    std::vector<double> mask;
    std::vector<std::int64_t> samples;
    for (std::int64_t b = 0; b < sequences_; ++b) {
      const std::vector<std::int32_t> ids = tokens_of(first_sample + b);
      samples.push_back(first_sample + b);
      for (std::int64_t i = 0; i < config_.sequence; ++i) {
        tokens.push_back(ids[static_cast<std::size_t>(i)]);
        targets.push_back(ids[static_cast<std::size_t>(i + 1)]);
        positions.push_back(static_cast<std::int32_t>(i));
        mask.push_back(mask_of(first_sample + b, i));
      }
    }
    upload(tokens, targets, positions, mask, samples, gradient_scale);
    return batch_;
  }

  void upload(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
              const std::vector<std::int32_t>& positions, const std::vector<double>& mask,
              const std::vector<std::int64_t>& samples, double gradient_scale) {
    device_.copy_to_device(QueueKind::compute, batch_.tokens, tokens.data());
    device_.copy_to_device(QueueKind::compute, batch_.targets, targets.data());
    device_.copy_to_device(QueueKind::compute, batch_.positions, positions.data());
    device_.copy_to_device(QueueKind::compute, batch_.samples, samples.data());
    device_.copy_to_device(QueueKind::compute, batch_.gradient_scale, &gradient_scale);
    write(device_, batch_.loss_mask, mask);
  }

  MicroBatch& batch() { return batch_; }
  double loss_sum() { return read(device_, batch_.loss_sum)[0]; }
  void clear_loss() { device_.fill(QueueKind::compute, batch_.loss_sum, 0.0); }

 private:
  void allocate(Arena& arena, std::int64_t rows) {
    batch_.tokens = arena.allocate("tokens", DType::int32, {rows});
    batch_.targets = arena.allocate("targets", DType::int32, {rows});
    batch_.positions = arena.allocate("positions", DType::int32, {rows});
    batch_.samples = arena.allocate("samples", DType::int64, {sequences_});
    batch_.loss_mask = arena.allocate("loss_mask", config_.sum(), {rows});
    batch_.loss_sum = arena.allocate("loss_sum", DType::float64, {1});
    batch_.gradient_scale = arena.allocate("gradient_scale", DType::float64, {1});
  }

  Device& device_;
  GptConfig config_;
  std::int64_t sequences_;
  Arena arena_;
  MicroBatch batch_;
};

/// Gives biases and norm weights random values too, so that every term of the model shows.
inline void randomise_vectors(ParameterStore& store) {
  for (const int row : store.owning_rows()) {
    const Parameter& parameter = store.table()[row];
    if (parameter.logical_shape.rank() != 1) continue;
    std::vector<double> values;
    for (std::int64_t i = 0; i < parameter.logical_shape.count(); ++i) {
      values.push_back(parameter.init.value + 0.2 * test_normal(parameter.name, i));
    }
    write(store.device(), store.master(row), values);
  }
  store.refresh_compute_copies();
}

/// Logits [R, padded vocabulary] after the last forward pass of slot 0: the stage itself keeps none.
inline std::vector<double> logits_of(Device& device, const GptConfig& config, const ParameterStore& store,
                                     const GptStage& stage) {
  const Tensor states = stage.output(0);
  const std::int64_t sequences = states.shape[0] / config.sequence;
  HeadActivations kept;
  Tensor logits;
  const auto allocate = [&](Arena& arena) {
    kept = allocate_head_activations(arena, "head", config, sequences);
    logits = arena.allocate("logits", config.compute, {states.shape[0], config.padded_vocabulary});
  };
  Arena counting;
  allocate(counting);
  Arena arena(device, counting.bytes());
  allocate(arena);
  OutputHead(config, store).forward_logits(device, kept, logits, states);
  return read(device, logits);
}

/// A whole model: parameters and a stage that holds everything.
struct TinyGpt {
  TinyGpt(Device& on, const GptConfig& with, std::int64_t micro_batch, bool split_backward = false)
      : device(on),
        config(with),
        store(on, build_gpt_parameter_table(with)),
        stage(on, with, store, StageRange::whole(with), {micro_batch, 1, true, split_backward}),
        batches(on, with, micro_batch) {
    store.initialize(with.seed);
    randomise_vectors(store);
    store.zero_gradients();
  }

  /// Gradients and summed loss of `samples` samples from `first` on, `micro_batch` at a time.
  double accumulate(std::int64_t first, std::int64_t samples, std::int64_t micro_batch) {
    const double scale = 1.0 / batches.unmasked(first, samples);
    batches.clear_loss();
    store.zero_gradients();
    for (std::int64_t sample = first; sample < first + samples; sample += micro_batch) {
      const MicroBatch& batch = batches.load(sample, scale);
      stage.forward(0, batch, Pass::training);
      stage.backward(0, batch);
    }
    return batches.loss_sum() * scale;
  }

  /// Mean loss of one microbatch, with dropout.
  double loss(std::int64_t first, std::int64_t micro_batch) {
    batches.clear_loss();
    stage.forward(0, batches.load(first, 1.0), Pass::training);
    return batches.loss_sum() / batches.unmasked(first, micro_batch);
  }

  std::map<std::string, std::vector<double>> gradients() {
    std::map<std::string, std::vector<double>> all;
    for (int row = 0; row < store.table().size(); ++row) {
      all[store.table()[row].name] = read(device, store.held(store.gradient(row), row));
    }
    return all;
  }

  Device& device;
  GptConfig config;
  ParameterStore store;
  GptStage stage;
  Batches batches;
};

}  // namespace megalith::testing
