// Whole runs of a tiny model on random data: cut and resumed, stopped, misconfigured.
#include "train/trainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/files.h"
#include "core/train_schema.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }  // NOLINT(cppcoreguidelines-owning-memory)
};

class TrainerTest : public testing::TestWithParam<const char*> {
 protected:
  // Trains with the flags of a tiny model and `flags`; a later flag wins.
  RunResult train(const std::string& flags) {
    std::vector<std::string> arguments;
    std::istringstream words(
        "--num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 8 --max-position-embeddings 8 "
        "--vocab-size 61 "
        "--micro-batch-size 2 --global-batch-size 4 --train-iters 12 --lr 1e-2 --lr-warmup-iters 3 "
        "--lr-decay-style cosine "
        "--mock-data --log-interval 1 --eval-interval 4 --eval-iters 2 --num-threads 1 " +
        std::string(GetParam()) + " " + flags);
    for (std::string word; words >> word;) arguments.push_back(word);
    TrainOptions options;
    Schema schema("train", "test");
    declare_train_settings(schema, options);
    schema.parse(arguments);
    const std::unique_ptr<std::FILE, FileCloser> sink(std::fopen((folder.path() / "log").c_str(), "w"));
    Log log(sink.get());
    Trainer trainer(options, schema.effective_toml(), log);
    return trainer.run();
  }
  std::string run_at(const std::string& name) const { return (folder.path() / name).string(); }
  std::string log_text() const { return read_file(folder.path() / "log"); }

  // metrics.jsonl without the figures that depend on the clock.
  static std::vector<std::string> metrics(const std::string& run) {
    std::vector<std::string> rows;
    std::istringstream lines(read_file(fs::path(run) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json row = nlohmann::json::parse(line);
      for (const char* clocked : {"elapsed_ms", "tokens_per_second", "tflops_per_device"}) row.erase(clocked);
      rows.push_back(row.dump());
    }
    return rows;
  }

  TemporaryFolder folder;
};

INSTANTIATE_TEST_SUITE_P(Devices, TrainerTest,
                         testing::Values("--device reference", "--device reference --fp64",
                                         "--device reference --strict", "--device cpu",
                                         "--device cpu --bf16"));

TEST_P(TrainerTest, ACutAndResumedRunEqualsTheUncutOneToTheLastBit) {
  train("--save " + run_at("whole"));
  // Cut twice, once between two logged lines.
  train("--save " + run_at("cut") + " --exit-interval 5");
  train("--save " + run_at("cut") + " --load " + run_at("cut") + " --exit-interval 7");
  train("--save " + run_at("cut") + " --load " + run_at("cut"));
  EXPECT_EQ(metrics(run_at("cut")), metrics(run_at("whole")));
  EXPECT_EQ(metrics(run_at("whole")).size(), 12U);
  const std::string shard = "iter_0000012/model-00001-of-00001.safetensors";
  EXPECT_EQ(read_file(fs::path(run_at("cut")) / shard), read_file(fs::path(run_at("whole")) / shard))
      << "weights and moments";
}

TEST_P(TrainerTest, CheckpointsWrittenBesideTheTrainingAreTheSame) {
  const std::string flags = " --save-interval 3 --save-retain 3 ";
  train("--save " + run_at("whole") + flags);
  train("--save " + run_at("beside") + flags + "--async-save");
  EXPECT_NE(log_text().find("training waited"), std::string::npos) << log_text();
  EXPECT_NE(log_text().find("host memory of --async-save: planned"), std::string::npos) << log_text();
  EXPECT_EQ(committed_iterations(run_at("beside")), (std::vector<std::int64_t>{6, 9, 12}));
  for (const char* iteration : {"iter_0000006", "iter_0000009", "iter_0000012"}) {
    const fs::path shard = fs::path(iteration) / "model-00001-of-00001.safetensors";
    EXPECT_EQ(read_file(fs::path(run_at("beside")) / shard), read_file(fs::path(run_at("whole")) / shard))
        << iteration;
  }
  EXPECT_EQ(metrics(run_at("beside")), metrics(run_at("whole")));
  const std::string cut = "--save " + run_at("cut") + " --save-interval 2 --async-save ";
  train(cut + "--exit-interval 5");
  EXPECT_EQ(committed_iterations(run_at("cut")), (std::vector<std::int64_t>{2, 4, 5}));
  train(cut + "--load " + run_at("cut"));
  EXPECT_EQ(metrics(run_at("cut")), metrics(run_at("whole")));
}

TEST_P(TrainerTest, IntervalMeansSurviveACut) {
  train("--save " + run_at("whole") + " --log-interval 4 --eval-interval 6");
  train("--save " + run_at("cut") + " --log-interval 4 --eval-interval 6 --exit-interval 6");
  train("--save " + run_at("cut") + " --load " + run_at("cut") + " --log-interval 4 --eval-interval 6");
  EXPECT_EQ(metrics(run_at("cut")), metrics(run_at("whole")));
}

TEST_P(TrainerTest, GoingBackToAnOlderCheckpointLeavesNoIterationTwice) {
  train("--save " + run_at("run") + " --save-interval 4");
  const std::vector<std::string> first = metrics(run_at("run"));
  train("--save " + run_at("run") + " --load " + run_at("run") + " --ckpt-step 4");
  EXPECT_EQ(metrics(run_at("run")), first);
}

TEST_P(TrainerTest, GoingBackSetsLaterCheckpointsAside) {
  const std::string run = "--save " + run_at("run") + " --save-interval 2 --save-retain 1 ";
  train(run + "--save-retain 0");
  train(run + "--load " + run_at("run") + " --ckpt-step 4 --exit-interval 6");
  EXPECT_EQ(committed_iterations(run_at("run")), std::vector<std::int64_t>{6})
      << "retention kept the new course";
  EXPECT_TRUE(is_committed(fs::path(run_at("run")) / "iter_0000012.superseded"));
  EXPECT_EQ(CheckpointReader(fs::path(run_at("run")) / "iter_0000012.superseded").iteration(), 12);
  EXPECT_EQ(CheckpointReader(run_at("run")).iteration(), 6);
  train(run + "--load " + run_at("run"));
  EXPECT_EQ(committed_iterations(run_at("run")), std::vector<std::int64_t>{12});
}

TEST_P(TrainerTest, AnotherRunsLaterCheckpointsAndFilesAreLeftAlone) {
  train("--save " + run_at("run"));
  train("--save " + run_at("other") + " --train-iters 6");
  const std::string config = read_file(fs::path(run_at("run")) / "config.toml");
  const std::vector<std::string> rows = metrics(run_at("run"));
  for (const std::string& flags :
       {" --load " + run_at("other"), " --load " + run_at("run") + " --finetune",
        " --load " + run_at("nothing"), " --load " + run_at("run") + " --num-layers 3"}) {
    EXPECT_THROW(train("--save " + run_at("run") + flags + " --train-iters 20"), Error) << flags;
  }
  EXPECT_EQ(read_file(fs::path(run_at("run")) / "config.toml"), config);
  EXPECT_EQ(metrics(run_at("run")), rows);
  EXPECT_EQ(committed_iterations(run_at("run")), std::vector<std::int64_t>{12});
}

TEST_P(TrainerTest, AProfileRecordsItsIterationsAndChangesNoBit) {
  train("--save " + run_at("plain"));
  train("--save " + run_at("traced") + " --profile --profile-step-start 3 --profile-step-end 5");
  EXPECT_EQ(metrics(run_at("traced")), metrics(run_at("plain")));
  EXPECT_FALSE(fs::exists(fs::path(run_at("plain")) / "trace.json"));
  EXPECT_NE(log_text().find("profile of 2 iterations"), std::string::npos) << log_text();

  struct Span {
    double begin = 0;
    double end = 0;
  };
  const auto trace = nlohmann::json::parse(read_file(fs::path(run_at("traced")) / "trace.json"));
  std::map<std::string, int> names;
  std::vector<Span> regions;
  std::vector<Span> kernels;
  double iterations = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    const double begin = event.at("ts");
    const double duration = event.at("dur");
    const std::string name = event.at("name");
    ++names[name];
    (event.at("tid") == 0 ? regions : kernels).push_back({begin, begin + duration});
    if (name == "iteration") iterations += duration;
  }
  EXPECT_EQ(names["iteration"], 2);
  EXPECT_EQ(names["optimizer"], 2);
  EXPECT_EQ(names["logging"], 2);
  EXPECT_EQ(names["evaluation"], 1) << "iteration 4 is evaluated";
  EXPECT_EQ(names["backward"], 4) << "two microbatches a step";
  EXPECT_EQ(names["adamw"], 2 * 28) << "an update of every parameter";
  constexpr double rounding_us = 1e-2;
  for (const Span& a : regions) {
    for (const Span& b : regions) {
      const bool apart = a.end <= b.begin + rounding_us || b.end <= a.begin + rounding_us;
      const bool inside = (a.begin >= b.begin - rounding_us && a.end <= b.end + rounding_us) ||
                          (b.begin >= a.begin - rounding_us && b.end <= a.end + rounding_us);
      EXPECT_TRUE(apart || inside);
    }
  }
  double work = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    work += kernels[i].end - kernels[i].begin;
    if (i > 0) {
      EXPECT_GE(kernels[i].begin + rounding_us, kernels[i - 1].end);
    }
  }
  EXPECT_LE(work, iterations);
}

TEST_P(TrainerTest, TheLastIterationFinishesTheRunWhateverTheExitInterval) {
  EXPECT_EQ(train("--save " + run_at("run") + " --exit-interval 6").end, RunEnd::exit_interval);
  EXPECT_EQ(train("--save " + run_at("run") + " --load " + run_at("run") + " --exit-interval 6").end,
            RunEnd::finished);
}

TEST_P(TrainerTest, TheLossFalls) {
  const RunResult result = train("--save " + run_at("run") + " --train-iters 60 --eval-interval 60");
  ASSERT_TRUE(result.validation_loss.has_value());
  EXPECT_LT(*result.validation_loss, 4.2) << "ln 61 = 4.11 is the loss of a uniform guess over random tokens";
  EXPECT_EQ(result.iteration, 60);
}

TEST_P(TrainerTest, ALossThatIsNotFiniteStopsWithTheLastGoodCheckpoint) {
  try {
    train("--save " + run_at("run") +
          " --save-interval 2 --lr 1e30 --lr-warmup-iters 0 --train-iters 50 --clip-grad 0");
    FAIL() << "a learning rate of 1e30 trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::training);
    EXPECT_NE(std::string(error.what()).find("not finite at iteration"), std::string::npos) << error.what();
  }
}

TEST_P(TrainerTest, FinetuneTakesWeightsOnly) {
  train("--save " + run_at("first"));
  train("--save " + run_at("second") + " --load " + run_at("first") +
        " --finetune --train-iters 3 --lr-warmup-iters 0 --seed 5");
  EXPECT_EQ(metrics(run_at("second")).size(), 3U);
  EXPECT_EQ(committed_iterations(run_at("second")), std::vector<std::int64_t>{3});
}

TEST_P(TrainerTest, WhatDoesNotFitIsRefused) {
  train("--save " + run_at("run"));
  const auto message = [&](const std::string& flags) -> std::string {
    try {
      train(flags);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string load = "--save " + run_at("run") + " --load " + run_at("run") + " --train-iters 20 ";
  EXPECT_NE(message("--save " + run_at("run")).find("already holds checkpoints"), std::string::npos);
  EXPECT_NE(message(load + "--num-layers 3").find("num_layers: 2 in the checkpoint, 3 in this run"),
            std::string::npos);
  EXPECT_NE(message(load + "--seed 99").find("--no-load-rng"), std::string::npos);
  EXPECT_NE(message(load + "--optimizer sgd").find("--no-load-optim"), std::string::npos);
  EXPECT_NE(message(load + "--ckpt-step 11").find("no checkpoint of iteration 11"), std::string::npos);
  EXPECT_EQ(message(load + "--seed 99 --no-load-rng --override-opt-param-scheduler"), "accepted");
}

TEST_P(TrainerTest, OtherDataThanTheCheckpointsAreSaid) {
  const std::string run = "--save " + run_at("run") + " --max-position-embeddings 16 ";
  train(run + "--exit-interval 5");
  train(run + "--load " + run_at("run") + " --exit-interval 7");
  EXPECT_EQ(log_text().find("the data are not those"), std::string::npos);
  train(run + "--load " + run_at("run") + " --seq-length 16");
  EXPECT_NE(log_text().find("seq_length was 8, is 16"), std::string::npos);
}

TEST_P(TrainerTest, AMissingCheckpointStartsAfreshOnlyWhereAllowed) {
  train("--load " + run_at("nothing") + " --save " + run_at("run") + " --train-iters 2 --lr-warmup-iters 0");
  EXPECT_NE(log_text().find("holds no checkpoint"), std::string::npos);
  EXPECT_THROW(
      train("--load " + run_at("nothing") + " --save " + run_at("other") + " --exit-on-missing-checkpoint"),
      Error);
}

TEST_P(TrainerTest, RampUpAndGradientAccumulationConsumeWhatTheySay) {
  train("--save " + run_at("run") +
        " --global-batch-size 6 --rampup-batch-size 2 2 8 --train-samples 40 --train-iters 0 " +
        "--lr-warmup-iters 0");
  const std::vector<std::string> rows = metrics(run_at("run"));
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(nlohmann::json::parse(rows.front())["global_batch_size"], 2);
  EXPECT_EQ(nlohmann::json::parse(rows.back())["global_batch_size"], 6);
}

TEST(StopRequest, TheFirstSignalIsKept) {
  StopRequest stop;
  EXPECT_EQ(stop.signal(), 0);
  ::kill(::getpid(), SIGTERM);
  // `timeout` sends a signal to the process and to its group: the repeat is the same request, not a second
  // one.
  ::kill(::getpid(), SIGTERM);
  for (int i = 0; i < 200 && stop.signal() == 0; ++i) ::usleep(10'000);
  EXPECT_EQ(stop.signal(), SIGTERM);
}

}  // namespace
}  // namespace megalith
