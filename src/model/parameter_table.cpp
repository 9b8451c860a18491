#include "model/parameter_table.h"

#include <set>

namespace megalith {

int ParameterTable::add(Parameter parameter) {
  MEGALITH_ASSERT(find(parameter.name) < 0, "two parameters are named " + parameter.name);
  rows_.push_back(std::move(parameter));
  return size() - 1;
}

int ParameterTable::find(std::string_view name) const {
  for (int row = 0; row < size(); ++row) {
    if ((*this)[row].name == name) return row;
  }
  return -1;
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
