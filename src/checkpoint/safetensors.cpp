#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"

namespace megalith {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t length_bytes = 8;
// The reference implementation's own limit.
constexpr std::uint64_t header_limit = 100'000'000;
constexpr std::size_t alignment = 8;

constexpr std::array<std::pair<DType, std::string_view>, 8> type_names{{{DType::float64, "F64"},
                                                                        {DType::float32, "F32"},
                                                                        {DType::bfloat16, "BF16"},
                                                                        {DType::float16, "F16"},
                                                                        {DType::int64, "I64"},
                                                                        {DType::int32, "I32"},
                                                                        {DType::uint16, "U16"},
                                                                        {DType::uint8, "U8"}}};

std::string_view type_name(DType dtype) {
  for (const auto& [type, name] : type_names) {
    if (type == dtype) return name;
  }
  return "";
}

// A shape's product times the element size, or an error where it does not fit 63 bits.
std::uint64_t checked_bytes(const std::vector<std::uint64_t>& extents, DType dtype, std::string_view place,
                            const std::string& name) {
  std::uint64_t bytes = size_of(dtype);
  for (const std::uint64_t extent : extents) {
    std::uint64_t product = 0;
    // Beside an extent of 0 even a huge one gives no bytes.
    if (extent > (std::uint64_t{1} << 48))
      fail(ErrorKind::input, place, "tensor \"{}\": its shape is too large to be true", name);
    if (__builtin_mul_overflow(bytes, extent, &product) || product > (std::uint64_t{1} << 62)) {
      fail(ErrorKind::input, place, "tensor \"{}\": its shape is too large to be true", name);
    }
    bytes = product;
  }
  return bytes;
}

std::uint64_t unsigned_of(const Json& value, std::string_view place, const std::string& name,
                          const char* what) {
  if (!value.is_number_unsigned()) {
    fail(ErrorKind::input, place, "tensor \"{}\": {} holds {}, expected a whole number >= 0", name, what,
         value.dump());
  }
  return value.get<std::uint64_t>();
}

SafetensorsEntry parse_entry(const std::string& name, const Json& item, std::uint64_t data_bytes,
                             std::string_view place) {
  if (!item.is_object() || !item.contains("dtype") || !item.contains("shape") ||
      !item.contains("data_offsets")) {
    fail(ErrorKind::input, place, "tensor \"{}\": expected dtype, shape and data_offsets", name);
  }
  SafetensorsEntry entry;
  entry.name = name;
  const Json& type = item["dtype"];
  const auto* known = type_names.end();
  if (type.is_string()) {
    known = std::find_if(type_names.begin(), type_names.end(),
                         [&](const auto& pair) { return pair.second == type.get_ref<const std::string&>(); });
  }
  if (known == type_names.end()) {
    fail(ErrorKind::input, place, "tensor \"{}\": type {} is not supported here", name, type.dump());
  }
  entry.dtype = known->first;
  const Json& shape = item["shape"];
  if (!shape.is_array() || shape.size() > Shape::max_rank) {
    fail(ErrorKind::input, place, "tensor \"{}\": shape {} is no list of at most {} extents", name,
         shape.dump().substr(0, 80), Shape::max_rank);
  }
  std::vector<std::uint64_t> extents;
  for (const Json& extent : shape) extents.push_back(unsigned_of(extent, place, name, "shape"));
  const std::uint64_t bytes = checked_bytes(extents, entry.dtype, place, name);
  for (const std::uint64_t extent : extents) entry.shape.push_back(static_cast<std::int64_t>(extent));
  const Json& offsets = item["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) {
    fail(ErrorKind::input, place, "tensor \"{}\": data_offsets is no pair", name);
  }
  entry.begin = unsigned_of(offsets[0], place, name, "data_offsets");
  entry.end = unsigned_of(offsets[1], place, name, "data_offsets");
  if (entry.begin > entry.end || entry.end > data_bytes || entry.end - entry.begin != bytes) {
    fail(ErrorKind::input, place,
         "tensor \"{}\": bytes {} to {} do not hold {} of {} ({} bytes) in a file with {} bytes of data; the "
         "file "
         "is damaged or cut short",
         name, entry.begin, entry.end, entry.shape.to_string(), type_name(entry.dtype), bytes, data_bytes);
  }
  return entry;
}

void check_no_overlap(const std::vector<SafetensorsEntry>& entries, std::string_view place) {
  std::vector<const SafetensorsEntry*> sorted;
  for (const SafetensorsEntry& entry : entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->begin < sorted[i - 1]->end) {
      fail(ErrorKind::input, place, "tensors \"{}\" and \"{}\" overlap", sorted[i - 1]->name,
           sorted[i]->name);
    }
  }
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                                       std::string_view place,
                                                       std::map<std::string, std::string>& metadata) {
  const Json header = Json::parse(json, nullptr, false);
  if (!header.is_object()) fail(ErrorKind::input, place, "its safetensors header is no JSON object");
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, item] : header.items()) {
    if (name == "__metadata__") {
      if (!item.is_object()) fail(ErrorKind::input, place, "__metadata__ is no JSON object");
      for (const auto& [key, text] : item.items()) {
        if (text.is_string()) metadata[key] = text.get<std::string>();
      }
      continue;
    }
    entries.push_back(parse_entry(name, item, data_bytes, place));
  }
  check_no_overlap(entries, place);
  return entries;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  const std::string place = path.string();
  if (bytes.size() < length_bytes) {
    fail(ErrorKind::input, place, "is {} bytes long, too short for a safetensors file", bytes.size());
  }
  std::uint64_t header_bytes = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    header_bytes = header_bytes << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  if (header_bytes > header_limit || header_bytes > bytes.size() - length_bytes) {
    fail(ErrorKind::input, place,
         "claims a header of {} bytes in a file of {}; it is damaged or no safetensors file", header_bytes,
         bytes.size());
  }
  data_start_ = length_bytes + header_bytes;
  const std::span<const std::byte> header = bytes.subspan(length_bytes, header_bytes);
  entries_ = parse_safetensors_header({reinterpret_cast<const char*>(header.data()), header.size()},
                                      bytes.size() - data_start_, place, metadata_);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  for (const SafetensorsEntry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::span<const std::byte> SafetensorsFile::data(const SafetensorsEntry& entry) const {
  return file_.bytes().subspan(data_start_ + entry.begin, entry.end - entry.begin);
}

std::string safetensors_header(const std::vector<SafetensorsEntry>& entries,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(entry.shape.count()) * size_of(entry.dtype);
    std::vector<std::int64_t> extents;
    for (int dim = 0; dim < entry.shape.rank(); ++dim) extents.push_back(entry.shape[dim]);
    header[entry.name] = {{"dtype", type_name(entry.dtype)},
                          {"shape", extents},
                          {"data_offsets", {position, position + bytes}}};
    position += bytes;
  }
  std::string text = header.dump();
  text.append((alignment - text.size() % alignment) % alignment, ' ');
  std::string length;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  return length + text;
}

}  // namespace megalith
