#include "tests/cli/support/bad_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/files.h"
#include "core/format.h"
#include "core/hash.h"

namespace megalith::test {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view model_settings =
    "--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 "
    "--global-batch-size 2 --lr 1e-3 --train-iters 4 --log-interval 1 --num-threads 1 --no-progress";
constexpr std::string_view data_settings =
    "--data-path data_text_document --tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer";

void replace_all(std::string& text, std::string_view word, std::string_view by) {
  for (std::size_t place = 0; (place = text.find(word, place)) != std::string::npos; place += by.size())
    text.replace(place, word.size(), by);
}

std::string sample_text() {
  constexpr std::array<std::string_view, 8> words = {"in",    "the", "beginning", "was",
                                                     "light", "and", "darkness",  "upon"};
  std::string text;
  std::uint32_t state = 1;
  for (int line = 0; line < 200; ++line) {
    for (int word = 0; word < 10; ++word) {
      state = state * 1664525 + 1013904223;
      text += words[state >> 29];
      text += word == 9 ? "\n\n" : " ";
    }
  }
  return text;
}

}  // namespace

BadInputFolder::BadInputFolder() {
  write("text.txt", sample_text());
  write("empty", "");
  write("nul.txt", std::string_view("in the\0beginning\0", 17));
  fs::create_directory(path("folder"));
  fs::create_symlink("loop", path("loop"));
  EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0644), 0);
  const std::string wide = "--hidden-size 32";
  for (const std::string& command :
       {std::string("MEGALITH tokenizer train --input text.txt --vocab-size 280 --output tokenizer"),
        std::string("MEGALITH tokenizer train --input text.txt --vocab-size 270 --output other_tokenizer"),
        std::string(
            "MEGALITH data prepare --input text.txt --output-prefix data --sample-by paragraph --append-eod "
            "--tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer"),
        std::string("MEGALITH train TRAIN --save run --save-interval 2"),
        "MEGALITH train TRAIN " + wide + " --save other"}) {
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.output;
  }
}

std::string BadInputFolder::path(std::string_view name) const {
  return (folder_.path() / name).string();
}

std::string BadInputFolder::read(std::string_view name) const {
  return read_file(path(name));
}

void BadInputFolder::write(std::string_view name, std::string_view content) const {
  std::ofstream stream(path(name), std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
}

void BadInputFolder::copy(std::string_view from, std::string_view to) const {
  fs::remove_all(path(to));
  fs::copy(path(from), path(to), fs::copy_options::recursive);
}

void BadInputFolder::forge_index(std::string_view checkpoint, const nlohmann::json& index) const {
  const std::string text = index.dump();
  write(std::string(checkpoint) + "/index.json", text);
  write(std::string(checkpoint) + "/COMMITTED", hash_hex(text) + "\n");
}

Outcome BadInputFolder::shell(const std::string& command) const {
  std::string line = command;
  replace_all(line, "MEGALITH", "timeout -k 5 60 " MEGALITH_BINARY);
  replace_all(line, "TRAIN", std::string(model_settings) + " " + std::string(data_settings));
  replace_all(line, "MODEL", model_settings);
  Outcome outcome;
  std::FILE* pipe = ::popen(format("cd {} && {{ {}\n}} 2>&1", path(), line).c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.output.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

void BadInputFolder::expect(const std::vector<BadInput>& table) const {
  for (const BadInput& row : table) {
    const Outcome outcome = megalith(row.arguments);
    SCOPED_TRACE("megalith " + row.arguments + "\n" + outcome.output);
    EXPECT_EQ(outcome.status, row.status);
    EXPECT_THAT(outcome.output, testing::Not(testing::HasSubstr("internal error")));
    EXPECT_THAT(outcome.output, testing::Not(testing::HasSubstr("Sanitizer")));
    for (const std::string& words : row.says) EXPECT_THAT(outcome.output, testing::HasSubstr(words));
    const std::size_t first = outcome.output.find("megalith: error: ");
    if (row.status != 0) {
      EXPECT_TRUE(first != std::string::npos || outcome.output.find("damaged: ") != std::string::npos);
    }
    EXPECT_EQ(outcome.output.find("megalith: error: ", first + 1), std::string::npos) << "two messages";
  }
}

}  // namespace megalith::test
