#include "model/parameter_table.h"

#include <set>

namespace megalith {

int ParameterTable::add(Parameter parameter) {
  const bool is_new = row_of_name_.emplace(parameter.name, size()).second;
  MEGALITH_ASSERT(is_new, "two parameters are named " + parameter.name);
  rows_.push_back(std::move(parameter));
  return size() - 1;
}

int ParameterTable::find(std::string_view name) const {
  const auto found = row_of_name_.find(std::string(name));
  return found == row_of_name_.end() ? -1 : found->second;
}

std::int64_t ParameterTable::parameter_count() const {
  std::int64_t total = 0;
  std::set<int> seen;
  for (const Parameter& row : rows_) {
    if (row.tie_group >= 0 && !seen.insert(row.tie_group).second) continue;
    total += row.logical_shape.count();
  }
  return total;
}

}  // namespace megalith
