// Checkpoints without a layout: logical tensors in safetensors shards, an index with checksums, a commit
// marker.
//
//   ROOT/iter_0000100/model-00001-of-00002.safetensors ...   slices of logical tensors
//   ROOT/iter_0000100/index.json     metadata, every tensor's name, type, shape, file, checksum
//   ROOT/iter_0000100/COMMITTED      written last: a folder without it does not exist for a reader
//   ROOT/latest_checkpointed_iteration.txt   Megatron's name; a hint only, the folders decide
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/tensor.h"
#include "device/device.h"
#include "parallel/shard_map.h"

namespace megalith {

/// One logical tensor and the part of it that lies in this rank's device memory.
struct CheckpointTensor {
  std::string name;  ///< "decoder.layers.0....weight", "optimizer.exp_avg.decoder..."
  Shape logical_shape;
  std::vector<ShardPiece> pieces;  ///< which boxes, and where they lie in `local`
  Tensor local;                    ///< contiguous
};

struct CheckpointSaveOptions {
  std::filesystem::path root;
  std::int64_t iteration = 0;
  std::int64_t retain = 0;  ///< newest checkpoints to keep, 0: all; only older committed ones are removed
  std::int64_t retain_interval = 0;  ///< never remove an iteration divisible by it; 0: no such exception
  std::uint64_t shard_bytes = std::uint64_t{5} << 30;
};

/// Writes to ROOT/iter_N.tmp, renames, commits. On any failure (disk full, read-only) raises Error
/// (environment); earlier checkpoints are untouched and the partial folder is removed.
void save_checkpoint(Device& device, const CheckpointSaveOptions& options, const nlohmann::json& metadata,
                     const std::vector<CheckpointTensor>& tensors);

struct StoredTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
};

/// A committed checkpoint, opened for reading. Headers and sizes are checked on opening, checksums while
/// reading.
class CheckpointReader {
 public:
  /// `path`: a ROOT (its newest committed iteration, or `iteration` where that is not 0) or an iter_N folder.
  /// Raises Error (input) that lists what is there where nothing fits.
  explicit CheckpointReader(const std::filesystem::path& path, std::int64_t iteration = 0);

  const std::filesystem::path& folder() const { return folder_; }
  std::int64_t iteration() const { return iteration_; }
  const nlohmann::json& metadata() const { return metadata_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  bool contains(const std::string& name) const;

  /// Fills `to.local`'s pieces, converting between float types. Raises Error (input) where the tensor is
  /// absent, has another shape, or its checksum does not match.
  void read(Device& device, const CheckpointTensor& to) const;

 private:
  struct Place;

  std::filesystem::path folder_;
  std::int64_t iteration_ = 0;
  nlohmann::json metadata_;
  nlohmann::json index_;
  std::vector<StoredTensor> tensors_;
};

/// Iterations of the committed checkpoints under ROOT, ascending; empty where ROOT does not exist.
std::vector<std::int64_t> committed_iterations(const std::filesystem::path& root);

}  // namespace megalith
