#include "train/tensorboard_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

// TensorBoard reads the files of a folder in the order of their names.
TEST(TensorboardWriter, ALaterFileComesLaterByName) {
  const TemporaryFolder folder;
  const std::string early = "events.out.tfevents.4000000000.zebra.99999.7";
  write_file_atomically(folder.path() / early, "");
  for (int start = 0; start < 3; ++start) TensorboardWriter(folder.path(), 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[0], early);
  EXPECT_TRUE(names[1].starts_with("events.out.tfevents.4000000001.")) << names[1];
  EXPECT_TRUE(names[3].starts_with("events.out.tfevents.4000000003.")) << names[3];
}

TEST(TensorboardWriter, ANameThatHoldsNoTimeIsLeftAlone) {
  const TemporaryFolder folder;
  for (const char* name :
       {"events.out.tfevents.", "events.out.tfevents.x", "events.out.tfevents.99999999999999999999.a"}) {
    write_file_atomically(folder.path() / name, "");
  }
  TensorboardWriter writer(folder.path(), 0);
  writer.write(1, 1.0, {{"lm loss", 2.0}});
  EXPECT_EQ(records_in(folder.path()), 2U);
}

}  // namespace
}  // namespace megalith
