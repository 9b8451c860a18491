// CheckpointReader: finds the slices that overlap what is wanted, reads them in the order of the files, and
// copies the common boxes. Checksums are computed of the bytes as they pass.
#include <algorithm>
#include <cstring>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "checkpoint/convert.h"
#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"

namespace megalith {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t index_limit = std::uint64_t{1} << 30;

struct StoredSlice {
  std::string file;
  std::string key;
  Box box;
  std::string checksum;
};

std::string list_iterations(const std::vector<std::int64_t>& iterations) {
  if (iterations.empty()) return "none";
  std::string text;
  const std::size_t first = iterations.size() > 10 ? iterations.size() - 10 : 0;
  if (first > 0) text = "..., ";
  for (std::size_t i = first; i < iterations.size(); ++i)
    text += format("{}{}", i == first ? "" : ", ", iterations[i]);
  return text;
}

fs::path choose_folder(const fs::path& path, std::int64_t iteration) {
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    fail(ErrorKind::input, path.string(), "is no folder; expected a checkpoint root or an iter_N folder");
  }
  if (iteration_of_folder(fs::absolute(path, code).lexically_normal().filename().string()) >= 0 ||
      fs::exists(path / checkpoint_index, code)) {
    if (!is_committed(path)) {
      fail(ErrorKind::input, path.string(), "holds no {} marker: the checkpoint was never finished",
           checkpoint_marker);
    }
    return path;
  }
  const std::vector<std::int64_t> iterations = committed_iterations(path);
  if (iterations.empty())
    fail(ErrorKind::input, path.string(), "holds no committed checkpoint (iter_N/{})", checkpoint_marker);
  const std::int64_t wanted = iteration > 0 ? iteration : iterations.back();
  if (std::find(iterations.begin(), iterations.end(), wanted) == iterations.end()) {
    fail(ErrorKind::input, path.string(), "holds no checkpoint of iteration {}; there are: {}", wanted,
         list_iterations(iterations));
  }
  return path / iteration_folder_name(wanted);
}

DType element_type(const std::string& name, std::string_view place) {
  try {
    return dtype_from_name(name);
  } catch (const Error& error) {
    fail(ErrorKind::input, place, "{}", error.what());
  }
}

Shape shape_of(const Json& list, std::string_view place) {
  if (!list.is_array() || list.size() > Shape::max_rank)
    fail(ErrorKind::input, place, "a shape in it is damaged");
  Shape shape;
  for (const Json& extent : list) {
    if (!extent.is_number_integer() || extent.get<std::int64_t>() < 0 ||
        extent.get<std::int64_t>() > (std::int64_t{1} << 48)) {
      fail(ErrorKind::input, place, "a shape in it is damaged");
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

// Text under a key of an object, empty where there is none.
std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The common part of two boxes; an empty extent (rank 0 with has = false) where there is none.
struct Overlap {
  bool any = true;
  Box box;
};

Overlap overlap_of(const Box& a, const Box& b) {
  Overlap result;
  for (int dim = 0; dim < a.extent.rank(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t begin = std::max(a.offset[d], b.offset[d]);
    const std::int64_t end = std::min(a.offset[d] + a.extent[dim], b.offset[d] + b.extent[dim]);
    if (end <= begin) return {false, {}};
    result.box.offset[d] = begin;
    result.box.extent.push_back(end - begin);
  }
  return result;
}

// No element of a tensor is stored twice; whether all that is wanted is stored, read() finds.
void check_cover(const StoredTensor& tensor, const std::vector<StoredSlice>& slices, std::string_view place) {
  std::int64_t whole = 1;
  for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
    if (__builtin_mul_overflow(whole, tensor.shape[dim], &whole))
      fail(ErrorKind::input, place, "tensor \"{}\": its shape is too large to be true", tensor.name);
  }
  std::int64_t stored = 0;
  for (const StoredSlice& slice : slices) {
    // Each slice is a range of a file, so no count overflows; their sum might.
    if (__builtin_add_overflow(stored, slice.box.count(), &stored)) stored = -1;
    if (stored < 0 || stored > whole) break;
  }
  if (stored < 0 || stored > whole) {
    fail(ErrorKind::input, place, "tensor \"{}\": its slices hold more than its {} elements", tensor.name,
         whole);
  }
  constexpr std::size_t most_slices = 4096;
  if (slices.size() > most_slices)
    fail(ErrorKind::input, place, "tensor \"{}\" is cut into {} slices, more than {}", tensor.name,
         slices.size(), most_slices);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (slices[i].box.count() > 0 && overlap_of(slices[i].box, slices[j].box).any)
        fail(ErrorKind::input, place, "tensor \"{}\": two of its slices overlap", tensor.name);
    }
  }
}

// One box on its way from a slice to device memory.
struct Target {
  const LogicalTensor* tensor = nullptr;
  Box wanted;  // in logical coordinates
  Box place;   // in tensor->local
};

// A slice that is to be read, and where its elements go.
struct SliceRead {
  const StoredSlice* slice = nullptr;
  const SafetensorsFile* file = nullptr;
  DType dtype = DType::float32;
  std::uint64_t begin = 0;  // in the file
  std::uint64_t end = 0;
  std::vector<Target> targets;
};

// Takes a slice's bytes as they come. A target that is the whole slice, of its type and contiguous, is filled
// piece by piece; for any other the slice is gathered in host memory first.
class SliceFiller {
 public:
  SliceFiller(Device& device, const SliceRead& read) : device_(device), read_(read) {
    for (const Target& target : read.targets) {
      const Tensor view = view_of_box(target.tensor->local, target.place);
      if (target.wanted == read.slice->box && view.dtype == read.dtype && view.is_contiguous()) {
        whole_.emplace_back(view.address, DType::uint8, Shape{static_cast<std::int64_t>(view.bytes())});
      } else {
        parts_.push_back(&target);
      }
    }
    if (!parts_.empty()) gathered_.resize(read.end - read.begin);
  }

  void add(std::span<const std::byte> bytes) {
    hasher_.update(bytes);
    const auto begin = static_cast<std::int64_t>(done_);
    for (const Tensor& to : whole_) {
      const Tensor part = to.sliced(0, begin, begin + static_cast<std::int64_t>(bytes.size()));
      device_.copy_to_device(QueueKind::compute, part, bytes.data());
    }
    if (!whole_.empty()) device_.synchronize(QueueKind::compute);
    if (!parts_.empty()) std::memcpy(gathered_.data() + done_, bytes.data(), bytes.size());
    done_ += bytes.size();
  }

  // Copies what waited for the whole slice. Returns the slice's checksum.
  std::string finish() {
    for (const Target* target : parts_) {
      const BoxCopy copy{gathered_, read_.dtype, read_.slice->box, target->wanted};
      copy_box_to_device(device_, copy, target->tensor->local, target->place);
    }
    return hasher_.hex();
  }

 private:
  Device& device_;
  const SliceRead& read_;
  Hasher hasher_;
  std::vector<Tensor> whole_;  // as bytes
  std::vector<const Target*> parts_;
  std::vector<std::byte> gathered_;
  std::uint64_t done_ = 0;
};

}  // namespace

struct CheckpointReader::State {
  fs::path folder;
  PageCache cache = PageCache::keep;
  std::int64_t iteration = 0;
  Json metadata;
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::vector<StoredSlice>> slices;
  std::map<std::string, SafetensorsFile> files;

  const StoredTensor* find(const std::string& name) const;
  void load_index();
  void load_tensor(const std::string& name, const Json& row, const std::string& place);
  void open_file(const std::string& name, std::uint64_t size);
  const SafetensorsEntry& entry_of(const StoredSlice& slice) const;
  std::vector<SliceRead> find_slices(const std::vector<LogicalTensor>& to) const;
  void check_sum(const StoredSlice& slice, const std::string& found) const;
};

const StoredTensor* CheckpointReader::State::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

void CheckpointReader::State::load_index() {
  const fs::path index_path = folder / checkpoint_index;
  const std::string place = index_path.string();
  const std::string text = read_file(index_path, index_limit);
  const std::string marker = read_file(folder / checkpoint_marker, 1024);
  if (marker != hash_hex(text) + "\n") {
    fail(ErrorKind::input, place,
         "does not match its checksum in {}; the checkpoint is damaged, load another one", checkpoint_marker);
  }
  const Json index = Json::parse(text, nullptr, false);
  if (!index.is_object() || text_of(index, "format") != "megalith-checkpoint" || !index.contains("tensors") ||
      !index["tensors"].is_object() || !index.contains("files") || !index["files"].is_object() ||
      !index.contains("iteration") || !index["iteration"].is_number_integer() ||
      index["iteration"].get<std::int64_t>() < 0) {
    fail(ErrorKind::input, place, "is no index of a Megalith checkpoint");
  }
  const Json version = index.value("version", Json());
  if (version != 1) {
    fail(ErrorKind::input, place, "has version {}, this program reads version 1", version.dump());
  }
  iteration = index["iteration"].get<std::int64_t>();
  metadata = index.value("metadata", Json::object());
  if (!metadata.is_object()) fail(ErrorKind::input, place, "its metadata is no JSON object");
  for (const auto& [name, size] : index["files"].items()) {
    if (!size.is_number_unsigned()) fail(ErrorKind::input, place, "the size of {} is damaged", name);
    open_file(name, size.get<std::uint64_t>());
  }
  for (const auto& [name, row] : index["tensors"].items()) load_tensor(name, row, place);
}

void CheckpointReader::State::open_file(const std::string& name, std::uint64_t size) {
  if (name.find('/') != std::string::npos || name == "..") {
    fail(ErrorKind::input, folder.string(), "its index names \"{}\", a file outside the checkpoint", name);
  }
  const fs::path path = folder / name;
  std::error_code code;
  const std::uint64_t found = fs::file_size(path, code);
  if (code) fail(ErrorKind::input, path.string(), "is missing from the checkpoint: {}", code.message());
  if (found != size)
    fail(ErrorKind::input, path.string(), "is {} bytes long, its index says {}", found, size);
  files.emplace(name, SafetensorsFile(path));
}

void CheckpointReader::State::load_tensor(const std::string& name, const Json& row,
                                          const std::string& place) {
  if (!row.is_object() || !row.contains("shape") || !row.contains("slices") || !row["slices"].is_array() ||
      !row.value("dtype", Json()).is_string()) {
    fail(ErrorKind::input, place, "the row of tensor \"{}\" is damaged", name);
  }
  StoredTensor tensor{name, element_type(row["dtype"].get<std::string>(), place),
                      shape_of(row["shape"], place)};
  for (const Json& item : row["slices"]) {
    if (!item.is_object()) fail(ErrorKind::input, place, "a slice of tensor \"{}\" is damaged", name);
    StoredSlice slice;
    slice.file = text_of(item, "file");
    slice.key = text_of(item, "key");
    slice.checksum = text_of(item, "xxh3");
    slice.box.extent = shape_of(item.value("extent", Json()), place);
    const Shape offset = shape_of(item.value("offset", Json()), place);
    bool inside = slice.box.extent.rank() == tensor.shape.rank() && offset.rank() == tensor.shape.rank();
    for (int dim = 0; inside && dim < offset.rank(); ++dim) {
      slice.box.offset[static_cast<std::size_t>(dim)] = offset[dim];
      inside = offset[dim] + slice.box.extent[dim] <= tensor.shape[dim];
    }
    if (!inside) fail(ErrorKind::input, place, "a slice of tensor \"{}\" lies outside it", name);
    const auto file = files.find(slice.file);
    const SafetensorsEntry* entry = file == files.end() ? nullptr : file->second.find(slice.key);
    if (entry == nullptr || entry->dtype != tensor.dtype || !(entry->shape == slice.box.extent)) {
      fail(ErrorKind::input, place, "tensor \"{}\": {} does not hold the slice \"{}\" as described", name,
           slice.file, slice.key);
    }
    slices[name].push_back(slice);
  }
  check_cover(tensor, slices[name], place);
  tensors.push_back(std::move(tensor));
}

const SafetensorsEntry& CheckpointReader::State::entry_of(const StoredSlice& slice) const {
  return *files.at(slice.file).find(slice.key);
}

void CheckpointReader::State::check_sum(const StoredSlice& slice, const std::string& found) const {
  if (found == slice.checksum) return;
  fail(ErrorKind::input, (folder / slice.file).string(),
       "tensor \"{}\" has checksum {}, its index says {}; the file is damaged, load another checkpoint",
       slice.key, found, slice.checksum);
}

std::vector<SliceRead> CheckpointReader::State::find_slices(const std::vector<LogicalTensor>& to) const {
  std::map<const StoredSlice*, SliceRead> reads;
  for (const LogicalTensor& tensor : to) {
    const StoredTensor* stored = find(tensor.name);
    for (const ShardPiece& piece : tensor.pieces) {
      std::int64_t filled = 0;
      for (const StoredSlice& slice : slices.at(tensor.name)) {
        const Overlap common = overlap_of(piece.global, slice.box);
        if (!common.any) continue;
        Target target{&tensor, common.box, common.box};
        for (int dim = 0; dim < common.box.extent.rank(); ++dim) {
          const auto d = static_cast<std::size_t>(dim);
          target.place.offset[d] += piece.local.offset[d] - piece.global.offset[d];
        }
        SliceRead& read = reads[&slice];
        if (read.slice == nullptr) {
          const SafetensorsEntry& entry = entry_of(slice);
          read.slice = &slice;
          read.file = &files.at(slice.file);
          read.dtype = stored->dtype;
          read.begin = read.file->position(entry);
          read.end = read.begin + (entry.end - entry.begin);
        }
        read.targets.push_back(target);
        filled += common.box.count();
      }
      if (filled != piece.global.count()) {
        fail(ErrorKind::input, folder.string(), "tensor \"{}\": only {} of {} elements are stored",
             tensor.name, filled, piece.global.count());
      }
    }
  }
  std::vector<SliceRead> list;
  for (auto& [slice, read] : reads) list.push_back(std::move(read));
  std::sort(list.begin(), list.end(), [](const SliceRead& a, const SliceRead& b) {
    return std::tie(a.slice->file, a.begin, a.slice->key) < std::tie(b.slice->file, b.begin, b.slice->key);
  });
  return list;
}

CheckpointReader::CheckpointReader(const fs::path& path, std::int64_t iteration, PageCache cache)
    : state_(std::make_unique<State>()) {
  state_->cache = cache;
  state_->folder = choose_folder(path, iteration);
  state_->load_index();
}

CheckpointReader::~CheckpointReader() = default;
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;

const fs::path& CheckpointReader::folder() const {
  return state_->folder;
}
std::int64_t CheckpointReader::iteration() const {
  return state_->iteration;
}
const Json& CheckpointReader::metadata() const {
  return state_->metadata;
}
const std::vector<StoredTensor>& CheckpointReader::tensors() const {
  return state_->tensors;
}
bool CheckpointReader::contains(const std::string& name) const {
  return state_->slices.contains(name);
}

void CheckpointReader::check_shape(const std::string& name, const Shape& shape) const {
  const std::string place = state_->folder.string();
  const StoredTensor* stored = state_->find(name);
  if (stored == nullptr) fail(ErrorKind::input, place, "holds no tensor \"{}\"", name);
  if (stored->shape == shape) return;
  fail(ErrorKind::input, place,
       "tensor \"{}\" has shape {}, this model needs {}; load it with the config it was saved with", name,
       stored->shape.to_string(), shape.to_string());
}

void CheckpointReader::read(Device& device, const std::vector<LogicalTensor>& to) const {
  for (const LogicalTensor& tensor : to) check_shape(tensor.name, tensor.logical_shape);
  const std::vector<SliceRead> reads = state_->find_slices(to);
  std::vector<FilePart> parts;
  for (const SliceRead& read : reads) {
    const fs::path path = state_->folder / read.slice->file;
    // Neighbours are one part, so that no block is read twice.
    if (!parts.empty() && parts.back().path == path && parts.back().end == read.begin) {
      parts.back().end = read.end;
    } else {
      parts.push_back({path, read.file->bytes(), read.begin, read.end});
    }
  }
  BulkReader bulk(parts, state_->cache);
  std::span<const std::byte> piece;
  for (const SliceRead& read : reads) {
    SliceFiller filler(device, read);
    for (std::uint64_t left = read.end - read.begin; left > 0;) {
      if (piece.empty()) piece = bulk.next();
      const std::size_t part = std::min<std::uint64_t>(left, piece.size());
      filler.add(piece.first(part));
      piece = piece.subspan(part);
      left -= part;
    }
    state_->check_sum(*read.slice, filler.finish());
  }
}

}  // namespace megalith
