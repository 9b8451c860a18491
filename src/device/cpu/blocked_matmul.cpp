// Matrix products of our own. Each thread computes a block of the result. Inside, after Goto and van de
// Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008, with the two operands' caches
// exchanged: a slab of b is packed into panels that stay in the second-level cache (simd_pack.h); past it go
// rows of tiles of a (matmul_left.h), each multiplied with all panels (simd_tile.h). Sums run in float32 and
// in one order of the depth, however the product is cut.
//
// Limits: 2 M N K operations at the multiply-add peak; M K + K N + 2 M N elements once at memory bandwidth.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "core/error.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/matmul_engine.h"
#include "device/cpu/matmul_finish.h"
#include "device/cpu/matmul_partition.h"
#include "device/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/blocked_matmul.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/matmul_left.h"
#include "device/cpu/simd_pack.h"
#include "device/cpu/simd_tile.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

// Deeper blocks read and write c less often; 8 rows of a of this depth are 24 KiB.
inline constexpr std::int64_t most_depth = 768;
// Sums that c cannot hold, as it is bfloat16, stand in a buffer of so many rows.
inline constexpr std::int64_t most_rows = 1024;

/// A cut of `count` into the least number of equal blocks of at most `most`, multiples of `unit`.
std::int64_t equal_block(std::int64_t count, std::int64_t most, std::int64_t unit) {
  const std::int64_t blocks = (count + most - 1) / most;
  const std::int64_t size = (count + blocks - 1) / blocks;
  return (size + unit - 1) / unit * unit;
}

struct Blocking {
  std::int64_t depth;
  std::int64_t columns;
  std::int64_t buffer_rows;  ///< 0 where c holds the sums
};

Blocking blocking_of(const MatmulArgs& args, const MatmulBlock& block, std::int64_t slab_bytes) {
  const std::int64_t depth = args.a.data.shape[args.a.transposed ? 0 : 1];
  Blocking blocking{};
  blocking.depth = equal_block(depth, most_depth, 8);
  const auto bytes_of_column = blocking.depth * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t fitting = slab_bytes / bytes_of_column / simd::tile_columns * simd::tile_columns;
  blocking.columns = equal_block(block.column_end - block.column_begin, std::max(fitting, simd::tile_columns),
                                 simd::tile_columns);
  if (args.c.dtype != DType::float32) {
    blocking.buffer_rows = std::min(most_rows, block.row_end - block.row_begin);
  }
  return blocking;
}

std::int64_t left_floats(const Blocking& blocking) {
  return LeftPanels<float>::scratch_rows * blocking.depth;
}
std::int64_t right_floats(const Blocking& blocking) {
  return blocking.columns * blocking.depth;
}

std::size_t block_scratch(const MatmulArgs& args, const MatmulBlock& block, std::int64_t slab_bytes) {
  const Blocking blocking = blocking_of(args, block, slab_bytes);
  return static_cast<std::size_t>(left_floats(blocking) + right_floats(blocking) +
                                  blocking.buffer_rows * blocking.columns) *
         sizeof(float);
}

/// The slab of b: rows [k, k + depth), columns [column, column + columns), as panels.
template <typename T>
void pack_slab(const MatmulOperand& b, std::int64_t k, std::int64_t depth, std::int64_t column,
               std::int64_t columns, float* packed) {
  const std::int64_t step = b.data.stride(0);
  const T* from = pointer_to<T>(b.data) + (b.transposed ? column * step + k : k * step + column);
  if (b.transposed) {
    simd::pack_transposed_right(from, step, columns, depth, packed);
  } else {
    simd::pack_right(from, step, columns, depth, packed);
  }
}

template <typename T, typename Left>
void multiply_block(const MatmulArgs& args, const MatmulBlock& block, std::int64_t slab_bytes,
                    std::byte* memory) {
  const Blocking blocking = blocking_of(args, block, slab_bytes);
  auto* left_scratch = reinterpret_cast<float*>(memory);
  float* slab = left_scratch + left_floats(blocking);
  float* buffer = slab + right_floats(blocking);
  const std::int64_t depth = args.a.data.shape[args.a.transposed ? 0 : 1];
  const std::int64_t a_step = args.a.data.stride(0);
  const bool direct = args.c.dtype == DType::float32;
  const bool finish_needed =
      !direct || args.bias || args.activation != Activation::none || args.pre_activation;
  const std::int64_t most = direct ? block.row_end - block.row_begin : most_rows;

  for (std::int64_t r0 = block.row_begin; r0 < block.row_end; r0 += most) {
    const std::int64_t r1 = std::min(block.row_end, r0 + most);
    for (std::int64_t c0 = block.column_begin; c0 < block.column_end; c0 += blocking.columns) {
      const std::int64_t columns = std::min(blocking.columns, block.column_end - c0);
      float* sums = direct ? pointer_to<float>(args.c) + r0 * args.c.stride(0) + c0 : buffer;
      const std::int64_t sums_step = direct ? args.c.stride(0) : blocking.columns;
      for (std::int64_t k0 = 0; k0 < depth; k0 += blocking.depth) {
        const std::int64_t deep = std::min(blocking.depth, depth - k0);
        const bool add = k0 > 0 || (direct && args.accumulate);
        const bool last = k0 + deep == depth;
        pack_slab<T>(args.b, k0, deep, c0, columns, slab);
        Left left({pointer_to<T>(args.a.data) + (args.a.transposed ? k0 * a_step + r0 : r0 * a_step + k0),
                   a_step, deep, r1 - r0, (columns + simd::tile_columns - 1) / simd::tile_columns},
                  left_scratch);
        for (std::int64_t i = 0; i < r1 - r0; i += simd::tile_rows) {
          const std::int64_t rows = std::min<std::int64_t>(simd::tile_rows, r1 - r0 - i);
          const simd::TileLeft tile_left = left.start(i);
          float* row = sums + i * sums_step;
          for (std::int64_t j = 0; j < columns; j += simd::tile_columns) {
            simd::row_of_tiles(static_cast<int>(rows), deep, tile_left, slab + j * deep,
                               {row + j, sums_step, std::min(simd::tile_columns, columns - j),
                                static_cast<float>(args.alpha), add},
                               left);
          }
          // c's row of tiles is still near.
          if (last && finish_needed) finish_matmul(args, {row, sums_step, r0 + i, rows, c0, columns});
        }
      }
    }
  }
}

void multiply(const MatmulArgs& args, const MatmulBlock& block, std::int64_t slab_bytes, std::byte* scratch) {
  const bool half = args.a.data.dtype == DType::bfloat16;
  if (args.a.transposed) {
    half ? multiply_block<BFloat16, LeftPanels<BFloat16>>(args, block, slab_bytes, scratch)
         : multiply_block<float, LeftPanels<float>>(args, block, slab_bytes, scratch);
  } else {
    half ? multiply_block<BFloat16, LeftRows<BFloat16>>(args, block, slab_bytes, scratch)
         : multiply_block<float, LeftRows<float>>(args, block, slab_bytes, scratch);
  }
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(multiply);
HWY_EXPORT(block_scratch);

namespace {

// The slab lies on a huge page.
constexpr std::size_t least_scratch = std::size_t{2} << 20;

std::int64_t second_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return std::int64_t{1} << 20;
}

class BlockedMatmul final : public MatmulEngine {
 public:
  explicit BlockedMatmul(ThreadTeam& team) : team_(team) {}

  std::string description() const override { return "own kernels"; }

  void run(const MatmulArgs& args) override {
    const std::int64_t depth = args.a.transposed ? args.a.data.shape[0] : args.a.data.shape[1];
    const MatmulPartition partition(args.c.shape[0], args.c.shape[1], depth, team_.threads());
    for (int part = 0; part < partition.parts(); ++part) {
      scratch_.get(part, std::max(least_scratch, HWY_DYNAMIC_DISPATCH(block_scratch)(
                                                     args, partition.block(part), slab_bytes_)));
    }
    team_.run_parts(partition.parts(), [&](int part) {
      HWY_DYNAMIC_DISPATCH(multiply)(args, partition.block(part), slab_bytes_, scratch_.at(part));
    });
  }

 private:
  ThreadTeam& team_;
  std::int64_t slab_bytes_ = second_cache_bytes() / 5 * 3;  ///< the rest is for a and c
  Scratch scratch_;
};

}  // namespace

std::unique_ptr<MatmulEngine> make_blocked_matmul(ThreadTeam& team) {
  return std::make_unique<BlockedMatmul>(team);
}

}  // namespace megalith
#endif
