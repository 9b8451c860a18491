// Matrix products without a library. Each thread computes a block of the result; inside, operands are packed
// into panels that fit the caches, in the order of Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication", TOMS 2008: a slab of b, a block of a, then register tiles. Sums run in float32.
#include <algorithm>
#include <cstddef>
#include <cstdint>

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
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_product.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t depth_block = 384;   // a panel of b fits the first cache
inline constexpr std::int64_t row_block = 192;     // a block of a fits the second
inline constexpr std::int64_t column_block = 768;  // a slab of b fits the third
inline constexpr std::int64_t most_rows = 1536;    // bounds the buffer of sums

/// op(x) of a MatmulOperand: element (i, j) at data[i * row_step + j * column_step].
template <typename T>
struct OperandView {
  const T* data;
  std::int64_t row_step;
  std::int64_t column_step;
};

template <typename T>
OperandView<T> view_of(const MatmulOperand& operand) {
  const std::int64_t step = operand.data.stride(0);
  return {pointer_to<T>(operand.data), operand.transposed ? 1 : step, operand.transposed ? step : 1};
}

/// packed[panel][k][0..width) = the panel's elements of `view` at depth k, zeros past `count`. `along` is the
/// step between neighbours inside a panel, `deep` the step along the depth.
template <typename T>
void pack_panels(const T* data, std::int64_t along, std::int64_t deep, std::int64_t count, std::int64_t depth,
                 std::int64_t width, float* HWY_RESTRICT packed) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t first = 0; first < count; first += width) {
    const std::int64_t filled = std::min(width, count - first);
    const T* from = data + first * along;
    if (along == 1 && filled == width && width % lanes == 0) {
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t j = 0; j < width; j += lanes) {
          hn::StoreU(simd::load(d, from + k * deep + j), d, packed + k * width + j);
        }
      }
    } else if (along == 1) {
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t j = 0; j < filled; ++j)
          packed[k * width + j] = static_cast<float>(from[k * deep + j]);
        for (std::int64_t j = filled; j < width; ++j) packed[k * width + j] = 0.0F;
      }
    } else {
      // Eight steps of depth at a time, so that every cache line of the source is read while it is near.
      for (std::int64_t k0 = 0; k0 < depth; k0 += 8) {
        const std::int64_t k1 = std::min(depth, k0 + 8);
        for (std::int64_t j = 0; j < filled; ++j) {
          const T* row = from + j * along;
          for (std::int64_t k = k0; k < k1; ++k) packed[k * width + j] = static_cast<float>(row[k * deep]);
        }
        for (std::int64_t k = k0; k < k1; ++k) {
          for (std::int64_t j = filled; j < width; ++j) packed[k * width + j] = 0.0F;
        }
      }
    }
    packed += depth * width;
  }
}

std::int64_t round_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// Bytes of scratch that multiply_block needs: packed a, packed b, sums.
std::size_t block_scratch() {
  const std::int64_t a = round_up(row_block, simd::register_rows) * depth_block;
  const std::int64_t b = simd::padded_columns(column_block) * depth_block;
  return static_cast<std::size_t>(a + b + most_rows * column_block) * sizeof(float);
}

template <typename T>
void multiply_block(const MatmulArgs& args, const MatmulBlock& block, std::byte* scratch) {
  const OperandView<T> a = view_of<T>(args.a);
  const OperandView<T> b = view_of<T>(args.b);
  const std::int64_t depth = args.a.transposed ? args.a.data.shape[0] : args.a.data.shape[1];
  const std::int64_t tile_columns = simd::register_columns();
  float* packed_a = reinterpret_cast<float*>(scratch);
  float* packed_b = packed_a + round_up(row_block, simd::register_rows) * depth_block;
  float* buffer = packed_b + simd::padded_columns(column_block) * depth_block;
  const bool direct = args.c.dtype == DType::float32;
  const bool finish_needed =
      !direct || args.bias || args.activation != Activation::none || args.pre_activation;

  for (std::int64_t r0 = block.row_begin; r0 < block.row_end; r0 += most_rows) {
    const std::int64_t r1 = std::min(block.row_end, r0 + most_rows);
    for (std::int64_t c0 = block.column_begin; c0 < block.column_end; c0 += column_block) {
      const std::int64_t c1 = std::min(block.column_end, c0 + column_block);
      float* sums = direct ? pointer_to<float>(args.c) + r0 * args.c.stride(0) + c0 : buffer;
      const std::int64_t sums_step = direct ? args.c.stride(0) : column_block;
      for (std::int64_t k0 = 0; k0 < depth; k0 += depth_block) {
        const std::int64_t deep = std::min(depth_block, depth - k0);
        const bool add = k0 > 0 || (direct && args.accumulate);
        pack_panels(b.data + k0 * b.row_step + c0 * b.column_step, b.column_step, b.row_step, c1 - c0, deep,
                    tile_columns, packed_b);
        for (std::int64_t i0 = r0; i0 < r1; i0 += row_block) {
          const std::int64_t i1 = std::min(r1, i0 + row_block);
          pack_panels(a.data + i0 * a.row_step + k0 * a.column_step, a.row_step, a.column_step, i1 - i0, deep,
                      simd::register_rows, packed_a);
          for (std::int64_t j = c0; j < c1; j += tile_columns) {
            const float* b_panel = packed_b + (j - c0) * deep;
            for (std::int64_t i = i0; i < i1; i += simd::register_rows) {
              const std::int64_t rows = std::min<std::int64_t>(simd::register_rows, i1 - i);
              simd::register_tile_of(
                  static_cast<int>(rows), deep, {packed_a + (i - i0) * deep, 1, simd::register_rows}, b_panel,
                  tile_columns, static_cast<float>(args.alpha), add, sums + (i - r0) * sums_step + (j - c0),
                  sums_step, std::min(tile_columns, c1 - j));
            }
          }
        }
      }
      if (finish_needed) finish_matmul(args, {sums, sums_step, r0, r1 - r0, c0, c1 - c0});
    }
  }
}

void multiply(const MatmulArgs& args, const MatmulBlock& block, std::byte* scratch) {
  if (args.a.data.dtype == DType::bfloat16) {
    multiply_block<BFloat16>(args, block, scratch);
  } else {
    multiply_block<float>(args, block, scratch);
  }
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(multiply);
HWY_EXPORT(block_scratch);

namespace {

class BlockedMatmul final : public MatmulEngine {
 public:
  explicit BlockedMatmul(ThreadTeam& team) : team_(team) {}

  std::string description() const override { return "own kernels"; }

  void run(const MatmulArgs& args) override {
    const std::int64_t depth = args.a.transposed ? args.a.data.shape[0] : args.a.data.shape[1];
    const MatmulPartition partition(args.c.shape[0], args.c.shape[1], depth, team_.threads());
    for (int part = 0; part < partition.parts(); ++part) {
      scratch_.get(part, HWY_DYNAMIC_DISPATCH(block_scratch)());
    }
    team_.run_parts(partition.parts(), [&](int part) {
      HWY_DYNAMIC_DISPATCH(multiply)(args, partition.block(part), scratch_.at(part));
    });
  }

 private:
  ThreadTeam& team_;
  Scratch scratch_;
};

}  // namespace

std::unique_ptr<MatmulEngine> make_blocked_matmul(ThreadTeam& team) {
  return std::make_unique<BlockedMatmul>(team);
}

}  // namespace megalith
#endif
