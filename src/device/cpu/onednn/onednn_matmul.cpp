// Matrix products by oneDNN, versions 2.6 and 3, where it is faster than our own kernels
// (docs/performance.md): bfloat16 on processors with a matrix unit (AMX). Where it has none but its reference
// loops, and for all else, our own kernels do the work.
#include "core/error.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/matmul_engine.h"
#include "device/cpu/matmul_finish.h"
#include "device/cpu/onednn/openmp_threads.h"
#include "device/cpu/onednn/primitive_cache.h"

namespace megalith {

namespace {

/// What oneDNN may use here: the processor's, or less by ONEDNN_MAX_CPU_ISA.
bool has_matrix_unit() {
  constexpr auto amx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & amx) == amx;
}

class OneDnnMatmul final : public MatmulEngine {
 public:
  explicit OneDnnMatmul(ThreadTeam& team) : team_(team), own_kernels_(make_blocked_matmul(team)) {}

  std::string description() const override {
    const dnnl_version_t* version = dnnl_version();
    return format("own kernels and oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  }

  void run(const MatmulArgs& args) override {
    // oneDNN 3.7 mistakes the steps of some bfloat16 matrices of a single column for those of a row.
    const bool single_column = (args.a.transposed && args.c.shape[0] == 1) || args.c.shape[1] == 1;
    const bool suits = has_matrix_unit_ && args.a.data.dtype == DType::bfloat16 && !single_column;
    const OpenMpThreads threads(team_.threads());
    if (!suits || !primitives_.run(args)) {
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
  ThreadTeam& team_;
  std::unique_ptr<MatmulEngine> own_kernels_;
  bool has_matrix_unit_ = has_matrix_unit();
  PrimitiveCache primitives_;
};

}  // namespace

std::unique_ptr<MatmulEngine> make_onednn_matmul(ThreadTeam& team) {
  return std::make_unique<OneDnnMatmul>(team);
}

}  // namespace megalith
