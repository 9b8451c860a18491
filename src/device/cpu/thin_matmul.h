// Matrix products of few rows: generation computes one row a sequence.
#pragma once

#include <cstdint>

#include "device/cpu/scratch.h"
#include "device/device.h"
#include "device/parallel_for.h"

namespace megalith {

/// With more rows packing pays, and the matmul engine is faster.
inline constexpr std::int64_t most_thin_rows = 16;

/// Whether run_thin_matmul computes this product, and faster than the matmul engine.
bool is_thin_matmul(const MatmulArgs& args);

/// The product of device.h on checked arguments that hold a term and a result at least. A result's bits do
/// not depend on the other rows, nor on the number of threads.
void run_thin_matmul(ThreadTeam& team, Scratch& scratch, const MatmulArgs& args);

}  // namespace megalith
