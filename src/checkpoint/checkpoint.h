// Checkpoints without a layout: logical tensors in safetensors shards, an index with checksums, a commit
// marker. Under ROOT:
//
//   iter_0000100/model-00001-of-00002.safetensors ...  slices of logical tensors
//   iter_0000100/index.json  metadata; every tensor's type, shape and slices, with file, key and checksum
//   iter_0000100/COMMITTED   written last, holds index.json's checksum; without it the folder does not count
//   latest_checkpointed_iteration.txt  Megatron's name, for people; readers look at the folders themselves
//
// A slice that covers its whole tensor has the tensor's name as its key, so that other programs can read the
// shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_folder.h"
#include "core/bulk_reader.h"
#include "core/tensor.h"
#include "device/device.h"
#include "parallel/shard_map.h"

namespace megalith {

struct CheckpointSaveOptions {
  std::filesystem::path root;
  std::int64_t iteration = 0;
  std::int64_t retain = 0;           ///< newest checkpoints to keep, 0: all
  std::int64_t retain_interval = 0;  ///< never remove an iteration divisible by it; 0: no such exception
  std::uint64_t shard_bytes = std::uint64_t{5} << 30;  ///< a file is closed once it holds this much
};

/// What a save took.
struct CheckpointSaveReport {
  std::uint64_t bytes = 0;       ///< of the shards
  double seconds = 0;            ///< until the checkpoint was published
  double processor_seconds = 0;  ///< of the threads that wrote it
};

/// Writes a checkpoint beside the others, then publishes it in one step; retention follows. On any failure
/// (disk full, read-only) raises Error (environment): earlier checkpoints are untouched, the partial folder
/// is removed.
CheckpointSaveReport save_checkpoint(Device& device, const CheckpointSaveOptions& options,
                                     const nlohmann::json& metadata,
                                     const std::vector<LogicalTensor>& tensors);

struct StoredTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
};

/// A committed checkpoint, opened for reading. Marker, index, sizes and headers are checked on opening, each
/// slice's checksum when it is first read.
class CheckpointReader {
 public:
  /// `path`: a ROOT (its newest committed iteration, or `iteration` where that is not 0) or an iter_N folder.
  /// `cache`: whether what is read will be wanted again soon. Raises Error (input) that says what is there
  /// where nothing fits.
  explicit CheckpointReader(const std::filesystem::path& path, std::int64_t iteration = 0,
                            PageCache cache = PageCache::keep);
  ~CheckpointReader();
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;

  const std::filesystem::path& folder() const;
  std::int64_t iteration() const;
  const nlohmann::json& metadata() const;
  const std::vector<StoredTensor>& tensors() const;
  bool contains(const std::string& name) const;
  /// Raises Error (input) where there is no such tensor or it has another shape.
  void check_shape(const std::string& name, const Shape& shape) const;

  /// Fills the pieces of every tensor's `local`, converting between float types; reads in the order of the
  /// files. Raises Error (input) where a tensor is absent, has another shape or is not covered, before
  /// anything is read, or where a checksum does not match: the tensors' contents are then undefined.
  void read(Device& device, const std::vector<LogicalTensor>& to) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace megalith
