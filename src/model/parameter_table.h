// The parameter table: one row per parameter of the model. Initialisation, the optimizer, the global norm,
// checkpoints, memory figures and `megalith inspect` read this list; no other list of parameters exists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "parallel/shard_map.h"

namespace megalith {

struct InitRule {
  enum class Kind : std::uint8_t { constant, normal } kind = Kind::constant;
  double value = 0.0;      ///< the constant, or the mean
  double deviation = 0.0;  ///< of normal; element i is keyed by (seed, "init:" + name, i)
};

struct Parameter {
  std::string name;  ///< Megatron-Core's: "decoder.layers.0.self_attention.linear_qkv.weight"
  Shape logical_shape;
  DType dtype = DType::float32;  ///< of the compute copy
  ShardMap shards;
  int stage = 0;
  int expert = -1;
  int tie_group = -1;  ///< rows of one tie group share one storage; the first row of the group owns it
  InitRule init;
  double weight_decay_mult = 1.0;  ///< 0 for biases and norms (Megatron's rule: one-dimensional parameters)
  double lr_mult = 1.0;
};

class ParameterTable {
 public:
  /// Appends a row and returns its number. Names are unique.
  int add(Parameter parameter);
  const std::vector<Parameter>& rows() const { return rows_; }
  const Parameter& operator[](int row) const { return rows_[static_cast<std::size_t>(row)]; }
  int size() const { return static_cast<int>(rows_.size()); }
  /// Row of that name, -1 where there is none.
  int find(std::string_view name) const;
  /// Distinct logical elements: a tie group counts once.
  std::int64_t parameter_count() const;

 private:
  std::vector<Parameter> rows_;
  std::unordered_map<std::string, int> row_of_name_;
};

}  // namespace megalith
