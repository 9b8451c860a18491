#include "device/kernel_profile.h"

#include <algorithm>
#include <numeric>

namespace megalith {

void KernelProfile::add(const KernelCall& call) {
  Samples& samples = samples_[{std::string(call.kernel), call.dtype, call.work.shape}];
  samples.work.flops += call.work.flops;
  samples.work.bytes_read += call.work.bytes_read;
  samples.work.bytes_written += call.work.bytes_written;
  samples.seconds.push_back(call.seconds());
}

std::vector<KernelRow> KernelProfile::rows() const {
  std::vector<KernelRow> rows;
  for (const auto& [key, samples] : samples_) {
    std::vector<double> sorted = samples.seconds;
    std::sort(sorted.begin(), sorted.end());
    const auto calls = static_cast<double>(sorted.size());
    rows.push_back({.kernel = std::get<0>(key),
                    .dtype = std::get<1>(key),
                    .work = {std::get<2>(key), samples.work.flops / calls, samples.work.bytes_read / calls,
                             samples.work.bytes_written / calls},
                    .calls = static_cast<std::int64_t>(sorted.size()),
                    .seconds = std::accumulate(sorted.begin(), sorted.end(), 0.0),
                    .median = sorted[sorted.size() / 2],
                    .fastest = sorted.front()});
  }
  std::sort(rows.begin(), rows.end(),
            [](const KernelRow& a, const KernelRow& b) { return a.seconds > b.seconds; });
  return rows;
}

double KernelProfile::seconds() const {
  double sum = 0.0;
  for (const auto& [key, samples] : samples_) {
    sum += std::accumulate(samples.seconds.begin(), samples.seconds.end(), 0.0);
  }
  return sum;
}

}  // namespace megalith
