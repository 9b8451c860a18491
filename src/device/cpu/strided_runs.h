// Cuts tensors of equal shape into runs that are contiguous in every one of them, and spreads the elements
// over the threads. A contiguous tensor is one run.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/tensor.h"
#include "device/parallel_for.h"

namespace megalith {

template <std::size_t N>
class StridedRuns {
 public:
  explicit StridedRuns(const std::array<Tensor, N>& tensors) {
    const Shape& shape = tensors[0].shape;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      count_ *= shape[dim];
      if (shape[dim] == 1) continue;
      Dimension next{shape[dim], {}};
      for (std::size_t t = 0; t < N; ++t) next.strides[t] = tensors[t].stride(dim);
      if (!merge(next)) dimensions_[static_cast<std::size_t>(rank_++)] = next;
    }
  }

  std::int64_t count() const { return count_; }

  /// Calls body(offsets, length) for runs that cover all elements, on all threads; offsets[t] counts elements
  /// from the address of tensor t. A thread's share holds at least `grain` elements where there are that
  /// many.
  template <typename Body>
  void run(ThreadTeam& team, std::int64_t grain, const Body& body) const {
    team.parallel_for(count_, grain, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t row = begin / length_;
      std::int64_t skipped = begin % length_;
      while (begin < end) {
        const std::int64_t length = std::min(length_ - skipped, end - begin);
        std::array<std::int64_t, N> offsets = row_offsets(row);
        for (std::int64_t& offset : offsets) offset += skipped;
        body(offsets, length);
        begin += length;
        skipped = 0;
        ++row;
      }
    });
  }

 private:
  struct Dimension {
    std::int64_t extent = 1;
    std::array<std::int64_t, N> strides{};
  };

  /// Takes the next outer dimension into the run, or into the outermost dimension so far, where memory
  /// allows.
  bool merge(const Dimension& next) {
    if (rank_ == 0) {
      for (const std::int64_t stride : next.strides) {
        if (stride != length_) return false;
      }
      length_ *= next.extent;
      return true;
    }
    Dimension& inner = dimensions_[static_cast<std::size_t>(rank_ - 1)];
    for (std::size_t t = 0; t < N; ++t) {
      if (next.strides[t] != inner.strides[t] * inner.extent) return false;
    }
    inner.extent *= next.extent;
    return true;
  }

  std::array<std::int64_t, N> row_offsets(std::int64_t row) const {
    std::array<std::int64_t, N> offsets{};
    for (int dim = 0; dim < rank_; ++dim) {
      const Dimension& dimension = dimensions_[static_cast<std::size_t>(dim)];
      const std::int64_t index = row % dimension.extent;
      row /= dimension.extent;
      for (std::size_t t = 0; t < N; ++t) offsets[t] += index * dimension.strides[t];
    }
    return offsets;
  }

  std::array<Dimension, Shape::max_rank> dimensions_{};  ///< innermost first
  int rank_ = 0;
  std::int64_t length_ = 1;
  std::int64_t count_ = 1;
};

}  // namespace megalith
