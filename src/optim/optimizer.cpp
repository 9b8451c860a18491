#include "optim/optimizer.h"

#include <set>
#include <utility>

namespace megalith {
namespace {

struct StateTensors {
  Tensor first;
  Tensor second;
};

// Also run on a counting arena.
StateTensors allocate_state(Arena& arena, const Parameter& parameter, const OptimizerConfig& config) {
  const DType dtype = sum_type(parameter.dtype);
  const Shape& shape = parameter.shards.local_shape;
  StateTensors state;
  if (config.kind == OptimizerConfig::Kind::adamw) {
    state.first = arena.allocate("exp_avg." + parameter.name, dtype, shape);
    state.second = arena.allocate("exp_avg_sq." + parameter.name, dtype, shape);
  } else if (config.momentum != 0.0) {
    state.first = arena.allocate("momentum_buffer." + parameter.name, dtype, shape);
  }
  return state;
}

std::int64_t norm_blocks(const Parameter& parameter) {
  return (parameter.shards.held_count() + norm_block - 1) / norm_block;
}

struct Scalars {
  Tensor partials;
  Tensor learning_rate;
  Tensor step;
  Tensor inverse_loss_scale;
  Tensor norm;
  Tensor gradient_scale;
};

Scalars allocate_scalars(Arena& arena, std::int64_t blocks) {
  return {arena.allocate("norm_partials", DType::float64, {blocks}),
          arena.allocate("learning_rate", DType::float64, {1}),
          arena.allocate("step", DType::int64, {1}),
          arena.allocate("inverse_loss_scale", DType::float64, {1}),
          arena.allocate("norm", DType::float64, {1}),
          arena.allocate("gradient_scale", DType::float64, {1})};
}

bool owns_storage(const Parameter& parameter, std::set<int>& seen_groups) {
  return parameter.tie_group < 0 || seen_groups.insert(parameter.tie_group).second;
}

}  // namespace

OptimizerConfig optimizer_config(const TrainOptions& options) {
  OptimizerConfig config;
  if (options.optimizer == "sgd") {
    config.kind = OptimizerConfig::Kind::sgd;
  } else if (!options.optimizer.empty() && options.optimizer != "adam") {
    fail(ErrorKind::usage, "optimizer", "\"{}\" is unknown; choose adam (AdamW) or sgd", options.optimizer);
  }
  config.beta1 = options.adam_beta1;
  config.beta2 = options.adam_beta2;
  config.epsilon = options.adam_eps;
  config.momentum = options.sgd_momentum;
  config.clip_grad = options.clip_grad;
  for (const auto& [value, key] :
       {std::pair(config.beta1, "adam_beta1"), std::pair(config.beta2, "adam_beta2"),
        std::pair(config.momentum, "sgd_momentum")}) {
    if (!(value >= 0.0 && value < 1.0))
      fail(ErrorKind::usage, key, "is {}; expected a number in [0, 1)", value);
  }
  if (!(config.clip_grad >= 0.0)) {
    fail(ErrorKind::usage, "clip_grad", "is {}; expected 0 (no clipping) or more", config.clip_grad);
  }
  return config;
}

std::size_t optimizer_bytes(const ParameterTable& table, const OptimizerConfig& config) {
  Arena counting;
  std::set<int> seen;
  std::int64_t blocks = 0;
  for (const Parameter& parameter : table.rows()) {
    if (!owns_storage(parameter, seen)) continue;
    allocate_state(counting, parameter, config);
    blocks += norm_blocks(parameter);
  }
  allocate_scalars(counting, blocks);
  return counting.bytes();
}

Optimizer::Optimizer(ParameterStore& store, const OptimizerConfig& config)
    : store_(store),
      device_(store.device()),
      config_(config),
      arena_(store.device(), optimizer_bytes(store.table(), config)) {
  std::int64_t blocks = 0;
  for (const int row : store.owning_rows()) {
    const Parameter& parameter = store.table()[row];
    const StateTensors state = allocate_state(arena_, parameter, config);
    slots_.push_back({row, state.first, state.second, blocks});
    blocks += norm_blocks(parameter);
    for (const Tensor& tensor : {state.first, state.second}) {
      if (tensor) device_.fill(QueueKind::compute, tensor, 0.0);
    }
  }
  const Scalars scalars = allocate_scalars(arena_, blocks);
  partials_ = scalars.partials;
  learning_rate_ = scalars.learning_rate;
  step_ = scalars.step;
  inverse_loss_scale_ = scalars.inverse_loss_scale;
  norm_ = scalars.norm;
  gradient_scale_ = scalars.gradient_scale;
  device_.fill(QueueKind::compute, inverse_loss_scale_, 1.0);
}

void Optimizer::compute_clip_factor() {
  for (const Slot& slot : slots_) {
    const Tensor gradient = store_.held(store_.total_gradient(slot.row), slot.row);
    const std::int64_t blocks = norm_blocks(store_.table()[slot.row]);
    device_.block_norms(QueueKind::compute, partials_.sliced(0, slot.block, slot.block + blocks), gradient);
  }
  ClipFactorArgs args;
  args.partials = partials_;
  args.inverse_loss_scale = inverse_loss_scale_;
  args.max_norm = config_.clip_grad;
  args.norm = norm_;
  args.gradient_scale = gradient_scale_;
  device_.clip_factor(QueueKind::compute, args);
}

void Optimizer::update(const Slot& slot, double weight_decay) {
  const Parameter& parameter = store_.table()[slot.row];
  const auto held = [&](const Tensor& local) { return local ? store_.held(local, slot.row) : Tensor(); };
  const Tensor master = store_.master(slot.row);
  const Tensor compute = store_.compute(slot.row);
  const Tensor copy = compute.address == master.address ? Tensor() : compute;
  if (config_.kind == OptimizerConfig::Kind::adamw) {
    AdamWArgs args;
    args.weights = held(master);
    args.gradient = held(store_.total_gradient(slot.row));
    args.exp_avg = held(slot.first);
    args.exp_avg_sq = held(slot.second);
    args.compute_copy = held(copy);
    args.learning_rate = learning_rate_;
    args.step = step_;
    args.gradient_scale = gradient_scale_;
    args.lr_mult = parameter.lr_mult;
    args.beta1 = config_.beta1;
    args.beta2 = config_.beta2;
    args.epsilon = config_.epsilon;
    args.weight_decay = weight_decay * parameter.weight_decay_mult;
    device_.adamw(QueueKind::compute, args);
    return;
  }
  SgdArgs args;
  args.weights = held(master);
  args.gradient = held(store_.total_gradient(slot.row));
  args.momentum_buffer = held(slot.first);
  args.compute_copy = held(copy);
  args.learning_rate = learning_rate_;
  args.gradient_scale = gradient_scale_;
  args.lr_mult = parameter.lr_mult;
  args.momentum = config_.momentum;
  args.weight_decay = weight_decay * parameter.weight_decay_mult;
  device_.sgd(QueueKind::compute, args);
}

OptimizerResult Optimizer::step(double learning_rate, double weight_decay) {
  const std::int64_t next = step_count_ + 1;
  device_.copy_to_device(QueueKind::compute, learning_rate_, &learning_rate);
  device_.copy_to_device(QueueKind::compute, step_, &next);
  store_.finish_gradients();
  compute_clip_factor();
  for (const Slot& slot : slots_) update(slot, weight_decay);
  OptimizerResult result;
  double scale = 0.0;
  device_.copy_to_host(QueueKind::compute, &result.grad_norm, norm_);
  device_.copy_to_host(QueueKind::compute, &scale, gradient_scale_);
  device_.synchronize(QueueKind::compute);
  result.applied = scale >= 0.0;
  if (result.applied) step_count_ = next;
  return result;
}

std::vector<LogicalTensor> Optimizer::state() const {
  std::vector<LogicalTensor> list;
  const bool adamw = config_.kind == OptimizerConfig::Kind::adamw;
  const auto add = [&](std::string_view kind, const Slot& slot, const Tensor& tensor) {
    if (!tensor) return;
    const Parameter& parameter = store_.table()[slot.row];
    list.push_back({format("optimizer.{}.{}", kind, parameter.name), parameter.logical_shape,
                    parameter.shards.pieces, tensor});
  };
  for (const Slot& slot : slots_) {
    add(adamw ? "exp_avg" : "momentum_buffer", slot, slot.first);
    add("exp_avg_sq", slot, slot.second);
  }
  return list;
}

}  // namespace megalith
