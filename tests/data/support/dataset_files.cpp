#include "tests/data/support/dataset_files.h"

#include <stdlib.h>

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
