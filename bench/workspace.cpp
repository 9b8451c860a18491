#include "bench/workspace.h"

namespace megalith::bench {

Tensor Workspace::allocate(DType dtype, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.count()) * size_of(dtype);
  blocks_.emplace_back(device_, bytes);
  return blocks_.back().tensor(dtype, shape);
}

Tensor Workspace::random(DType dtype, const Shape& shape, double deviation) {
  const Tensor to = allocate(dtype, shape);
  const std::int64_t columns = shape[-1];
  device_.initialize_normal(QueueKind::compute, {.to = to.reshaped({shape.count() / columns, columns}),
                                                 .first_element = 0,
                                                 .row_step = columns,
                                                 .key = {++next_key_, 0},
                                                 .mean = 0.0,
                                                 .deviation = deviation});
  return to;
}

Tensor Workspace::filled(DType dtype, const Shape& shape, double value) {
  const Tensor to = allocate(dtype, shape);
  device_.fill(QueueKind::compute, to, value);
  return to;
}

Tensor Workspace::numbers(std::int64_t count, std::int64_t bound) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::int64_t value = 1;
  for (std::int32_t& number : values) {
    value = (value * 48271) % 2147483647;
    number = static_cast<std::int32_t>(value % bound);
  }
  const Tensor to = allocate(DType::int32, {count});
  device_.copy_to_device(QueueKind::compute, to, values.data());
  device_.synchronize(QueueKind::compute);
  return to;
}

DropoutArgs Workspace::dropout(std::int64_t sequences) {
  return {.probability = 0.1, .key = {1, 2}, .samples = filled(DType::int64, {sequences}, 7)};
}

}  // namespace megalith::bench
