// Files that were cut short, changed, exchanged, removed or forged: every one is refused with its name, none
// is used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "tests/cli/support/bad_input.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using test::BadInputFolder;
using test::Outcome;
using testing::HasSubstr;

/// `content` cut short at, and with bits flipped at, `count` places spread over it.
std::vector<std::string> damaged(const std::string& content, std::size_t count) {
  std::vector<std::string> results;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = i * (content.size() - 1) / (count - 1);
    results.push_back(content.substr(0, place));
    std::string flipped = content;
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << (i % 8)));
    results.push_back(flipped);
  }
  results.push_back(content + "x");
  return results;
}

constexpr const char* checkpoint = "run/iter_0000004";
constexpr const char* resume =
    "train TRAIN --load run --save resumed --train-iters 6 --override-opt-param-scheduler";

TEST(DamagedFiles, EachFileOfACheckpoint) {
  const BadInputFolder folder;
  ASSERT_EQ(folder.megalith(resume).status, 0);
  for (const std::string file : {"COMMITTED", "index.json", "model-00001-of-00001.safetensors"}) {
    const std::string name = std::string(checkpoint) + "/" + file;
    const std::string whole = folder.read(name);
    const auto refused = [&](const std::string& what) {
      const Outcome outcome = folder.megalith(resume);
      EXPECT_EQ(outcome.status, 3) << name << " " << what << "\n" << outcome.output;
      EXPECT_THAT(outcome.output, HasSubstr("megalith: error: run"));
    };
    std::size_t number = 0;
    for (const std::string& content : damaged(whole, file == "COMMITTED" ? 5 : 20)) {
      folder.write(name, content);
      refused(testing::PrintToString(number++));
    }
    for (const std::function<void(const std::string&)>& replace :
         std::vector<std::function<void(const std::string&)>>{
             [](const std::string& path) { fs::create_directory(path); },
             [](const std::string& path) { ::mkfifo(path.c_str(), 0644); },
             [](const std::string& path) { fs::create_symlink(fs::path(path).filename(), path); }}) {
      fs::remove_all(folder.path(name));
      replace(folder.path(name));
      // Without a marker that is a file the checkpoint does not exist, and the one before it is used.
      if (file == "COMMITTED") {
        EXPECT_THAT(folder.megalith(resume).output, HasSubstr("resumed from run/iter_0000002"));
        fs::remove_all(folder.path("resumed"));
      } else {
        refused("replaced");
      }
    }
    fs::remove_all(folder.path(name));
    folder.write(name, whole);
  }
  folder.copy("other/iter_0000004/model-00001-of-00001.safetensors",
              std::string(checkpoint) + "/model-00001-of-00001.safetensors");
  folder.expect({{resume, 3, {"model-00001-of-00001.safetensors", "bytes long, its index says"}}});
  folder.copy("run/iter_0000002/model-00001-of-00001.safetensors",
              std::string(checkpoint) + "/model-00001-of-00001.safetensors");
  folder.expect({{resume, 3, {"model-00001-of-00001.safetensors", "checksum", "load another checkpoint"}},
                 {"generate --load run --prompt in", 3, {"checksum"}}});
  EXPECT_EQ(folder.megalith(std::string(resume) + " --ckpt-step 2").status, 0);
}

TEST(DamagedFiles, ForgedSizesInACheckpoint) {
  const BadInputFolder folder;
  const Json index = Json::parse(folder.read(std::string(checkpoint) + "/index.json"));
  const std::string word = "/tensors/embedding.word_embeddings.weight";
  struct Forgery {
    std::string pointer;
    Json value;
    std::string says;
  };
  for (const Forgery& forgery : std::vector<Forgery>{
           {"/metadata/model/num_layers", 4294967296, "model.num_layers: 4294967296 is out of range"},
           {"/metadata/model/num_layers", 60000, "holds no tensor \"decoder.layers.1."},
           {"/metadata/model/hidden_size", 2000000000, "too large to be true"},
           {"/metadata/model/hidden_size", 1000000, "has shape [280, 16], this model needs [280, 1000000]"},
           {"/metadata/model/vocab_size", 100000000, "this model needs [100000000, 16]"},
           {"/metadata/model/vocab_size", -1, "model.vocab_size: -1 is out of range"},
           {"/metadata/model/kv_channels", 2147483647, "too large to be true"},
           {"/metadata/model/norm_epsilon", 0, "model.norm_epsilon: 0 is out of range"},
           {"/metadata/model/max_position_embeddings", 1, "less than seq_length"},
           {"/metadata/model", Json(), "describes no model"},
           {"/metadata", Json::array(), "metadata is no JSON object"},
           {word + "/shape",
            {1000000000000, 1000000000000, 1000000000000},
            "embedding.word_embeddings.weight"},
           {word + "/shape", {1073741824, 1073741824, 1073741824}, "embedding.word_embeddings.weight"},
           {word + "/slices", Json::array(), "only 0 of 4480 elements are stored"},
           {word + "/slices/0/extent", {280, 1000000000}, "lies outside it"},
           {word + "/slices/0/offset", {1, 0}, "lies outside it"},
           {word + "/slices/0/file", "../../../etc/passwd", "does not hold the slice"},
           {word + "/slices/0/file", 7, "does not hold the slice"},
           {word + "/dtype", "float99", "float99"},
           {"/files/model-00001-of-00001.safetensors", 4611686018427387904, "bytes long, its index says"},
           {"/files/..~1x", 1, "outside the checkpoint"},
           {"/version", 2, "has version 2"},
           {"/format", 5, "no index of a Megalith checkpoint"},
           {"/iteration", -4, "no index of a Megalith checkpoint"}}) {
    Json forged = index;
    forged[Json::json_pointer(forgery.pointer)] = forgery.value;
    folder.forge_index(checkpoint, forged);
    SCOPED_TRACE(forgery.pointer);
    folder.expect({{"generate --load run --prompt in", 3, {"run/iter_0000004", forgery.says}}});
  }
}

/// Every value of a JSON tree, as pointers.
void collect_places(const Json& tree, const Json::json_pointer& at, std::vector<Json::json_pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (tree.is_array()) {
    for (std::size_t i = 0; i < tree.size(); ++i) collect_places(tree[i], at / i, places);
  }
  if (tree.is_object()) {
    for (const auto& [name, value] : tree.items()) collect_places(value, at / name, places);
  }
}

// In this process, so that a sanitizer sees it too.
TEST(DamagedFiles, AnyValueOfTheIndexReplacedByAnother) {
  const BadInputFolder folder;
  const Json index = Json::parse(folder.read(std::string(checkpoint) + "/index.json"));
  Json few = index;
  few["tensors"] = {
      {"embedding.word_embeddings.weight", index["tensors"]["embedding.word_embeddings.weight"]}};
  std::vector<Json::json_pointer> places;
  collect_places(few, Json::json_pointer(), places);
  ASSERT_GT(places.size(), 50U);
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (const Json::json_pointer& place : places) {
    for (const Json& value : {Json(), Json(-1), Json(std::uint64_t{1} << 63), Json("x"), Json::array()}) {
      Json forged = index;
      forged[place] = value;
      folder.forge_index(checkpoint, forged);
      const bool is_used_to_generate = place.to_string().starts_with("/metadata");
      const std::vector<std::string> arguments =
          is_used_to_generate
              ? std::vector<std::string>{"generate",         "--load", "run",           "--prompt", "in",
                                         "--max-new-tokens", "1",      "--num-threads", "1"}
              : std::vector<std::string>{"inspect", "run"};
      testing::internal::CaptureStdout();
      testing::internal::CaptureStderr();
      const int status = run_program(arguments);
      testing::internal::GetCapturedStdout();
      const std::string said = testing::internal::GetCapturedStderr();
      // What a command does not look at may be anything; a tokenizer that is not named must be given (2).
      const bool is_tokenizer = place.to_string().starts_with("/metadata/tokenizer");
      EXPECT_TRUE(status == 0 || status == 3 || (status == 2 && is_tokenizer))
          << place.to_string() << " = " << value.dump() << ": " << arguments[0] << " gives " << status << ": "
          << said;
    }
  }
  fs::current_path(before);
}

TEST(DamagedFiles, ResumingFromForgedMetadata) {
  const BadInputFolder folder;
  const Json index = Json::parse(folder.read(std::string(checkpoint) + "/index.json"));
  std::vector<Json::json_pointer> places;
  for (const char* part : {"optimizer", "opt_param_scheduler", "rng", "interval", "consumed_train_samples"}) {
    collect_places(index["metadata"][part], Json::json_pointer("/metadata") / part, places);
  }
  for (const Json::json_pointer& place : places) {
    for (const Json& value : {Json(), Json(-1), Json(std::uint64_t{1} << 63), Json("x")}) {
      Json forged = index;
      forged[place] = value;
      folder.forge_index(checkpoint, forged);
      const Outcome outcome = folder.megalith(
          "train TRAIN --load run --save resumed --train-iters 4 --use-checkpoint-opt-param-scheduler");
      EXPECT_TRUE(outcome.status == 0 || outcome.status == 2 || outcome.status == 3)
          << place.to_string() << " = " << value.dump() << ": " << outcome.status << "\n"
          << outcome.output;
      fs::remove_all(folder.path("resumed"));
    }
  }
}

TEST(DamagedFiles, TokenizersAndDataSets) {
  const BadInputFolder folder;
  const auto survives = [&](const std::string& arguments, const std::string& what) {
    const Outcome outcome = folder.megalith(arguments);
    // A flipped bit may give another sound file, but never a crash.
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 3) << what << ": " << outcome.status << "\n"
                                                            << outcome.output;
    return outcome.status;
  };
  const std::string json = folder.read("tokenizer/tokenizer.json");
  std::size_t number = 0;
  for (const std::string& content : damaged(json.substr(0, json.find_last_of('}') + 1), 20)) {
    folder.write("spoilt.json", content);
    const int status = survives("tokenizer encode --tokenizer-model spoilt.json --text 'in the beginning'",
                                "tokenizer.json");
    EXPECT_TRUE(number % 2 != 0 || status == 3) << "cut short " << number;
    ++number;
  }
  const std::string idx = folder.read("data_text_document.idx");
  const std::string bin = folder.read("data_text_document.bin");
  for (const std::string& content : damaged(idx, 20)) {
    folder.write("spoilt.idx", content);
    folder.write("spoilt.bin", bin);
    survives("data order --data-path spoilt --seq-length 16 --train-samples 20 --count 20", "idx");
    if (content.size() != idx.size()) folder.expect({{"data inspect spoilt", 3, {"spoilt.idx"}}});
  }
  folder.write("spoilt.idx", idx);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, bin.size() / 2, bin.size() - 1}) {
    folder.write("spoilt.bin", bin.substr(0, size));
    folder.expect({{"data inspect spoilt", 3, {"spoilt.idx", "outside of the .bin file"}}});
    // The last byte belongs to the test split, which this run does not read.
    if (size + 1 < bin.size())
      folder.expect({{"train MODEL --vocab-size 280 --save x --data-path spoilt", 3, {"spoilt"}}});
  }
  // The tokenizer that lies beside a run's checkpoints is one of its files.
  folder.write("run/tokenizer/tokenizer.json", folder.read("other_tokenizer/tokenizer.json"));
  folder.expect({{"generate --load run --prompt in",
                  3,
                  {"run/iter_0000004", "another tokenizer", "280 pieces", "270 pieces"}}});
  folder.write("run/tokenizer/tokenizer.json", json.substr(0, json.size() / 2));
  folder.expect({{"generate --load run --prompt in", 3, {"run/tokenizer/tokenizer.json", "JSON"}}});
}

}  // namespace
}  // namespace megalith
