#include <gtest/gtest.h>

#include <numeric>

#include "core/bulk_reader.h"
#include "core/bulk_writer.h"
#include "core/error.h"
#include "core/files.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

constexpr std::size_t block = BlockPool::block_bytes;

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 2654435761U >> 13U);
  return text;
}

std::string read_all(BulkReader& reader) {
  std::string text;
  for (std::span<const std::byte> piece = reader.next(); !piece.empty(); piece = reader.next()) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return text;
}

TEST(BulkFile, FilesOfAnyLengthAreWrittenWhole) {
  const TemporaryFolder folder;
  const std::vector<std::size_t> lengths{0, 1, 4095, 4096, block, block + 1, 3 * block - 1, 40 * block + 77};
  BlockPool pool;
  BulkWriter writer(pool);
  for (const std::size_t length : lengths) {
    const std::string content = pattern(length);
    writer.begin_file(folder.path() / std::to_string(length), length);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(content));
    writer.write(bytes.first(length / 3));
    writer.write(bytes.subspan(length / 3));
    writer.end_file();
  }
  writer.finish();
  for (const std::size_t length : lengths) {
    EXPECT_EQ(read_file(folder.path() / std::to_string(length)), pattern(length)) << length;
  }
  EXPECT_LE(pool.touched_bytes(), BlockPool::lean_blocks * block);
}

TEST(BulkFile, AWriterThatIsLeftGivesItsBlocksBack) {
  const TemporaryFolder folder;
  const std::string content = pattern(20 * block + 5);
  BlockPool pool;
  for (int round = 0; round < 3; ++round) {
    BulkWriter writer(pool);
    writer.begin_file(folder.path() / "file", 100 * block);
    writer.write(std::as_bytes(std::span(content)));
  }
  EXPECT_LE(pool.touched_bytes(), BlockPool::lean_blocks * block);
  EXPECT_THROW(BulkWriter(pool).begin_file(folder.path() / "missing" / "file", 1), Error);
}

TEST(BulkFile, PartsAreReadInTheirOrder) {
  const TemporaryFolder folder;
  const std::string content = pattern(20 * block + 123);
  write_file_atomically(folder.path() / "a", content);
  write_file_atomically(folder.path() / "b", content.substr(7));
  const MappedFile a(folder.path() / "a");
  const MappedFile b(folder.path() / "b");
  const std::vector<FilePart> parts{{folder.path() / "b", b.bytes(), 3, 5000},
                                    {folder.path() / "a", a.bytes(), block - 1, content.size()},
                                    {folder.path() / "a", a.bytes(), 17, 17},
                                    {folder.path() / "b", b.bytes(), 2 * block + 1, 4 * block}};
  std::string expected;
  for (const FilePart& part : parts) {
    expected.append(reinterpret_cast<const char*>(part.map.data()) + part.begin, part.end - part.begin);
  }
  for (const PageCache cache : {PageCache::bypass, PageCache::keep}) {
    BulkReader reader(parts, cache);
    EXPECT_EQ(read_all(reader), expected);
    EXPECT_TRUE(reader.next().empty());
    // One that is left in the middle ends all the same.
    BulkReader left(parts, cache);
    EXPECT_FALSE(left.next().empty());
  }
  EXPECT_TRUE(BulkReader({}, PageCache::keep).next().empty());
}

TEST(BulkFile, AFileThatHasBecomeShorterIsAnError) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "file";
  write_file_atomically(path, pattern(3 * block));
  const MappedFile map(path);
  std::filesystem::resize_file(path, block + 5);
  BulkReader reader({{path, map.bytes(), 10, 3 * block}}, PageCache::bypass);
  EXPECT_THROW(read_all(reader), Error);
}

}  // namespace
}  // namespace megalith
