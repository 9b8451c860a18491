// The vocabulary of check.cpp and check_attention.cpp: one object per checked call, that knows the kernel's
// name.
#pragma once

#include <string_view>

#include "device/device.h"

namespace megalith {

class KernelCheck {
 public:
  explicit KernelCheck(std::string_view kernel) : kernel_(kernel) {}

  [[noreturn]] void fail(std::string_view argument, std::string_view found, std::string_view expected) const;
  void require(bool condition, std::string_view argument, std::string_view found,
               std::string_view expected) const {
    if (!condition) fail(argument, found, expected);
  }

  /// Given and of this rank.
  void rank(std::string_view argument, const Tensor& tensor, int rank) const;
  /// Given and of exactly this shape; elements next to one another.
  void contiguous(std::string_view argument, const Tensor& tensor, const Shape& shape) const;
  /// Given, of this shape, elements next to one another along the innermost dimension only.
  void strided(std::string_view argument, const Tensor& tensor, const Shape& shape) const;
  void dtype(std::string_view argument, const Tensor& tensor, DType expected) const;
  /// Any float type: an activation.
  void compute_dtype(std::string_view argument, const Tensor& tensor) const;
  /// contiguous and dtype in one.
  void exactly(std::string_view argument, const Tensor& tensor, DType type, const Shape& shape) const {
    contiguous(argument, tensor, shape);
    dtype(argument, tensor, type);
  }
  /// No byte in common, as far as contiguous tensors tell (views into one buffer may interleave).
  void apart(std::string_view output, const Tensor& a, std::string_view input, const Tensor& b) const;
  /// The same memory under the same type and layout, or no byte in common.
  void same_or_apart(std::string_view output, const Tensor& a, std::string_view input, const Tensor& b) const;
  /// Probability, sample numbers and the ranges a Philox counter can hold. rows and columns are local
  /// extents.
  void dropout(const DropoutArgs& args, std::int64_t batch, std::int64_t heads, std::int64_t rows,
               std::int64_t columns) const;

 private:
  std::string_view kernel_;
};

}  // namespace megalith
