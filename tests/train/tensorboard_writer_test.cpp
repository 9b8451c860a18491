#include "train/tensorboard_writer.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

std::size_t records_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = read_file(entry.path());
    for (std::size_t place = 0; place + 16 <= text.size();) {
      std::size_t length = 0;
      for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(text[place + i]);
      place += 16 + length;
      EXPECT_LE(place, text.size());
      ++count;
    }
  }
  return count;
}

TEST(TensorboardWriter, Crc32cKnownAnswers) {
  // RFC 3720, section B.4, and the customary check value.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(TensorboardWriter, AResumedRunCutsBack) {
  const TemporaryFolder folder;
  {
    TensorboardWriter writer(folder.path(), 0);
    for (std::int64_t step = 1; step <= 300; ++step)
      writer.write(step, 1.0, {{"lm loss", 2.0}, {"grad-norm", 1.0}});
  }
  EXPECT_EQ(records_in(folder.path()), 301U);
  {
    TensorboardWriter writer(folder.path(), 200);
    writer.write(201, 2.0, {{"lm loss", 2.0}});
  }
  EXPECT_EQ(records_in(folder.path()), 201U + 2U);
}

}  // namespace
}  // namespace megalith
