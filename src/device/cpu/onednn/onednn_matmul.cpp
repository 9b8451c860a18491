// Matrix products by oneDNN, versions 2.6 and 3.
//
// float32 on x86 goes through its sgemm, one single-threaded call per thread of the team: measured faster
// than the matmul primitive on every product of GPT-2 (docs/performance.md), and nothing has to be created or
// cached. Everything else goes through the matmul primitive; where oneDNN has none but its reference loops,
// our own kernel does the work.
#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/matmul_engine.h"
#include "device/cpu/matmul_finish.h"
#include "device/cpu/matmul_partition.h"
#include "device/cpu/onednn/openmp_threads.h"
#include "device/cpu/onednn/primitive_cache.h"

namespace megalith {

namespace {

#if defined(__x86_64__)
constexpr bool sgemm_is_fast = true;
#else
constexpr bool sgemm_is_fast = false;
#endif

class OneDnnMatmul final : public MatmulEngine {
 public:
  explicit OneDnnMatmul(ThreadTeam& team) : team_(team), own_kernels_(make_blocked_matmul(team)) {}

  std::string description() const override {
    const dnnl_version_t* version = dnnl_version();
    return format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  }

  void run(const MatmulArgs& args) override {
    const bool all_float32 = args.a.data.dtype == DType::float32;
    if (all_float32 && sgemm_is_fast) {
      run_sgemm(args);
      return;
    }
    // oneDNN 3.7 mistakes the steps of some bfloat16 matrices of a single column for those of a row.
    const bool single_column = (args.a.transposed && args.c.shape[0] == 1) || args.c.shape[1] == 1;
    const OpenMpThreads threads(team_.threads());
    if (single_column || !primitives_.run(args)) {
      own_kernels_->run(args);
      return;
    }
    if (args.pre_activation) {
      team_.parallel_for(args.c.shape[0], 1, [&](std::int64_t begin, std::int64_t end) {
        activate_matmul(args, args.pre_activation, begin, end);
      });
    }
  }

 private:
  void run_sgemm(const MatmulArgs& args) {
    const std::int64_t depth = args.a.data.shape[args.a.transposed ? 0 : 1];
    const MatmulPartition partition(args.c.shape[0], args.c.shape[1], depth, team_.threads());
    const bool finish = args.bias || args.activation != Activation::none || args.pre_activation;
    team_.run_parts(partition.parts(), [&](int part) {
      const MatmulBlock block = partition.block(part);
      const std::int64_t rows = block.row_end - block.row_begin;
      const std::int64_t columns = block.column_end - block.column_begin;
      if (rows == 0 || columns == 0) return;
      const std::int64_t a_step = leading_step(args.a.data);
      const std::int64_t b_step = leading_step(args.b.data);
      const std::int64_t c_step = leading_step(args.c);
      const float* a = pointer_to<float>(args.a.data) + block.row_begin * (args.a.transposed ? 1 : a_step);
      const float* b = pointer_to<float>(args.b.data) + block.column_begin * (args.b.transposed ? b_step : 1);
      float* c = pointer_to<float>(args.c) + block.row_begin * c_step + block.column_begin;
      const OpenMpThreads one(1);
      const dnnl::status status = dnnl::sgemm(args.a.transposed ? 'T' : 'N', args.b.transposed ? 'T' : 'N',
                                              rows, columns, depth, static_cast<float>(args.alpha), a, a_step,
                                              b, b_step, args.accumulate ? 1.0F : 0.0F, c, c_step);
      MEGALITH_ASSERT(status == dnnl::status::success,
                      format("oneDNN's sgemm of {} x {} x {} gave status {}", rows, columns, depth,
                             static_cast<int>(status)));
      if (finish) {
        finish_matmul(args, {c, c_step, block.row_begin, rows, block.column_begin, columns});
      }
    });
  }

  ThreadTeam& team_;
  std::unique_ptr<MatmulEngine> own_kernels_;
  PrimitiveCache primitives_;
};

}  // namespace

std::unique_ptr<MatmulEngine> make_onednn_matmul(ThreadTeam& team) {
  return std::make_unique<OneDnnMatmul>(team);
}

}  // namespace megalith
