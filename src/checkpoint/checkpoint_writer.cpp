// save_checkpoint: streams device memory into shards, a bounded number of bytes at a time.
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"

namespace megalith {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr std::int64_t copy_bytes = std::int64_t{32} << 20;

std::string slice_key(const LogicalTensor& tensor, const Box& box) {
  if (box.extent == tensor.logical_shape) return tensor.name;
  std::string key = tensor.name + "@";
  for (int dim = 0; dim < box.extent.rank(); ++dim) {
    key += format("{}{}", dim == 0 ? "" : ",", box.offset[static_cast<std::size_t>(dim)]);
  }
  return key;
}

Json extents_of(const Shape& shape) {
  Json list = Json::array();
  for (int dim = 0; dim < shape.rank(); ++dim) list.push_back(shape[dim]);
  return list;
}

struct Slice {
  const LogicalTensor* tensor = nullptr;
  const ShardPiece* piece = nullptr;
};

class ShardWriter {
 public:
  ShardWriter(Device& device, const fs::path& folder) : device_(device), folder_(folder) {}

  // Writes one file with these slices and adds them to the index.
  void write_file(const std::string& file_name, const std::vector<Slice>& slices, Json& index) {
    std::vector<SafetensorsEntry> entries;
    for (const Slice& slice : slices) {
      entries.push_back({slice_key(*slice.tensor, slice.piece->global), slice.tensor->local.dtype,
                         slice.piece->global.extent, 0, 0});
    }
    SafetensorsWriter writer(folder_ / file_name, entries, {{"format", "pt"}});
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const Slice& slice = slices[i];
      const std::string checksum = write_slice(writer, view_of_box(slice.tensor->local, slice.piece->local));
      Json& row = index["tensors"][slice.tensor->name];
      row["dtype"] = name_of(slice.tensor->local.dtype);
      row["shape"] = extents_of(slice.tensor->logical_shape);
      Json offset = Json::array();
      for (int dim = 0; dim < slice.piece->global.extent.rank(); ++dim) {
        offset.push_back(slice.piece->global.offset[static_cast<std::size_t>(dim)]);
      }
      row["slices"].push_back({{"file", file_name},
                               {"key", entries[i].name},
                               {"offset", offset},
                               {"extent", extents_of(slice.piece->global.extent)},
                               {"xxh3", checksum}});
    }
    writer.commit();
    index["files"][file_name] = writer.file_size();
  }

 private:
  // Copies `source` to the file in pieces along its first dimension. Returns the checksum.
  std::string write_slice(SafetensorsWriter& writer, const Tensor& source) {
    Hasher hasher;
    if (source.shape.rank() == 0) {
      write_chunk(writer, hasher, source);
      return hasher.hex();
    }
    const std::int64_t rows = source.shape[0];
    const std::int64_t row_bytes =
        std::max<std::int64_t>(1, source.count() / std::max<std::int64_t>(1, rows) *
                                      static_cast<std::int64_t>(size_of(source.dtype)));
    const std::int64_t step = std::max<std::int64_t>(1, copy_bytes / row_bytes);
    for (std::int64_t row = 0; row < rows; row += step) {
      write_chunk(writer, hasher, source.sliced(0, row, std::min(rows, row + step)));
    }
    return hasher.hex();
  }

  void write_chunk(SafetensorsWriter& writer, Hasher& hasher, const Tensor& chunk) {
    if (chunk.bytes() == 0) return;
    Tensor contiguous = chunk;
    if (!chunk.is_contiguous()) {
      if (staging_.bytes() < chunk.bytes()) staging_ = DeviceMemory(device_, chunk.bytes());
      contiguous = staging_.tensor(chunk.dtype, chunk.shape);
      device_.copy(QueueKind::compute, contiguous, chunk);
    }
    host_.resize(chunk.bytes());
    device_.copy_to_host(QueueKind::compute, host_.data(), contiguous);
    device_.synchronize(QueueKind::compute);
    hasher.update(host_);
    writer.write(host_);
  }

  Device& device_;
  fs::path folder_;
  DeviceMemory staging_;
  std::vector<std::byte> host_;
};

// Removes the folder unless released: what a failed save wrote.
class PartialFolder {
 public:
  explicit PartialFolder(fs::path path) : path_(std::move(path)) {}
  ~PartialFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;
  void release() { path_.clear(); }

 private:
  fs::path path_;
};

std::vector<std::vector<Slice>> plan_files(const std::vector<LogicalTensor>& tensors,
                                           std::uint64_t shard_bytes) {
  std::vector<std::vector<Slice>> files(1);
  std::uint64_t filled = 0;
  for (const LogicalTensor& tensor : tensors) {
    for (const ShardPiece& piece : tensor.pieces) {
      const std::uint64_t bytes =
          static_cast<std::uint64_t>(piece.global.count()) * size_of(tensor.local.dtype);
      if (filled > 0 && filled + bytes > shard_bytes) {
        files.emplace_back();
        filled = 0;
      }
      files.back().push_back({&tensor, &piece});
      filled += bytes;
    }
  }
  return files;
}

}  // namespace

void save_checkpoint(Device& device, const CheckpointSaveOptions& options, const Json& metadata,
                     const std::vector<LogicalTensor>& tensors) {
  create_folders(options.root);
  remove_leftovers(options.root);
  const fs::path final_folder = options.root / iteration_folder_name(options.iteration);
  fs::path folder = final_folder;
  folder += format(".writing-{}", ::getpid());
  PartialFolder partial(folder);
  create_folders(folder);

  Json index = {{"format", "megalith-checkpoint"}, {"version", 1},
                {"iteration", options.iteration},  {"metadata", metadata},
                {"tensors", Json::object()},       {"files", Json::object()}};
  ShardWriter writer(device, folder);
  const std::vector<std::vector<Slice>> files = plan_files(tensors, options.shard_bytes);
  for (std::size_t i = 0; i < files.size(); ++i) {
    writer.write_file(format("model-{:05}-of-{:05}.safetensors", i + 1, files.size()), files[i], index);
  }
  const std::string index_text = index.dump(1) + "\n";
  write_file_atomically(folder / checkpoint_index, index_text);
  write_file_atomically(folder / checkpoint_marker, hash_hex(index_text) + "\n");
  publish_folder(folder, final_folder);
  partial.release();
  apply_retention(options.root, options.retain, options.retain_interval);
  try {
    write_file_atomically(options.root / checkpoint_latest, format("{}\n", options.iteration));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // The checkpoint is published and no reader looks at this file: a disk that is full to the last block
    // must not make the save count as failed.
  }
}

}  // namespace megalith
