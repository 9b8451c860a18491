// The kernels that pass over all parameters of GPT-2 124M, once a step or at the start.
#include "bench/workspace.h"

namespace megalith::bench {
namespace {

constexpr QueueKind queue = QueueKind::compute;
constexpr double count = static_cast<double>(parameters);

}  // namespace

void add_optimizer_cases(Device& target, DType compute) {
  const std::string suffix = "/" + std::string(name_of(compute));
  const bool with_copy = compute != DType::float32;
  const double copy_bytes = with_copy ? static_cast<double>(size_of(compute)) : 0.0;
  add_case("adamw" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Shape shape{parameters};
    const AdamWArgs args{.weights = space.filled(DType::float32, shape, 0.02),
                         .gradient = space.filled(DType::float32, shape, 0.001),
                         .exp_avg = space.filled(DType::float32, shape, 0.0),
                         .exp_avg_sq = space.filled(DType::float32, shape, 0.0),
                         .compute_copy = with_copy ? space.filled(compute, shape, 0.0) : Tensor(),
                         .learning_rate = space.filled(DType::float64, {1}, 1e-4),
                         .step = space.filled(DType::int64, {1}, 10),
                         .gradient_scale = space.filled(DType::float64, {1}, 1.0),
                         .weight_decay = 0.1};
    time_kernel(state, device, {.bytes = count * (28.0 + copy_bytes)}, [&] { device.adamw(queue, args); });
  });
  add_case("sgd_momentum" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Shape shape{parameters};
    const SgdArgs args{.weights = space.filled(DType::float32, shape, 0.02),
                       .gradient = space.filled(DType::float32, shape, 0.001),
                       .momentum_buffer = space.filled(DType::float32, shape, 0.0),
                       .compute_copy = with_copy ? space.filled(compute, shape, 0.0) : Tensor(),
                       .learning_rate = space.filled(DType::float64, {1}, 1e-4),
                       .gradient_scale = space.filled(DType::float64, {1}, 1.0),
                       .momentum = 0.9};
    time_kernel(state, device, {.bytes = count * (20.0 + copy_bytes)}, [&] { device.sgd(queue, args); });
  });
  if (with_copy) {
    add_case("copy_from_float32" + suffix, target, [=](benchmark::State& state, Device& device) {
      Workspace space(device);
      const Tensor from = space.filled(DType::float32, {parameters}, 0.02);
      const Tensor to = space.filled(compute, {parameters}, 0.0);
      time_kernel(state, device, {.bytes = count * (4.0 + copy_bytes)},
                  [&] { device.copy(queue, to, from); });
    });
    return;
  }
  add_case("fill_zero" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor to = space.filled(compute, {parameters}, 1.0);
    time_kernel(state, device, {.bytes = count * 4.0}, [&] { device.fill(queue, to, 0.0); });
  });
  add_case("copy" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor from = space.filled(compute, {parameters}, 1.0);
    const Tensor to = space.filled(compute, {parameters}, 0.0);
    time_kernel(state, device, {.bytes = count * 8.0}, [&] { device.copy(queue, to, from); });
  });
  add_case("block_norms" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const Tensor x = space.filled(compute, {parameters}, 0.01);
    const Tensor partials = space.filled(DType::float64, {(parameters + norm_block - 1) / norm_block}, 0.0);
    time_kernel(state, device, {.bytes = count * 4.0}, [&] { device.block_norms(queue, partials, x); });
  });
  add_case("clip_factor" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const std::int64_t blocks = (parameters + norm_block - 1) / norm_block;
    const ClipFactorArgs args{.partials = space.filled(DType::float64, {blocks}, 0.01),
                              .inverse_loss_scale = space.filled(DType::float64, {1}, 1.0),
                              .max_norm = 1.0,
                              .norm = space.filled(DType::float64, {1}, 0.0),
                              .gradient_scale = space.filled(DType::float64, {1}, 0.0)};
    time_kernel(state, device, {.bytes = static_cast<double>(blocks) * 8.0},
                [&] { device.clip_factor(queue, args); });
  });
  add_case("initialize_normal" + suffix, target, [=](benchmark::State& state, Device& device) {
    Workspace space(device);
    const std::int64_t rows = parameters / hidden;
    const InitializeNormalArgs args{.to = space.filled(compute, {rows, hidden}, 0.0),
                                    .row_step = hidden,
                                    .key = {1, 2},
                                    .deviation = 0.02};
    time_kernel(state, device, {.bytes = count * 4.0}, [&] { device.initialize_normal(queue, args); });
  });
}

}  // namespace megalith::bench
