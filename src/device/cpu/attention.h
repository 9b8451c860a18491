// Attention on host memory: the bodies of the cpu device's kernels.
#pragma once

#include "device/cpu/scratch.h"
#include "device/device.h"
#include "device/parallel_for.h"

namespace megalith {

/// Attention as device.h defines it, on checked arguments. One task per few tiles of rows.
void run_attention_forward(ThreadTeam& team, Scratch& scratch, const AttentionArgs& args);

/// Its gradients. One task per key-value group of a sequence, or per block of its keys. The bits of neither
/// depend on the number of threads.
void run_attention_backward(ThreadTeam& team, Scratch& scratch, const AttentionBackwardArgs& args);

}  // namespace megalith
