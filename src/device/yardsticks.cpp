#include "device/yardsticks.h"

#include <algorithm>
#include <cmath>

namespace megalith {

Bandwidth Yardsticks::bandwidth(double bytes) const {
  if (bandwidths.empty()) return {};
  const auto above = std::find_if(bandwidths.begin(), bandwidths.end(),
                                  [&](const Bandwidth& block) { return block.bytes >= bytes; });
  if (above == bandwidths.begin()) return bandwidths.front();
  if (above == bandwidths.end()) return bandwidths.back();
  const Bandwidth& below = *(above - 1);
  const double part = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return {bytes, std::lerp(below.copy, above->copy, part), std::lerp(below.update, above->update, part),
          std::lerp(below.read, above->read, part)};
}

KernelLimit limit_of(const KernelWork& work, const Yardsticks& yardsticks) {
  const auto seconds = [](double amount, double rate) { return rate > 0.0 ? amount / rate : 0.0; };
  const Bandwidth block = yardsticks.bandwidth(work.bytes());
  const double arithmetic = seconds(work.flops, yardsticks.multiply_add);
  const double memory = std::max(seconds(work.bytes_read, block.read),
                                 seconds(work.bytes(), std::max(block.copy, block.update)));
  if (arithmetic > memory) return {KernelLimit::By::arithmetic, arithmetic};
  return {KernelLimit::By::memory, memory};
}

}  // namespace megalith
