// The extents of a tensor: at most six dimensions, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/error.h"

namespace megalith {

class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    MEGALITH_ASSERT(extents.size() <= max_rank, "a tensor has at most six dimensions");
    for (const std::int64_t extent : extents) extents_[static_cast<std::size_t>(rank_++)] = extent;
  }

  int rank() const { return rank_; }
  /// Extent of dimension `dim`; negative counts from the last.
  std::int64_t operator[](int dim) const {
    const int index = dim < 0 ? dim + rank_ : dim;
    MEGALITH_ASSERT(index >= 0 && index < rank_, format("dimension {} of a tensor of rank {}", dim, rank_));
    return extents_[static_cast<std::size_t>(index)];
  }
  /// Product of all extents; 1 for a scalar.
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= extents_[static_cast<std::size_t>(i)];
    return product;
  }
  void push_back(std::int64_t extent) {
    MEGALITH_ASSERT(rank_ < max_rank, "a tensor has at most six dimensions");
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i) {
      if ((*this)[i] != other[i]) return false;
    }
    return true;
  }
  /// "[2, 3]"
  std::string to_string() const {
    std::string text = "[";
    for (int i = 0; i < rank_; ++i) text += format("{}{}", i == 0 ? "" : ", ", (*this)[i]);
    return text + "]";
  }

 private:
  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
};

}  // namespace megalith
