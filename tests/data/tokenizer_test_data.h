// Where the data sets for tests are: MEGALITH_TEST_DATA, else ../shared/data beside the source folder.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace megalith {

/// Empty where there are none; such tests skip.
inline std::filesystem::path tokenizer_test_data() {
  const char* named = std::getenv("MEGALITH_TEST_DATA");
  const std::filesystem::path folder = named != nullptr
                                           ? std::filesystem::path(named)
                                           : std::filesystem::path(MEGALITH_SOURCE_DIR) / "../shared/data";
  return std::filesystem::is_directory(folder / "tokenizers") ? folder : std::filesystem::path();
}

}  // namespace megalith
