#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/files.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

class InspectTest : public testing::Test {
 protected:
  // Runs the program; returns its exit status and what it printed.
  std::pair<int, std::string> run(const std::string& flags) {
    const std::string output = (folder.path() / "out").string();
    const int status = std::system(
        (std::string(MEGALITH_BINARY) + " " + flags + " > " + output + " 2>&1 < /dev/null").c_str());
    return {WEXITSTATUS(status), read_file(output)};
  }

  TemporaryFolder folder;
};

TEST_F(InspectTest, ShowsTheModelThatTheFlagsDescribe) {
  const auto [status, text] =
      run("inspect --config " MEGALITH_SOURCE_DIR "/configs/gpt2-124m.toml --vocab-size 50257");
  EXPECT_EQ(status, 0) << text;
  EXPECT_NE(text.find("124439808 parameters"), std::string::npos) << "GPT-2's published count\n" << text;
  EXPECT_NE(text.find("decoder.layers.11.mlp.linear_fc2.weight"), std::string::npos);
}

TEST_F(InspectTest, ShowsACheckpointWithoutAnyFlag) {
  const std::string save = (folder.path() / "run").string();
  const auto [trained, log] =
      run("train --num-layers 1 --hidden-size 8 --num-attention-heads 2 --seq-length 4 --vocab-size 17 "
          "--micro-batch-size 1 "
          "--train-iters 2 --lr 1e-3 --mock-data --num-threads 1 --save " +
          save);
  ASSERT_EQ(trained, 0) << log;
  const auto [status, text] = run("inspect " + save);
  EXPECT_EQ(status, 0) << text;
  EXPECT_NE(text.find("iteration 2"), std::string::npos) << text;
  EXPECT_NE(text.find("embedding.word_embeddings.weight"), std::string::npos) << text;
}

TEST_F(InspectTest, NeedsOneOrTheOther) {
  EXPECT_EQ(run("inspect").first, 2);
}

}  // namespace
}  // namespace megalith
