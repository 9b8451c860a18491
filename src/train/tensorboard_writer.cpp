#include "train/tensorboard_writer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <ctime>

#include "core/error.h"
#include "core/files.h"

namespace megalith {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view file_prefix = "events.out.tfevents.";
// Times in file names have ten digits until then; a later one is no time.
constexpr std::int64_t far_future = 9'999'999'999;
constexpr std::size_t frame_bytes = 16;
constexpr std::size_t frame_start_bytes = 12;

// Protocol-buffer tags: field number and wire type.
constexpr char double_field(int number) {
  return static_cast<char>(number << 3 | 1);
}
constexpr char varint_field(int number) {
  return static_cast<char>(number << 3);
}
constexpr char bytes_field(int number) {
  return static_cast<char>(number << 3 | 2);
}
constexpr char float_field(int number) {
  return static_cast<char>(number << 3 | 5);
}

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t word = i;
    for (int bit = 0; bit < 8; ++bit) word = (word >> 1) ^ ((word & 1U) != 0 ? 0x82f63b78U : 0U);
    table[i] = word;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> crc_table = make_crc_table();

// TFRecord stores checksums rotated and offset, so that a checksum over data that holds checksums stays
// useful.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

template <typename T>
void put_fixed(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void put_varint(std::string& to, std::uint64_t value) {
  while (value >= 0x80) {
    to.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  to.push_back(static_cast<char>(value));
}

void put_bytes(std::string& to, int field, std::string_view bytes) {
  to.push_back(bytes_field(field));
  put_varint(to, bytes.size());
  to += bytes;
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5 }
std::string event_start(double wall_seconds, std::int64_t step) {
  std::string event;
  event.push_back(double_field(1));
  put_fixed(event, std::bit_cast<std::uint64_t>(wall_seconds));
  event.push_back(varint_field(2));
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

// Summary { repeated Value value = 1 }, Value { string tag = 1; float simple_value = 2 }
std::string summary_of(const TensorboardWriter::Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, 1, tag);
    value.push_back(float_field(2));
    put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    put_bytes(summary, 1, value);
  }
  return summary;
}

std::uint64_t read_fixed64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The step of an event laid out as event_start() does; -1 where it has none.
std::int64_t step_of(std::string_view event) {
  constexpr std::size_t step_tag = 9;
  if (event.size() <= step_tag || event[0] != double_field(1) || event[step_tag] != varint_field(2))
    return -1;
  std::uint64_t step = 0;
  for (std::size_t i = step_tag + 1, shift = 0; i < event.size() && shift < 64; ++i, shift += 7) {
    step |= (static_cast<std::uint64_t>(event[i]) & 0x7f) << shift;
    if ((event[i] & 0x80) == 0) return static_cast<std::int64_t>(step);
  }
  return -1;
}

// Records up to the first damaged one, without those of steps after keep_through.
std::string cut_back(std::string_view file, std::int64_t keep_through) {
  std::string kept;
  while (file.size() >= frame_bytes) {
    const std::uint64_t length = read_fixed64(file);
    if (length > file.size() - frame_bytes) break;
    const auto event_bytes = static_cast<std::size_t>(length);
    if (step_of(file.substr(frame_start_bytes, event_bytes)) <= keep_through) {
      kept += file.substr(0, event_bytes + frame_bytes);
    }
    file.remove_prefix(event_bytes + frame_bytes);
  }
  return kept;
}

// Returns the newest time in the files' names, in seconds since 1970.
std::int64_t cut_folder_back(const fs::path& folder, std::int64_t keep_through) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    if (entry->path().filename().string().starts_with(file_prefix)) files.push_back(entry->path());
  }
  if (code) fail(ErrorKind::environment, folder.string(), "cannot list this folder: {}", code.message());
  std::int64_t newest = 0;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    std::int64_t time = 0;
    std::from_chars(name.data() + file_prefix.size(), name.data() + name.size(), time);
    newest = std::max(newest, time);
    const std::string text = read_file(file);
    const std::string kept = cut_back(text, keep_through);
    if (kept != text) write_file_atomically(file, kept);
  }
  return newest;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t word = 0xffffffffU;
  for (const char byte : bytes)
    word = (word >> 8) ^ crc_table[(word ^ static_cast<unsigned char>(byte)) & 0xff];
  return word ^ 0xffffffffU;
}

TensorboardWriter::TensorboardWriter(const fs::path& folder, std::int64_t keep_through) {
  create_folders(folder);
  const std::int64_t newest = cut_folder_back(folder, keep_through);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  // TensorBoard reads files in the order of their names: a new one comes last even where the clock went back
  // or two runs started within a second.
  const std::int64_t now =
      newest < far_future ? std::max<std::int64_t>(std::time(nullptr), newest + 1) : std::time(nullptr);
  for (int attempt = 0; !file_.is_open(); ++attempt) {
    file_ = AppendFile(folder / format("{}{}.{}.{}.{}", file_prefix, now, host.data(), ::getpid(), attempt),
                       true);
  }
  std::string event = event_start(static_cast<double>(now), 0);
  put_bytes(event, 3, "brain.Event:2");
  append_record(event);
}

void TensorboardWriter::write(std::int64_t step, double wall_seconds, const Scalars& scalars) {
  std::string event = event_start(wall_seconds, step);
  put_bytes(event, 5, summary_of(scalars));
  append_record(event);
}

void TensorboardWriter::append_record(std::string_view event) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(event.size()));
  put_fixed(record, masked_crc(record));
  record += event;
  put_fixed(record, masked_crc(event));
  file_.append(record);
}

}  // namespace megalith
