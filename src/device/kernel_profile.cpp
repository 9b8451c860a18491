#include "device/kernel_profile.h"

#include <algorithm>
#include <map>
#include <utility>

namespace megalith {

std::vector<KernelRow> profile_kernels(std::span<const TraceSpan> spans) {
  std::map<std::pair<std::string, std::string>, std::vector<const TraceSpan*>> calls;
  for (const TraceSpan& span : spans) {
    if (span.track > 0) calls[{span.name, span.detail}].push_back(&span);
  }
  std::vector<KernelRow> rows;
  for (auto& [key, group] : calls) {
    std::sort(group.begin(), group.end(),
              [](const TraceSpan* a, const TraceSpan* b) { return a->seconds() < b->seconds(); });
    const auto count = static_cast<double>(group.size());
    KernelRow row{.kernel = key.first,
                  .work = {.shape = key.second},
                  .calls = static_cast<std::int64_t>(group.size()),
                  .median = group[group.size() / 2]->seconds(),
                  .fastest = group.front()->seconds()};
    for (const TraceSpan* span : group) {
      row.seconds += span->seconds();
      row.work.flops += span->flops / count;
      row.work.bytes_read += span->bytes_read / count;
      row.work.bytes_written += span->bytes_written / count;
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(),
            [](const KernelRow& a, const KernelRow& b) { return a.seconds > b.seconds; });
  return rows;
}

}  // namespace megalith
