#include "model/arena.h"

namespace megalith {

Tensor Arena::allocate(std::string_view name, DType dtype, const Shape& shape) {
  constexpr std::size_t alignment = 64;
  const std::size_t bytes = static_cast<std::size_t>(shape.count()) * size_of(dtype);
  const std::size_t start = used_;
  used_ += (bytes + alignment - 1) / alignment * alignment;
  items_.emplace_back(name, bytes);
  if (!real_) return Tensor({}, dtype, shape);
  MEGALITH_ASSERT(used_ <= size_, format("{} needs byte {} of a plan of {}", name, used_, size_));
  return {start_ + static_cast<std::int64_t>(start), dtype, shape};
}

Tensor prefix_view(const Tensor& tensor, const Shape& shape) {
  MEGALITH_ASSERT(tensor.is_contiguous() && shape.count() <= tensor.count(),
                  format("cannot view {} as {}", tensor.shape.to_string(), shape.to_string()));
  return {tensor.address, tensor.dtype, shape};
}

}  // namespace megalith
