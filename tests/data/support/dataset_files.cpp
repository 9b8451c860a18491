#include "tests/data/support/dataset_files.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "data/indexed_dataset.h"

namespace megalith::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "megalith-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

RecordingLog::RecordingLog() : stream_(std::tmpfile()), log_(stream_) {}

RecordingLog::~RecordingLog() {
  std::fclose(stream_);  // NOLINT(cppcoreguidelines-owning-memory): the owner of a C stream is this class
}

std::string RecordingLog::said() {
  std::fflush(stream_);
  std::string text(static_cast<std::size_t>(std::ftell(stream_)), '\0');
  if (std::fseek(stream_, 0, SEEK_SET) != 0) return {};
  text.resize(std::fread(text.data(), 1, text.size(), stream_));
  return text;
}

void write_dataset(const std::string& prefix, const Documents& documents) {
  IndexedDatasetBuilder builder(prefix, TokenStorage::uint16);
  for (const auto& document : documents) {
    for (const auto& sequence : document) builder.add_sequence(sequence);
    builder.end_document();
  }
  builder.finish();
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void spill(const std::filesystem::path& path, std::string_view content) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
}

std::filesystem::path vector_file(std::string_view name) {
  return std::filesystem::path(MEGALITH_SOURCE_DIR) / "tests" / "data" / "vectors" / name;
}

}  // namespace megalith::test
