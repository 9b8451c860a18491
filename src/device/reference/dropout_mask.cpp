#include "device/reference/dropout_mask.h"

#include <algorithm>

#include "core/philox.h"

namespace megalith::reference {

DropoutMask::DropoutMask(const HostView& view, const DropoutArgs& args)
    : args_(args), samples_(args.probability > 0.0 ? view.pointer<std::int64_t>(args.samples) : nullptr) {}

void DropoutMask::row_factors(std::int64_t sequence, std::int64_t head, std::int64_t row,
                              std::int64_t first_column, std::span<double> factors) const {
  if (!active()) {
    std::fill(factors.begin(), factors.end(), 1.0);
    return;
  }
  const auto sample = static_cast<std::uint64_t>(samples_[sequence]);
  const auto global_head = static_cast<std::uint32_t>(args_.first_head + head);
  const auto global_row = static_cast<std::uint32_t>(args_.first_row + row);
  const std::uint32_t threshold = dropout_threshold(args_.probability);
  const double survivor = 1.0 / (1.0 - args_.probability);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto column =
        static_cast<std::uint32_t>(args_.first_column + first_column + static_cast<std::int64_t>(i));
    const std::uint32_t bits = dropout_bits(args_.key, sample, global_head, global_row, column);
    factors[i] = bits >= threshold ? survivor : 0.0;
  }
}

}  // namespace megalith::reference
