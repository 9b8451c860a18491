#include "model/parameter_store.h"

#include <algorithm>
#include <map>

namespace megalith {
namespace {

struct StoreTensors {
  std::vector<Tensor> masters;
  std::vector<Tensor> computes;
  std::vector<Tensor> gradients;
};

std::vector<int> find_owners(const ParameterTable& table) {
  std::vector<int> owners;
  std::map<int, int> first_of_group;
  for (int row = 0; row < table.size(); ++row) {
    const int group = table[row].tie_group;
    owners.push_back(group < 0 ? row : first_of_group.try_emplace(group, row).first->second);
    const Parameter& owner = table[owners.back()];
    MEGALITH_ASSERT(owner.logical_shape == table[row].logical_shape,
                    format("{} and {} are tied but differ in shape", owner.name, table[row].name));
  }
  return owners;
}

// For each row, the row whose gradient receives the sum of its tie group: the
// owner, or the group's next row where the owner's gradient holds words only.
std::vector<int> find_totals(const ParameterTable& table, const std::vector<int>& owners,
                             std::int64_t most_words) {
  std::vector<int> totals(owners);
  for (int row = table.size() - 1; row >= 0; --row) {
    const int owner = owners[static_cast<std::size_t>(row)];
    const bool fewer_words = most_words > 0 && most_words < table[owner].shards.local_shape[0];
    if (owner != row && fewer_words) totals[static_cast<std::size_t>(owner)] = row;
  }
  return totals;
}

// Also run on counting arenas: the one place that says what a store holds.
StoreTensors lay_out(const ParameterTable& table, const std::vector<int>& owners,
                     const std::vector<int>& totals, std::int64_t most_words, Arena& masters, Arena& computes,
                     Arena* gradients) {
  StoreTensors tensors;
  for (int row = 0; row < table.size(); ++row) {
    const Parameter& parameter = table[row];
    const Shape& shape = parameter.shards.local_shape;
    const DType master = sum_type(parameter.dtype);
    const bool owns = owners[static_cast<std::size_t>(row)] == row;
    tensors.masters.push_back(owns ? masters.allocate(parameter.name, master, shape) : Tensor());
    const bool copies = owns && parameter.dtype != master;
    tensors.computes.push_back(copies ? computes.allocate(parameter.name, parameter.dtype, shape)
                                      : tensors.masters.back());
    const bool of_words = owns && totals[static_cast<std::size_t>(row)] != row;
    tensors.gradients.push_back(gradients == nullptr ? Tensor()
                                : of_words
                                    ? gradients->allocate(parameter.name, master, {most_words, shape[1]})
                                    : gradients->allocate(parameter.name, master, shape));
  }
  return tensors;
}

}  // namespace

ParameterMemory parameter_memory(const ParameterTable& table, std::int64_t most_words) {
  Arena masters;
  Arena computes;
  Arena gradients;
  const std::vector<int> owners = find_owners(table);
  lay_out(table, owners, find_totals(table, owners, most_words), most_words, masters, computes, &gradients);
  return {masters.bytes(), computes.bytes(), gradients.bytes()};
}

ParameterStore::ParameterStore(Device& device, ParameterTable table, bool with_gradients,
                               std::int64_t most_words)
    : device_(device),
      table_(std::move(table)),
      owners_(find_owners(table_)),
      totals_(find_totals(table_, owners_, most_words)),
      gradient_is_written_(std::make_unique<bool[]>(index(table_.size()))) {
  const ParameterMemory memory = parameter_memory(table_, most_words);
  master_arena_ = Arena(device, memory.master);
  if (memory.compute_copies > 0) compute_arena_ = Arena(device, memory.compute_copies);
  if (with_gradients) gradient_arena_ = Arena(device, memory.gradients);
  StoreTensors tensors = lay_out(table_, owners_, totals_, most_words, master_arena_, compute_arena_,
                                 with_gradients ? &gradient_arena_ : nullptr);
  masters_ = std::move(tensors.masters);
  computes_ = std::move(tensors.computes);
  gradients_ = std::move(tensors.gradients);
  for (int row = 0; row < table_.size(); ++row) {
    if (owner(row) == row) owning_rows_.push_back(row);
  }
  // Padding takes part in matrix products, so it must be finite from the start, whoever fills the rest.
  for (const int row : owning_rows_) {
    const Tensor& weight = masters_[index(row)];
    if (table_[row].shards.held_count() < weight.count()) device_.fill(QueueKind::compute, weight, 0.0);
  }
}

int ParameterStore::row(std::string_view name) const {
  const int found = table_.find(name);
  MEGALITH_ASSERT(found >= 0, format("no parameter is named {}", name));
  return found;
}

Tensor ParameterStore::held(const Tensor& local, int row) const {
  const ShardMap& shards = table_[row].shards;
  // Padding is at the end, so what is held is a prefix as long as the pieces follow one another from the
  // start.
  std::int64_t end = 0;
  for (const ShardPiece& piece : shards.pieces) {
    MEGALITH_ASSERT(piece.local.offset[0] == end, format("{}: pieces with gaps", table_[row].name));
    for (int dim = 1; dim < shards.local_shape.rank(); ++dim) {
      MEGALITH_ASSERT(piece.local.extent[dim] == shards.local_shape[dim],
                      format("{}: padding inside rows", table_[row].name));
    }
    end += piece.local.extent[0];
  }
  return prefix_view(local, {shards.held_count()});
}

void ParameterStore::initialize_row(int row, std::uint64_t seed) {
  const Parameter& parameter = table_[row];
  const Tensor& weight = masters_[index(row)];
  if (parameter.init.kind == InitRule::Kind::constant) {
    device_.fill(QueueKind::compute, held(weight, row), parameter.init.value);
    return;
  }
  for (const ShardPiece& piece : parameter.shards.pieces) {
    MEGALITH_ASSERT(parameter.logical_shape.rank() == 2, parameter.name + ": random values need a matrix");
    const std::int64_t columns = parameter.logical_shape[1];
    InitializeNormalArgs args;
    args.to = weight.sliced(0, piece.local.offset[0], piece.local.offset[0] + piece.local.extent[0])
                  .sliced(1, piece.local.offset[1], piece.local.offset[1] + piece.local.extent[1]);
    args.first_element = piece.global.offset[0] * columns + piece.global.offset[1];
    args.row_step = columns;
    args.key = philox_key(seed, "init:" + parameter.name);
    args.mean = parameter.init.value;
    args.deviation = parameter.init.deviation;
    device_.initialize_normal(QueueKind::compute, args);
  }
}

void ParameterStore::initialize(std::uint64_t seed) {
  for (const int row : owning_rows_) initialize_row(row, seed);
  refresh_compute_copies();
}

void ParameterStore::refresh_compute_copies() {
  for (const int row : owning_rows_) {
    const Tensor& copy = computes_[index(row)];
    const Tensor& weight = masters_[index(row)];
    if (copy.address != weight.address) device_.copy(QueueKind::compute, copy, weight);
  }
}

void ParameterStore::zero_gradients(const Tensor& words) {
  std::fill_n(gradient_is_written_.get(), table_.size(), false);
  words_ = words;
}

void ParameterStore::finish_gradients() {
  for (int row = 0; row < table_.size(); ++row) gradient_sink(row).to_add_to(device_);
  for (int row = 0; row < table_.size(); ++row) {
    if (owner(row) == row) continue;
    const int first = owner(row);
    const int total = totals_[index(first)];
    if (total == row) {
      const std::int64_t count = words_ ? words_.shape[0] : 0;
      if (count > 0) {
        device_.embedding_backward(QueueKind::compute, {words_, gradients_[index(first)].sliced(0, 0, count),
                                                        gradients_[index(total)], 0});
      }
    } else {
      const Tensor& sum = gradients_[index(total)];
      device_.add(QueueKind::compute, sum, sum, 1.0, gradients_[index(row)], 1.0);
    }
  }
}

std::vector<LogicalTensor> ParameterStore::weights() const {
  std::vector<LogicalTensor> list;
  for (const int row : owning_rows_) {
    const Parameter& parameter = table_[row];
    list.push_back({parameter.name, parameter.logical_shape, parameter.shards.pieces, masters_[index(row)]});
  }
  return list;
}

}  // namespace megalith
