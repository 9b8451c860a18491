// save_checkpoint: streams device memory into shards. The calling thread copies from the device and computes
// checksums, the bulk writer's threads keep the disk at work.
//
// Limits of one gigabyte on a machine that copies 10 GB/s on one core: copy and checksum 0.15 s together,
// read from memory once; the disk takes longer.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "checkpoint/checkpoint_writing.h"
#include "checkpoint/safetensors.h"
#include "core/bulk_writer.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/thread_cost.h"

namespace megalith {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr std::int64_t staging_bytes = std::int64_t{32} << 20;

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

// The memory of a contiguous tensor as bytes: elements may lie across the boundary of two blocks.
Tensor bytes_of(const Tensor& tensor) {
  return {tensor.address, DType::uint8, {static_cast<std::int64_t>(tensor.bytes())}};
}

class ShardWriter {
 public:
  ShardWriter(Device& device, BulkWriter& writer, fs::path folder)
      : device_(device), writer_(writer), folder_(std::move(folder)) {}

  // Hands over one file with these slices and adds them to the index.
  void write_file(const std::string& file_name, const std::vector<Slice>& slices, Json& index) {
    std::vector<SafetensorsEntry> entries;
    std::uint64_t bytes = 0;
    for (const Slice& slice : slices) {
      const Shape& extent = slice.piece->global.extent;
      const DType dtype = slice.tensor->local.dtype;
      entries.push_back({slice_key(*slice.tensor, slice.piece->global), dtype, extent, 0, 0});
      bytes += static_cast<std::uint64_t>(extent.count()) * size_of(dtype);
    }
    const std::string header = safetensors_header(entries, {{"format", "pt"}});
    bytes += header.size();
    writer_.begin_file(folder_ / file_name, bytes);
    writer_.write(std::as_bytes(std::span(header)));
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const Slice& slice = slices[i];
      const std::string checksum = write_slice(view_of_box(slice.tensor->local, slice.piece->local));
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
    writer_.end_file();
    index["files"][file_name] = bytes;
    bytes_ += bytes;
  }

  /// Of all files.
  std::uint64_t bytes() const { return bytes_; }

 private:
  // Returns the checksum.
  std::string write_slice(const Tensor& source) {
    Hasher hasher;
    if (source.is_contiguous()) {
      write_bytes(hasher, bytes_of(source));
      return hasher.hex();
    }
    // In parts along its first dimension, each made contiguous on the device.
    const std::int64_t rows = source.shape[0];
    const std::int64_t row_bytes =
        std::max<std::int64_t>(1, source.count() / std::max<std::int64_t>(1, rows) *
                                      static_cast<std::int64_t>(size_of(source.dtype)));
    const std::int64_t step = std::max<std::int64_t>(1, staging_bytes / row_bytes);
    for (std::int64_t row = 0; row < rows; row += step) {
      const Tensor part = source.sliced(0, row, std::min(rows, row + step));
      if (staging_.bytes() < part.bytes()) staging_ = DeviceMemory(device_, part.bytes());
      const Tensor contiguous = staging_.tensor(part.dtype, part.shape);
      device_.copy(QueueKind::copy, contiguous, part);
      write_bytes(hasher, bytes_of(contiguous));
    }
    return hasher.hex();
  }

  void write_bytes(Hasher& hasher, const Tensor& source) {
    for (std::int64_t done = 0; done < source.count();) {
      std::span<std::byte> to = writer_.space();
      to = to.first(std::min(to.size(), static_cast<std::size_t>(source.count() - done)));
      const auto count = static_cast<std::int64_t>(to.size());
      device_.copy_to_host(QueueKind::copy, to.data(), source.sliced(0, done, done + count));
      device_.synchronize(QueueKind::copy);
      hasher.update(to);
      writer_.advance(to.size());
      done += count;
    }
  }

  Device& device_;
  BulkWriter& writer_;
  fs::path folder_;
  DeviceMemory staging_;
  std::uint64_t bytes_ = 0;
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

CheckpointSaveReport write_checkpoint(const CheckpointWriting& how, const CheckpointSaveOptions& options,
                                      const Json& metadata, const std::vector<LogicalTensor>& tensors) {
  const auto begin = std::chrono::steady_clock::now();
  const double processor_before = thread_processor_seconds();
  if (how.lower_priority > 0) lower_thread_priority(how.lower_priority);
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
  BulkWriter writer(how.pool, how.lower_priority);
  ShardWriter shards(how.device, writer, folder);
  const std::vector<std::vector<Slice>> files = plan_files(tensors, options.shard_bytes);
  for (std::size_t i = 0; i < files.size(); ++i) {
    shards.write_file(format("model-{:05}-of-{:05}.safetensors", i + 1, files.size()), files[i], index);
  }
  if (how.when_copied) how.when_copied();
  writer.finish();
  // Each of the two makes the names before it survive a power cut: the folder is flushed with them.
  const std::string index_text = index.dump(1) + "\n";
  write_file_atomically(folder / checkpoint_index, index_text);
  write_file_atomically(folder / checkpoint_marker, hash_hex(index_text) + "\n");
  publish_folder(folder, final_folder);
  partial.release();
  CheckpointSaveReport report;
  report.bytes = shards.bytes();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  apply_retention(options.root, options.retain, options.retain_interval);
  try {
    write_file_atomically(options.root / checkpoint_latest, format("{}\n", options.iteration));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // The checkpoint is published and no reader looks at this file: a disk that is full to the last block
    // must not make the save count as failed.
  }
  report.processor_seconds = thread_processor_seconds() - processor_before + writer.processor_seconds();
  return report;
}

CheckpointSaveReport save_checkpoint(Device& device, const CheckpointSaveOptions& options,
                                     const Json& metadata, const std::vector<LogicalTensor>& tensors) {
  BlockPool pool;
  device.wait(QueueKind::copy, device.record(QueueKind::compute));
  return write_checkpoint({device, pool, 0, {}}, options, metadata, tensors);
}

}  // namespace megalith
