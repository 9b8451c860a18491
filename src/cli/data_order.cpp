// megalith data order: the samples that a run would train on, in order, so that they can be compared and
// looked at.
#include <cstdio>

#include "cli/command.h"
#include "core/error.h"
#include "data/dataset.h"

namespace megalith {
namespace {

class DataOrderCommand : public Command {
 public:
  std::string name() const override { return "data order"; }
  std::string summary() const override {
    return "Print the samples of a run in the order in which it trains on them";
  }

  void declare(Schema& schema) override {
    schema.section("data", "The data flags of a run");
    schema
        .add("data_path", &options_.data_path, std::vector<std::string>{},
             "PREFIX, or WEIGHT PREFIX WEIGHT PREFIX ...")
        .metavar("PREFIX");
    schema
        .add("train_data_path", &options_.train_data_path, std::vector<std::string>{},
             "The same, for training alone")
        .metavar("PREFIX");
    schema
        .add("valid_data_path", &options_.valid_data_path, std::vector<std::string>{},
             "The same, for validation alone")
        .metavar("PREFIX");
    schema
        .add("test_data_path", &options_.test_data_path, std::vector<std::string>{},
             "The same, for testing alone")
        .metavar("PREFIX");
    schema.add("split", &options_.split, std::string("969,30,1"),
               "Weights of the training, validation and test sets");
    schema.add("data_cache_path", &options_.data_cache_path, std::string(), "Folder for index files")
        .metavar("FOLDER");
    schema
        .add("seq_length", &options_.seq_length, std::int64_t{1024}, "Tokens of a sample, less the last one")
        .at_least(1);
    schema.add("seed", &seed_, std::int64_t{1234}, "Seed of the shuffles").at_least(0).at_most(4294967295.0);
    schema
        .add("train_samples", &options_.train_samples, std::int64_t{0},
             "Training samples that the run asks for")
        .at_least(0);
    schema
        .add("valid_samples", &options_.valid_samples, std::int64_t{0},
             "Validation samples that the run asks for")
        .at_least(0);
    schema.add("test_samples", &options_.test_samples, std::int64_t{0}, "Test samples that the run asks for")
        .at_least(0);
    schema.section("output", "What to print: a line for each sample, the set's name and its token numbers");
    schema.add("set", &set_, std::string("all"), "Sets to print").one_of({"all", "train", "valid", "test"});
    schema.add("first", &first_, std::int64_t{0}, "Number of the first sample to print").at_least(0);
    schema.add("count", &count_, std::int64_t{-1}, "Samples to print of each set; -1: all").at_least(-1);
    schema.epilogue(
        "Example: the first ten samples of a run of 1000\n"
        "  megalith data order --data-path corpus_text_document --seq-length 128 --train-samples 1000 \\\n"
        "      --count 10\n");
  }

  int run(Schema& /*schema*/, Log& messages) override {
    options_.seed = static_cast<std::uint64_t>(seed_);
    const DatasetSplits splits = build_datasets(options_, messages);
    print_set("train", splits.train.get());
    print_set("valid", splits.valid.get());
    print_set("test", splits.test.get());
    return 0;
  }

 private:
  void print_set(const std::string& set, const SampleSource* source) const {
    if (source == nullptr || (set_ != "all" && set_ != set)) return;
    const std::int64_t end =
        count_ < 0 || count_ > source->size() - first_ ? source->size() : first_ + count_;
    std::vector<Token> tokens(static_cast<std::size_t>(options_.seq_length) + 1);
    std::string line;
    for (std::int64_t i = first_; i < end; ++i) {
      source->read(i, tokens);
      line = set;
      for (const Token token : tokens) {
        line += ' ';
        line += std::to_string(token);
      }
      line += '\n';
      if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return;
    }
  }

  DatasetOptions options_;
  std::int64_t seed_ = 0;
  std::string set_;
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_data_order_command() {
  return std::make_unique<DataOrderCommand>();
}

}  // namespace megalith
