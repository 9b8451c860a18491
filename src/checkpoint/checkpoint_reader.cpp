// CheckpointReader: finds the slices that overlap what is wanted and copies the common boxes.
#include <algorithm>
#include <map>
#include <set>
#include <system_error>

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

}  // namespace

struct CheckpointReader::State {
  fs::path folder;
  std::int64_t iteration = 0;
  Json metadata;
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::vector<StoredSlice>> slices;
  std::map<std::string, SafetensorsFile> files;
  std::set<const StoredSlice*> verified;

  const StoredTensor* find(const std::string& name) const;
  void load_index();
  void load_tensor(const std::string& name, const Json& row, const std::string& place);
  void open_file(const std::string& name, std::uint64_t size);
  const SafetensorsEntry& entry_of(const StoredSlice& slice) const;
  void verify(const StoredSlice& slice);
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

void CheckpointReader::State::verify(const StoredSlice& slice) {
  if (verified.contains(&slice)) return;
  const std::string found = hash_hex(files.at(slice.file).data(entry_of(slice)));
  if (found != slice.checksum) {
    fail(ErrorKind::input, (folder / slice.file).string(),
         "tensor \"{}\" has checksum {}, its index says {}; the file is damaged, load another checkpoint",
         slice.key, found, slice.checksum);
  }
  verified.insert(&slice);
}

CheckpointReader::CheckpointReader(const fs::path& path, std::int64_t iteration)
    : state_(std::make_unique<State>()) {
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

void CheckpointReader::read(Device& device, const LogicalTensor& to) const {
  const std::string place = state_->folder.string();
  check_shape(to.name, to.logical_shape);
  const StoredTensor* stored = state_->find(to.name);
  for (const ShardPiece& piece : to.pieces) {
    std::int64_t filled = 0;
    for (const StoredSlice& slice : state_->slices.at(to.name)) {
      const Overlap common = overlap_of(piece.global, slice.box);
      if (!common.any) continue;
      state_->verify(slice);
      const BoxCopy copy{state_->files.at(slice.file).data(state_->entry_of(slice)), stored->dtype, slice.box,
                         common.box};
      Box target = common.box;
      for (int dim = 0; dim < target.extent.rank(); ++dim) {
        const auto d = static_cast<std::size_t>(dim);
        target.offset[d] += piece.local.offset[d] - piece.global.offset[d];
      }
      copy_box_to_device(device, copy, to.local, target);
      filled += common.box.count();
    }
    if (filled != piece.global.count()) {
      fail(ErrorKind::input, place, "tensor \"{}\": only {} of {} elements are stored", to.name, filled,
           piece.global.count());
    }
  }
}

}  // namespace megalith
