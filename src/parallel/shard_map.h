// Where the elements of a logical tensor live: boxes of the whole tensor held by a rank, and where they lie
// in that rank's local storage.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.h"
#include "core/tensor.h"

namespace megalith {

/// A rectangular part of a tensor: [offset[d], offset[d] + extent[d]) in each dimension.
struct Box {
  std::array<std::int64_t, Shape::max_rank> offset{};
  Shape extent;

  bool operator==(const Box&) const = default;
  std::int64_t count() const { return extent.count(); }
};

/// One global box and the equally large local box that stores it.
struct ShardPiece {
  Box global;
  Box local;
};

/// The part of a tensor that a box describes, strides kept.
Tensor view_of_box(Tensor whole, const Box& box);

/// What one rank holds of one parameter. `local_shape` may be larger than the pieces cover: the rest is
/// storage padding (rows of a padded vocabulary), which is never initialised from the seed, checkpointed or
/// counted.
struct ShardMap {
  Shape logical_shape;
  Shape local_shape;
  std::vector<ShardPiece> pieces;
  int replication = 1;  ///< ranks that hold these same elements

  /// The whole tensor on one rank, its first dimension stored with `stored_rows` rows (0: as many as it has).
  static ShardMap whole(const Shape& logical_shape, std::int64_t stored_rows = 0);

  /// Logical elements held here.
  std::int64_t held_count() const;
};

/// One logical tensor and the part of it that lies in this rank's device memory: what a checkpoint stores.
struct LogicalTensor {
  std::string name;  ///< "decoder.layers.0....weight", "optimizer.exp_avg.decoder..."
  Shape logical_shape;
  std::vector<ShardPiece> pieces;  ///< which boxes, and where they lie in `local`
  Tensor local;                    ///< contiguous, at least as large as the pieces
};

}  // namespace megalith
