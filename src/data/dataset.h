// Training samples: fixed-length pieces of the shuffled documents, the same for a seed as Megatron-LM's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/log.h"
#include "data/tokenizer.h"

namespace megalith {

/// A sequence of samples in the order in which a run consumes them.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::int64_t size() const = 0;
  /// Fills `tokens`, seq_length + 1 long: inputs are all but the last, targets all but the first.
  /// Thread-safe. Raises Error (input) with file and place where a token is damaged or beyond the vocabulary.
  virtual void read(std::int64_t index, std::span<Token> tokens) const = 0;
};

struct DatasetOptions {
  std::vector<std::string> data_path;  ///< path prefix, or weight prefix weight prefix ...
  std::vector<std::string> train_data_path;
  std::vector<std::string> valid_data_path;
  std::vector<std::string> test_data_path;
  std::string split = "969,30,1";
  std::string data_cache_path;  ///< where index arrays are cached; empty: beside the data, in
                                ///< cache/GPTDataset_indices
  std::int64_t seq_length = 0;
  std::uint64_t seed = 1234;
  std::int64_t vocab_size = 0;  ///< tokens must be below it; 0: not checked
  bool mock_data = false;
  std::int64_t train_samples = 0;  ///< samples that will be asked for
  std::int64_t valid_samples = 0;
  std::int64_t test_samples = 0;
};

/// Null where a split is empty or not asked for.
struct DatasetSplits {
  std::unique_ptr<SampleSource> train;
  std::unique_ptr<SampleSource> valid;
  std::unique_ptr<SampleSource> test;
};

/// Opens and checks the files and builds (or loads from the cache) the indices.
DatasetSplits build_datasets(const DatasetOptions& options, Log& log);

}  // namespace megalith
