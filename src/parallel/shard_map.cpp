#include "parallel/shard_map.h"

namespace megalith {

Tensor view_of_box(Tensor whole, const Box& box) {
  for (int dim = 0; dim < box.extent.rank(); ++dim) {
    const std::int64_t begin = box.offset[static_cast<std::size_t>(dim)];
    whole = whole.sliced(dim, begin, begin + box.extent[dim]);
  }
  return whole;
}

ShardMap ShardMap::whole(const Shape& logical_shape, std::int64_t stored_rows) {
  ShardMap map;
  map.logical_shape = logical_shape;
  for (int dim = 0; dim < logical_shape.rank(); ++dim) {
    map.local_shape.push_back(dim == 0 && stored_rows > 0 ? stored_rows : logical_shape[dim]);
  }
  MEGALITH_ASSERT(stored_rows == 0 || stored_rows >= logical_shape[0], "padding cannot shrink a tensor");
  Box all;
  all.extent = logical_shape;
  map.pieces = {{all, all}};
  return map;
}

std::int64_t ShardMap::held_count() const {
  std::int64_t total = 0;
  for (const ShardPiece& piece : pieces) total += piece.global.count();
  return total;
}

}  // namespace megalith
