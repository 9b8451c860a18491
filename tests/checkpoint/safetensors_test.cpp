#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

std::string with_length(const std::string& header, const std::string& data) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  return file + header + data;
}

TEST(Safetensors, WritesWhatItReads) {
  const TemporaryFolder folder;
  const std::vector<float> numbers{1.5F, -2.0F, 3.25F, 0.0F, 1e30F, -1e-30F};
  const std::string header = safetensors_header(
      {{"x", DType::float32, {2, 3}, 0, 0}, {"empty", DType::bfloat16, {0, 4}, 0, 0}}, {{"format", "pt"}});
  const std::string content(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  write_file_atomically(folder.path() / "a.safetensors", header + content);
  const SafetensorsFile file(folder.path() / "a.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_NE(file.find("x"), nullptr);
  EXPECT_EQ(file.find("x")->shape, (Shape{2, 3}));
  EXPECT_EQ(file.find("y"), nullptr);
  const std::span<const std::byte> data = file.data(*file.find("x"));
  ASSERT_EQ(data.size(), numbers.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(data.data(), numbers.data(), data.size()), 0);
  EXPECT_EQ(file.data(*file.find("empty")).size(), 0U);
}

struct BadFile {
  const char* why;
  std::string content;
  const char* message;
};

class SafetensorsBadInput : public testing::TestWithParam<BadFile> {};

TEST_P(SafetensorsBadInput, IsRefusedWithTheReason) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "bad.safetensors";
  write_file_atomically(path, GetParam().content);
  try {
    const SafetensorsFile file(path);
    FAIL() << GetParam().why;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("bad.safetensors"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, SafetensorsBadInput,
    testing::Values(
        BadFile{"empty", "", "too short"}, BadFile{"short", "abc", "too short"},
        BadFile{"header longer than the file", std::string("\xff\xff\x00\x00\x00\x00\x00\x00{}", 10),
                "claims a header"},
        BadFile{"header length of 2^63", std::string("\x00\x00\x00\x00\x00\x00\x00\x80{}", 10),
                "claims a header"},
        BadFile{"no JSON", with_length("{nope", ""), "no JSON object"},
        BadFile{"a list", with_length("[1]", ""), "no JSON object"},
        BadFile{"no dtype", with_length(R"({"x":{"shape":[1],"data_offsets":[0,4]}})", "abcd"),
                "expected dtype"},
        BadFile{"unknown type",
                with_length(R"({"x":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}})", "abcd"),
                "\"F4\" is not supported"},
        BadFile{"type is a number",
                with_length(R"({"x":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", "abcd"),
                "not supported"},
        BadFile{"negative extent",
                with_length(R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "abcd"),
                "expected a whole number"},
        BadFile{
            "overflowing shape",
            with_length(R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""),
            "too large"},
        BadFile{"cut short", with_length(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "abcd"),
                "cut short"},
        BadFile{"offsets backwards",
                with_length(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "abcd"),
                "do not hold"},
        BadFile{"size and shape differ",
                with_length(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd"),
                "do not hold"},
        BadFile{
            "overlap",
            with_length(
                R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                "abcd"),
            "overlap"},
        BadFile{"too many dimensions",
                with_length(R"({"x":{"dtype":"U8","shape":[1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "a"),
                "at most 6"}));

TEST(Safetensors, FlippedBitsNeverCrash) {
  const std::string good = with_length(
      R"({"x":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"y":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
      "abcdefghijk");
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "flipped.safetensors";
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    for (int flips = 0; flips <= round % 3; ++flips)
      bad[random() % bad.size()] ^= static_cast<char>(1U << (random() % 8));
    if (round % 5 == 0) bad.resize(random() % bad.size());
    write_file_atomically(path, bad);
    try {
      const SafetensorsFile file(path);
      for (const SafetensorsEntry& entry : file.entries()) EXPECT_LE(file.data(entry).size(), bad.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace megalith
