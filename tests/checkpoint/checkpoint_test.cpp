#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <numeric>

#include "checkpoint/checkpoint_saver.h"
#include "core/error.h"
#include "core/files.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

// A tensor [rows, columns] in device memory with `stored_rows` rows, numbered from `start`; padding rows are
// -1.
class Sample {
 public:
  Sample(Device& device, const std::string& name, std::int64_t rows, std::int64_t columns,
         std::int64_t stored_rows, float start)
      : device_(device), memory_(device, static_cast<std::size_t>(stored_rows * columns) * sizeof(float)) {
    const ShardMap map = ShardMap::whole({rows, columns}, stored_rows);
    tensor_ = {name, {rows, columns}, map.pieces, memory_.tensor(DType::float32, {stored_rows, columns})};
    std::vector<float> values(static_cast<std::size_t>(stored_rows * columns), -1.0F);
    std::iota(values.begin(), values.begin() + rows * columns, start);
    put(values);
  }
  const LogicalTensor& tensor() const { return tensor_; }
  void put(const std::vector<float>& values) {
    device_.copy_to_device(QueueKind::compute, tensor_.local, values.data());
    device_.synchronize(QueueKind::compute);
  }
  std::vector<float> get() const {
    std::vector<float> values(static_cast<std::size_t>(tensor_.local.count()));
    device_.copy_to_host(QueueKind::compute, values.data(), tensor_.local);
    device_.synchronize(QueueKind::compute);
    return values;
  }

 private:
  Device& device_;
  DeviceMemory memory_;
  LogicalTensor tensor_;
};

class CheckpointTest : public testing::TestWithParam<bool> {
 protected:
  CheckpointTest() : device(make_device({"reference", 1, GetParam(), 1})), root(folder.path() / "run") {}

  void save(std::int64_t iteration, const std::vector<LogicalTensor>& tensors,
            CheckpointSaveOptions options = {}) {
    options.root = root;
    options.iteration = iteration;
    save_checkpoint(*device, options, {{"note", iteration}}, tensors);
  }

  TemporaryFolder folder;
  std::unique_ptr<Device> device;
  fs::path root;
};

INSTANTIATE_TEST_SUITE_P(Strict, CheckpointTest, testing::Bool());

TEST_P(CheckpointTest, GivesBackWhatWasSaved) {
  Sample a(*device, "a", 5, 3, 8, 10);
  Sample b(*device, "b", 1, 7, 1, 100);
  CheckpointSaveOptions small_shards;
  small_shards.shard_bytes = 40;
  save(7, {a.tensor(), b.tensor()}, small_shards);
  const std::vector<float> before = a.get();
  Sample again(*device, "a", 5, 3, 5, 0);
  const CheckpointReader reader(root);
  EXPECT_EQ(reader.iteration(), 7);
  EXPECT_EQ(reader.metadata()["note"], 7);
  EXPECT_EQ(reader.tensors().size(), 2U);
  reader.read(*device, {again.tensor()});
  EXPECT_EQ(again.get(), std::vector<float>(before.begin(), before.begin() + 15))
      << "padding rows are not stored";
  EXPECT_TRUE(fs::exists(root / "iter_0000007/model-00002-of-00002.safetensors"));
}

TEST_P(CheckpointTest, SlicesOfOneLayoutFillAnother) {
  // Columns 0-1 and 2-4 saved as two slices (as two tensor-parallel ranks would); read as rows 0-1 and 2-3.
  Sample left(*device, "w", 4, 2, 4, 0);
  Sample right(*device, "w", 4, 3, 4, 50);
  LogicalTensor first{"w", {4, 5}, {{{{0, 0}, {4, 2}}, {{0, 0}, {4, 2}}}}, left.tensor().local};
  LogicalTensor second{"w", {4, 5}, {{{{0, 2}, {4, 3}}, {{0, 0}, {4, 3}}}}, right.tensor().local};
  save(1, {first, second});
  Sample rows(*device, "w", 2, 5, 2, 0);
  const CheckpointReader reader(root);
  for (std::int64_t half = 0; half < 2; ++half) {
    reader.read(*device, {{"w", {4, 5}, {{{{half * 2, 0}, {2, 5}}, {{0, 0}, {2, 5}}}}, rows.tensor().local}});
    std::vector<float> expected;
    for (std::int64_t row = half * 2; row < half * 2 + 2; ++row) {
      for (std::int64_t column = 0; column < 5; ++column) {
        expected.push_back(static_cast<float>(column < 2 ? row * 2 + column : 50 + row * 3 + column - 2));
      }
    }
    EXPECT_EQ(rows.get(), expected);
  }
  // A strided target: the slice lands in the middle columns of a wider tensor.
  Sample wide(*device, "w", 4, 7, 4, -100);
  std::vector<float> expected = wide.get();
  reader.read(*device, {{"w", {4, 5}, {{{{0, 1}, {4, 3}}, {{0, 2}, {4, 3}}}}, wide.tensor().local}});
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 1; column < 4; ++column) {
      expected[row * 7 + column + 1] =
          static_cast<float>(column < 2 ? row * 2 + column : 50 + row * 3 + column - 2);
    }
  }
  EXPECT_EQ(wide.get(), expected);
}

TEST_P(CheckpointTest, MissingPartsAreAnError) {
  Sample half(*device, "w", 2, 2, 2, 0);
  LogicalTensor upper{"w", {4, 2}, {{{{0, 0}, {2, 2}}, {{0, 0}, {2, 2}}}}, half.tensor().local};
  save(1, {upper});
  Sample whole(*device, "w", 4, 2, 4, 0);
  const CheckpointReader reader(root);
  EXPECT_THROW(reader.read(*device, {whole.tensor()}), Error);
  Sample other(*device, "absent", 4, 2, 4, 0);
  EXPECT_THROW(reader.read(*device, {other.tensor()}), Error);
  Sample shape(*device, "w", 3, 2, 3, 0);
  EXPECT_THROW(reader.read(*device, {shape.tensor()}), Error);
}

TEST_P(CheckpointTest, TheNewestCommittedCounts) {
  Sample a(*device, "a", 2, 2, 2, 0);
  for (const std::int64_t iteration : {5, 10, 20}) save(iteration, {a.tensor()});
  EXPECT_EQ(committed_iterations(root), (std::vector<std::int64_t>{5, 10, 20}));
  fs::remove(root / "iter_0000020" / checkpoint_marker);
  EXPECT_EQ(CheckpointReader(root).iteration(), 10);
  EXPECT_EQ(CheckpointReader(root, 5).iteration(), 5);
  EXPECT_EQ(CheckpointReader(root / "iter_0000005").iteration(), 5);
  EXPECT_THROW(CheckpointReader(root, 7), Error);
  EXPECT_THROW(CheckpointReader(root / "iter_0000020"), Error);
  EXPECT_THROW(CheckpointReader(folder.path() / "nothing"), Error);
}

TEST_P(CheckpointTest, RetentionKeepsTheNewestAndTheMilestones) {
  Sample a(*device, "a", 2, 2, 2, 0);
  for (std::int64_t iteration = 1; iteration <= 7; ++iteration) {
    CheckpointSaveOptions options;
    options.retain = 2;
    options.retain_interval = 3;
    save(iteration, {a.tensor()}, options);
  }
  EXPECT_EQ(committed_iterations(root), (std::vector<std::int64_t>{3, 6, 7}));
}

TEST_P(CheckpointTest, SavingAnIterationAgainReplacesIt) {
  Sample a(*device, "a", 2, 2, 2, 0);
  save(5, {a.tensor()});
  a.put({9, 9, 9, 9});
  save(5, {a.tensor()});
  Sample again(*device, "a", 2, 2, 2, 0);
  CheckpointReader(root).read(*device, {again.tensor()});
  EXPECT_EQ(again.get(), (std::vector<float>{9, 9, 9, 9}));
  EXPECT_EQ(std::distance(fs::directory_iterator(root), fs::directory_iterator()), 2)
      << "folder and the latest file";
}

TEST_P(CheckpointTest, LeftoversOfACrashAreCleared) {
  Sample a(*device, "a", 2, 2, 2, 0);
  fs::create_directories(root / "iter_0000003.writing-99");
  fs::create_directories(root / "iter_0000002.removing");
  fs::create_directories(root / "tensorboard");
  save(5, {a.tensor()});
  EXPECT_FALSE(fs::exists(root / "iter_0000003.writing-99"));
  EXPECT_FALSE(fs::exists(root / "iter_0000002.removing"));
  EXPECT_TRUE(fs::exists(root / "tensorboard"));
}

TEST_P(CheckpointTest, DamageIsFoundAndNamed) {
  Sample a(*device, "a", 64, 4, 64, 0);
  save(5, {a.tensor()});
  const fs::path shard = root / "iter_0000005/model-00001-of-00001.safetensors";
  const std::string good = read_file(shard);
  for (const std::size_t place : {good.size() - 1, good.size() - 700}) {
    std::string bad = good;
    bad[place] ^= 1;
    write_file_atomically(shard, bad);
    const CheckpointReader reader(root);
    try {
      reader.read(*device, {a.tensor()});
      ADD_FAILURE() << "a flipped bit was not found";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("damaged"), std::string::npos) << error.what();
    }
  }
  write_file_atomically(shard, good.substr(0, good.size() - 5));
  EXPECT_THROW(CheckpointReader{root}, Error);
  fs::remove(shard);
  EXPECT_THROW(CheckpointReader{root}, Error);
  write_file_atomically(shard, good);
  std::string index = read_file(root / "iter_0000005" / checkpoint_index);
  index[index.find("\"a\"") + 1] = 'b';
  write_file_atomically(root / "iter_0000005" / checkpoint_index, index);
  EXPECT_THROW(CheckpointReader{root}, Error);
}

TEST_P(CheckpointTest, BlocksAndFilesCutTensorsAnywhere) {
  // Blocks hold 1 MiB; float64 elements behind an odd number of float32 lie across their boundaries.
  Sample odd(*device, "odd", 3, 333'333, 3, 0);
  Sample other(*device, "other", 1, 777'777, 1, 50);
  const Shape shape{500'000};
  const DeviceMemory memory(*device, 500'000 * sizeof(double));
  const Tensor wide = memory.tensor(DType::float64, shape);
  std::vector<double> values(500'000);
  std::iota(values.begin(), values.end(), 0.25);
  device->copy_to_device(QueueKind::compute, wide, values.data());
  const LogicalTensor doubles{"doubles", shape, ShardMap::whole(shape).pieces, wide};
  for (const std::uint64_t shard_bytes : {std::uint64_t{1} << 40, std::uint64_t{4} << 20}) {
    CheckpointSaveOptions options;
    options.shard_bytes = shard_bytes;
    save(1, {odd.tensor(), doubles, other.tensor()}, options);
    for (const PageCache cache : {PageCache::bypass, PageCache::keep, PageCache::keep}) {
      Sample odd_again(*device, "odd", 3, 333'333, 3, -9);
      Sample other_again(*device, "other", 1, 777'777, 1, -9);
      device->fill(QueueKind::compute, wide, -1.0);
      CheckpointReader(root, 0, cache).read(*device, {other_again.tensor(), doubles, odd_again.tensor()});
      EXPECT_EQ(odd_again.get(), odd.get());
      EXPECT_EQ(other_again.get(), other.get());
      std::vector<double> found(values.size());
      device->copy_to_host(QueueKind::compute, found.data(), wide);
      device->synchronize(QueueKind::compute);
      EXPECT_EQ(found, values);
    }
  }
}

TEST_P(CheckpointTest, StateThatChangesOnceCopiedIsSavedAsItWas) {
  // More than the blocks that a saver starts with, so that it must take memory or wait for the disk.
  constexpr std::int64_t columns = 6 << 20;
  Sample a(*device, "a", 1, columns, 1, 0);
  const std::vector<float> before = a.get();
  for (const std::size_t memory : {std::size_t{0}, std::size_t{32} << 20}) {
    a.put(before);
    CheckpointSaver saver(*device, memory);
    CheckpointSaveOptions options;
    options.root = root;
    options.iteration = 3;
    saver.wait_until_copied();
    saver.start(options, nlohmann::json::object(), {a.tensor()}, std::chrono::seconds(1000));
    saver.wait_until_copied();
    a.put(std::vector<float>(before.size(), 7.0F));
    EXPECT_TRUE(saver.is_started());
    EXPECT_GT(saver.finish().bytes, before.size() * sizeof(float));
    EXPECT_FALSE(saver.is_started());
    EXPECT_LE(saver.touched_bytes(), std::size_t{32} << 20);
    Sample again(*device, "a", 1, columns, 1, -1);
    CheckpointReader(root).read(*device, {again.tensor()});
    EXPECT_EQ(again.get(), before);
  }
}

// Files may not grow beyond a limit: what a full disk looks like to a program.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_P(CheckpointTest, ASaveThatFailsLeavesTheEarlierOneAndNothingElse) {
  Sample a(*device, "a", 1, 3 << 20, 1, 0);
  save(1, {a.tensor()});
  CheckpointSaver saver(*device, 0);
  CheckpointSaveOptions options;
  options.root = root;
  options.iteration = 2;
  {
    const FileSizeLimit limit(5 << 20);
    saver.start(options, nlohmann::json::object(), {a.tensor()}, {});
    saver.wait_until_copied();
    EXPECT_THROW(saver.finish(), Error);
    EXPECT_THROW(save(3, {a.tensor()}), Error);
  }
  EXPECT_EQ(committed_iterations(root), std::vector<std::int64_t>{1});
  EXPECT_EQ(std::distance(fs::directory_iterator(root), fs::directory_iterator()), 2)
      << "folder and the latest file";
  saver.start(options, nlohmann::json::object(), {a.tensor()}, {});
  saver.finish();
  EXPECT_EQ(CheckpointReader(root).iteration(), 2);
}

TEST_P(CheckpointTest, ASaverThatGoesWaitsForItsSave) {
  Sample a(*device, "a", 1, 3 << 20, 1, 0);
  {
    CheckpointSaver saver(*device, 0);
    CheckpointSaveOptions options;
    options.root = root;
    options.iteration = 4;
    saver.start(options, nlohmann::json::object(), {a.tensor()}, {});
  }
  EXPECT_EQ(CheckpointReader(root).iteration(), 4);
}

TEST_P(CheckpointTest, ConvertsBetweenFloatTypes) {
  Sample a(*device, "a", 2, 3, 2, 0);
  a.put({1.0F, -2.5F, 1e-3F, 3.14159F, 0.0F, 1e20F});
  save(1, {a.tensor()});
  const DeviceMemory memory(*device, 6 * sizeof(double));
  const Tensor wide = memory.tensor(DType::float64, {2, 3});
  CheckpointReader(root).read(*device, {{"a", {2, 3}, a.tensor().pieces, wide}});
  std::vector<double> values(6);
  device->copy_to_host(QueueKind::compute, values.data(), wide);
  device->synchronize(QueueKind::compute);
  const std::vector<float> narrow = a.get();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(values[i], static_cast<double>(narrow[i]));
}

}  // namespace
}  // namespace megalith
