// ParameterStore: the device memory behind a parameter table. Master weights in the sum type, compute copies
// where the compute type is smaller, gradients in the sum type.
//
// Rows of a tie group share one weight, owned by the group's first row, but each has a gradient of its own:
// the embedding's and the head's are added once, before the norm, in the same order on every layout. Of the
// embedding's only rows of words that occur differ from 0, so a caller that can bound their number may have
// it hold those alone, a row for each word of the step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "model/arena.h"
#include "model/gradient_sink.h"
#include "model/parameter_table.h"

namespace megalith {

class ParameterStore {
 public:
  /// Weights and gradients start undefined, padding as 0; call initialize() or load a checkpoint. The table
  /// is copied. Raises Error (environment) where the memory does not suffice.
  /// most_words: different tokens a step may have, for a gradient of the step's words where the first row of
  /// a tie group has more rows than that; 0: gradients have their weights' shapes.
  ParameterStore(Device& device, ParameterTable table, bool with_gradients = true,
                 std::int64_t most_words = 0);

  const ParameterTable& table() const { return table_; }
  Device& device() const { return device_; }

  /// Local shape of the row's shard map, master type.
  Tensor master(int row) const { return masters_[index(owner(row))]; }
  /// The weight that kernels read: the compute copy, or the master where types agree.
  Tensor compute(int row) const { return computes_[index(owner(row))]; }
  /// Gradient of this row's own use, master type.
  Tensor gradient(int row) const { return gradients_[index(row)]; }
  /// Whether gradient(row) is [most_words, H]: row i is the gradient of the step's i-th word.
  bool has_word_gradient(int row) const { return totals_[index(row)] != row && owner(row) == row; }
  /// Where finish_gradients leaves the whole gradient of an owning row, shaped like its weight.
  Tensor total_gradient(int row) const { return gradients_[index(totals_[index(row)])]; }
  /// The same for a layer that adds to it; lives as long as the store.
  GradientSink gradient_sink(int row) const {
    return {gradients_[index(row)], gradient_is_written_.get() + index(row)};
  }
  /// By name; a name that is not in the table is a broken invariant.
  int row(std::string_view name) const;

  /// The row whose storage this row uses: itself unless it is a later row of a tie group.
  int owner(int row) const { return owners_[index(row)]; }
  /// Rows that own storage, in the table's order: what the norm, the optimizer and checkpoints walk through.
  const std::vector<int>& owning_rows() const { return owning_rows_; }
  /// The elements that exist logically (without padding rows) as a flat view of `local`, which has the row's
  /// local shape.
  Tensor held(const Tensor& local, int row) const;

  /// Fills every weight by its rule, keyed by (seed, "init:" + name, element number); padding becomes 0.
  void initialize(std::uint64_t seed);
  /// Rounds the masters into the compute copies; after loading a checkpoint.
  void refresh_compute_copies();
  /// Begins a step: gradients count as 0, whatever their memory holds, until a sink is written. `words`: the
  /// different tokens of the step, int32, for a gradient that holds only theirs; read by finish_gradients.
  void zero_gradients(const Tensor& words = {});
  /// Ends it, before norm and update: fills gradients that no sink has written with 0 and adds up those of a
  /// tie group, in total_gradient.
  void finish_gradients();

  /// Master weights by parameter name, owners only.
  std::vector<LogicalTensor> weights() const;

 private:
  static std::size_t index(int row) { return static_cast<std::size_t>(row); }
  void initialize_row(int row, std::uint64_t seed);

  Device& device_;
  ParameterTable table_;
  std::vector<int> owners_;
  std::vector<int> owning_rows_;
  std::vector<int> totals_;  ///< by row: whose gradient's memory receives the sum of its tie group
  Tensor words_;
  Arena master_arena_;
  Arena compute_arena_;
  Arena gradient_arena_;
  std::vector<Tensor> masters_;
  std::vector<Tensor> computes_;
  std::vector<Tensor> gradients_;
  std::unique_ptr<bool[]> gradient_is_written_;  ///< by row
};

/// Bytes a store of this table takes, without a device; most_words as the store's.
struct ParameterMemory {
  std::size_t master = 0;
  std::size_t compute_copies = 0;
  std::size_t gradients = 0;
};
ParameterMemory parameter_memory(const ParameterTable& table, std::int64_t most_words = 0);

}  // namespace megalith
