// .idx and .bin: the first four bytes say how long the .idx part is, the rest is .bin.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "data/dataset.h"
#include "data/indexed_dataset.h"
#include "tests/data/support/fuzz_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace megalith;
  if (size < 4) return 0;
  std::uint32_t length = 0;
  std::memcpy(&length, data, 4);
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  static const test::FuzzFolder folder;
  const std::string prefix = folder / "fuzz";
  test::FuzzFolder::write(prefix + ".idx", text.substr(0, std::min<std::size_t>(length, text.size())));
  test::FuzzFolder::write(prefix + ".bin", text.substr(std::min<std::size_t>(length, text.size())));
  try {
    const IndexedDataset dataset(prefix);
    const IndexedDatasetReport report = dataset.verify(50000);
    bool readable = true;
    for (std::int64_t i = 0; i < dataset.sequences(); ++i) {
      try {
        dataset.read(i, 50000);
      } catch (const Error&) {
        readable = false;
      }
    }
    // verify() and read() must agree on what is damaged.
    if (report.problem_count == 0 && !readable) __builtin_trap();
    DatasetOptions options;
    options.data_path = {prefix};
    options.split = "2,1,1";
    options.seq_length = 3;
    options.vocab_size = 50000;
    options.train_samples = 10;
    options.valid_samples = 2;
    options.test_samples = 2;
    static std::FILE* const nowhere = std::fopen("/dev/null", "w");
    Log log(nowhere);
    const DatasetSplits splits = build_datasets(options, log);
    std::vector<Token> tokens(4);
    for (std::int64_t i = 0; i < splits.train->size(); ++i) splits.train->read(i, tokens);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) __builtin_trap();
  }
  return 0;
}
