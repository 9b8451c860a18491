// megalith bench disk: a disk's sequential rates, and the share of them that checkpoints reach.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "checkpoint/checkpoint.h"
#include "cli/command.h"
#include "cli/disk_yardstick.h"
#include "core/error.h"
#include "core/files.h"
#include "device/device.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A folder of our own that goes with us.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& parent) : path_(parent / format("megalith-bench-{}", ::getpid())) {
    create_folders(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Random float32 tensors of a layer's size, in one block of device memory.
class Tensors {
 public:
  Tensors(Device& device, std::int64_t count)
      : memory_(device, static_cast<std::size_t>(count) * tensor_bytes), count_(count) {
    for (const LogicalTensor& tensor : list()) {
      InitializeNormalArgs args;
      args.to = tensor.local;
      args.row_step = columns;
      args.key = philox_key(1, tensor.name);
      device.initialize_normal(QueueKind::compute, args);
    }
    device.synchronize(QueueKind::compute);
  }
  static constexpr std::size_t tensor_bytes = std::size_t{9} << 20;

  std::vector<LogicalTensor> list() const {
    std::vector<LogicalTensor> tensors;
    const Shape shape{rows, columns};
    for (std::int64_t i = 0; i < count_; ++i) {
      tensors.push_back({format("tensor.{}", i), shape, ShardMap::whole(shape).pieces,
                         memory_.tensor(DType::float32, shape, static_cast<std::size_t>(i) * tensor_bytes)});
    }
    return tensors;
  }

 private:
  static constexpr std::int64_t rows = 3072;
  static constexpr std::int64_t columns = 768;
  DeviceMemory memory_;
  std::int64_t count_;
};

// One line of the table: what was timed, and its rounds.
struct Row {
  std::string name;
  DiskWay way;
  std::vector<double> rates;  ///< bytes per second
  void add(double bytes, double seconds) {
    if (seconds > 0) rates.push_back(bytes / seconds);
  }
  double rate() const { return rates.empty() ? 0 : median(rates); }
};

class BenchDiskCommand : public Command {
 public:
  std::string name() const override { return "bench disk"; }
  std::string summary() const override {
    return "Measure a disk, and the share of its rate that checkpoints reach";
  }

  void declare(Schema& schema) override {
    schema.positional(
        folder_, "FOLDER",
        "On the disk to measure, this one by default; a scratch folder in it is made and removed", 0, 1);
    schema.section("bench", "What to measure");
    schema.add("megabytes", &megabytes_, std::int64_t{1500}, "size of the files")
        .at_least(20)
        .at_most(1'000'000);
    schema.add("rounds", &rounds_, std::int64_t{3}, "each measured so often, in turn; medians are shown")
        .at_least(1)
        .at_most(100);
    schema.add("device", &device_, "cpu", "where the tensors of the checkpoints lie");
    schema.epilogue(
        "Writing counts fsync; reading is cold. Needs room for one file. Example:\n"
        "  megalith bench disk runs --megabytes 1500\n");
  }

  int run(Schema& /*schema*/, Log& /*messages*/) override {
    const fs::path folder = folder_.empty() ? "." : folder_.front();
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
      fail(ErrorKind::input, folder.string(), "is no folder; give one on the disk to measure");
    const ScratchFolder scratch(folder);
    const auto count =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(megabytes_) * 1'000'000 / Tensors::tensor_bytes);
    const std::uint64_t bytes = static_cast<std::uint64_t>(count) * Tensors::tensor_bytes;
    const std::unique_ptr<Device> device = make_device({device_, 0, false, 1});
    const Tensors tensors(*device, count);
    const std::vector<DiskWay> ways = {{false, 1}, {false, 2}, {true, 1}, {true, 2}, {true, 4}};
    std::vector<Row> writes;
    std::vector<Row> reads;
    for (const DiskWay& way : ways) {
      writes.push_back({name_of(way), way, {}});
      reads.push_back({name_of(way), way, {}});
    }
    Row save{"checkpoint", {}, {}};
    Row load{"checkpoint", {}, {}};
    double processor = 0;
    for (std::int64_t round = 0; round < rounds_; ++round) {
      const auto size = static_cast<double>(bytes);
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const fs::path file = scratch.path() / "file";
        writes[i].add(size, seconds_to_write(file, bytes, ways[i]));
        reads[i].add(size, seconds_to_read(file, ways[i]));
        fs::remove(file);
      }
      const CheckpointSaveReport report =
          save_checkpoint(*device, {scratch.path(), round + 1}, nlohmann::json::object(), tensors.list());
      save.add(size, report.seconds);
      processor = report.processor_seconds;
      load.add(size, seconds_to_load(*device, scratch.path(), tensors));
      fs::remove_all(scratch.path() / iteration_folder_name(round + 1));
    }
    print(format("{:.0f} MB, {} round{}, device {}\n", static_cast<double>(bytes) / 1e6, rounds_,
                 rounds_ == 1 ? "" : "s", device->description()));
    show("write", writes, save);
    print(format("  processor time of the last save {:.2f} s\n", processor));
    show("read", reads, load);
    return 0;
  }

 private:
  static double seconds_to_load(Device& device, const fs::path& root, const Tensors& tensors) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) drop_from_cache(entry.path());
    }
    const double begin = now_seconds();
    CheckpointReader(root, 0, PageCache::bypass).read(device, tensors.list());
    return now_seconds() - begin;
  }

  static void show(const char* what, const std::vector<Row>& ways, const Row& checkpoint) {
    double best = 0;
    for (const Row& row : ways) best = std::max(best, row.rate());
    const auto line = [&](const Row& row) {
      if (row.rates.empty()) return format("  {:<40} not on this file system\n", row.name);
      return format("  {:<40} {:>7.0f} MB/s {:>5.0f} %\n", row.name, row.rate() / 1e6,
                    100 * row.rate() / best);
    };
    print(format("{}\n", what));
    for (const Row& row : ways) print(line(row));
    print(line(checkpoint));
  }

  std::vector<std::string> folder_;
  std::int64_t megabytes_ = 0;
  std::int64_t rounds_ = 0;
  std::string device_;
};

}  // namespace

std::unique_ptr<Command> make_bench_disk_command() {
  return std::make_unique<BenchDiskCommand>();
}

}  // namespace megalith
