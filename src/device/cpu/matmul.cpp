#include "device/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/matmul_engine.h"
#include "device/cpu/matmul_finish.h"
#include "device/cpu/thin_matmul.h"

namespace megalith {

namespace {

/// A sum over no terms: what is left is bias and activation.
void finish_empty_sum(ThreadTeam& team, const MatmulArgs& args) {
  if (args.accumulate) return;
  const std::int64_t columns = args.c.shape[1];
  const std::vector<float> zeros(static_cast<std::size_t>(columns), 0.0F);
  team.parallel_for(args.c.shape[0], 64, [&](std::int64_t begin, std::int64_t end) {
    finish_matmul(args, {zeros.data(), 0, begin, end - begin, 0, columns});
  });
}

}  // namespace

void CpuDevice::matmul(QueueKind, const MatmulArgs& args) {
  check_matmul(args);
  MEGALITH_ASSERT(
      supports(args.a.data.dtype),
      format("the cpu device multiplies float32 and bfloat16, not {}", name_of(args.a.data.dtype)));
  MEGALITH_ASSERT(args.a.scale_layout == ScaleLayout::none && args.b.scale_layout == ScaleLayout::none,
                  "the cpu device has no scaled operands");
  if (args.c.count() == 0) return;
  const std::int64_t depth = args.a.data.shape[args.a.transposed ? 0 : 1];
  if (depth == 0) {
    finish_empty_sum(team_, args);
    return;
  }
  const std::lock_guard lock(kernel_mutex_);
  if (is_thin_matmul(args)) {
    run_thin_matmul(team_, scratch_, args);
  } else {
    matmul_engine_->run(args);
  }
}

}  // namespace megalith
