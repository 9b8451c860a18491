#include "device/check_support.h"

#include "device/check.h"

namespace megalith {
namespace {

bool innermost_contiguous(const Tensor& tensor) {
  if (tensor.shape.rank() == 0 || tensor.count() == 0) return true;
  return tensor.shape[-1] == 1 || tensor.stride(-1) == 1;
}

bool strides_in_use_are_not_negative(const Tensor& tensor) {
  for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
    if (tensor.shape[dim] > 1 && tensor.stride(dim) < 0) return false;
  }
  return true;
}

bool overlap(const Tensor& a, const Tensor& b) {
  if (!a || !b || a.count() == 0 || b.count() == 0) return false;
  if (!a.is_contiguous() || !b.is_contiguous()) return false;
  return a.address.value < b.address.value + b.bytes() && b.address.value < a.address.value + a.bytes();
}

std::string strides_text(const Tensor& tensor) {
  std::string text = "[";
  for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
    text += format("{}{}", dim == 0 ? "" : ", ", tensor.stride(dim));
  }
  return text + "]";
}

}  // namespace

void KernelCheck::fail(std::string_view argument, std::string_view found, std::string_view expected) const {
  megalith::fail(ErrorKind::internal, kernel_, "{} is {}; expected {}", argument, found, expected);
}

void KernelCheck::rank(std::string_view argument, const Tensor& tensor, int rank) const {
  require(static_cast<bool>(tensor), argument, "absent", "a tensor");
  if (tensor.shape.rank() != rank) {
    fail(argument, tensor.shape.to_string(), format("a tensor of {} dimensions", rank));
  }
  for (int dim = 0; dim < rank; ++dim) {
    if (tensor.shape[dim] < 0) fail(argument, tensor.shape.to_string(), "extents of 0 or more");
  }
}

void KernelCheck::strided(std::string_view argument, const Tensor& tensor, const Shape& shape) const {
  require(static_cast<bool>(tensor), argument, "absent", format("a tensor {}", shape.to_string()));
  if (!(tensor.shape == shape)) fail(argument, tensor.shape.to_string(), shape.to_string());
  if (!innermost_contiguous(tensor) || !strides_in_use_are_not_negative(tensor)) {
    fail(argument, format("{} with strides {}", shape.to_string(), strides_text(tensor)),
         "an innermost stride of 1 and none below 0");
  }
}

void KernelCheck::contiguous(std::string_view argument, const Tensor& tensor, const Shape& shape) const {
  strided(argument, tensor, shape);
  if (tensor.count() != 0 && !tensor.is_contiguous()) {
    fail(argument, format("{} with strides {}", shape.to_string(), strides_text(tensor)),
         "a contiguous tensor");
  }
}

void KernelCheck::dtype(std::string_view argument, const Tensor& tensor, DType expected) const {
  if (tensor.dtype != expected) fail(argument, name_of(tensor.dtype), name_of(expected));
}

void KernelCheck::compute_dtype(std::string_view argument, const Tensor& tensor) const {
  require(is_float(tensor.dtype), argument, name_of(tensor.dtype), "a float type");
}

void KernelCheck::apart(std::string_view output, const Tensor& a, std::string_view input,
                        const Tensor& b) const {
  if (overlap(a, b)) fail(output, format("in {}'s memory", input), "memory of its own");
}

void KernelCheck::same_or_apart(std::string_view output, const Tensor& a, std::string_view input,
                                const Tensor& b) const {
  const bool same = a.address == b.address && a.dtype == b.dtype && a.shape == b.shape;
  if (!same && overlap(a, b))
    fail(output, format("in a part of {}'s memory", input), "the same memory or none of it");
}

void KernelCheck::dropout(const DropoutArgs& args, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                          std::int64_t columns) const {
  require(args.probability >= 0.0 && args.probability < 1.0, "dropout.probability",
          format("{}", args.probability), "a number in [0, 1)");
  if (args.probability == 0.0) return;
  exactly("dropout.samples", args.samples, DType::int64, {batch});
  constexpr std::int64_t head_limit = std::int64_t{1} << 16;
  constexpr std::int64_t word_limit = std::int64_t{1} << 32;
  require(args.first_head >= 0 && args.first_head + heads <= head_limit, "dropout.first_head",
          format("{} with {} heads", args.first_head, heads), "at most 65536 heads in all");
  require(args.first_row >= 0 && args.first_row + rows <= word_limit, "dropout.first_row",
          format("{} with {} rows", args.first_row, rows), "at most 2^32 rows in all");
  require(args.first_column >= 0 && args.first_column + columns <= word_limit, "dropout.first_column",
          format("{} with {} columns", args.first_column, columns), "at most 2^32 columns in all");
}

}  // namespace megalith
