// gpt_logits CHECKPOINT DEVICE TYPE OUTPUT: reads token lists from standard input, one a line, all of one
// length of at most the model's positions, and writes the logits after every token: [lines, length,
// vocabulary] from one pass over each whole line, then the same from the cache of keys and values, one token
// at a time. OUTPUT is raw little-endian float64.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>

#include "core/error.h"
#include "generate/loaded_model.h"
#include "model/gpt_inference.h"
#include "tests/model/support/tiny_gpt.h"

namespace {

using namespace megalith;

std::vector<std::vector<std::int32_t>> read_lines() {
  std::vector<std::vector<std::int32_t>> lines;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream words(text);
    std::vector<std::int32_t> line;
    for (std::int32_t token = 0; words >> token;) line.push_back(token);
    lines.push_back(std::move(line));
  }
  return lines;
}

void put(std::ofstream& file, double value) {
  for (const std::byte byte : std::as_bytes(std::span(&value, 1))) file.put(static_cast<char>(byte));
}

void write_whole_pass(Device& device, const LoadedModel& model, std::ofstream& file,
                      const std::vector<std::vector<std::int32_t>>& lines) {
  GptConfig config = model.config;
  config.sequence = static_cast<std::int64_t>(lines.front().size());
  GptStage stage(device, config, *model.store, StageRange::whole(config), {1, 1, false, false});
  testing::Batches batches(device, config, 1);
  std::vector<std::int32_t> positions;
  for (std::int32_t i = 0; i < config.sequence; ++i) positions.push_back(i);
  const std::vector<double> mask(positions.size(), 1.0);
  for (const std::vector<std::int32_t>& line : lines) {
    batches.upload(line, line, positions, mask, {0}, 1.0);
    stage.forward(0, batches.batch(), Pass::evaluation);
    const std::vector<double> padded = testing::logits_of(device, config, *model.store, stage);
    for (std::int64_t row = 0; row < config.sequence; ++row) {
      for (std::int64_t i = 0; i < config.vocabulary; ++i) {
        put(file, padded[static_cast<std::size_t>(row * config.padded_vocabulary + i)]);
      }
    }
  }
}

void write_cached(Device& device, const LoadedModel& model, std::ofstream& file,
                  const std::vector<std::vector<std::int32_t>>& lines) {
  GptInference inference(device, model.config, *model.store,
                         {1, static_cast<std::int64_t>(lines.front().size()), 4});
  for (const std::vector<std::int32_t>& line : lines) {
    inference.reset();
    for (const std::int32_t token : line) {
      const std::vector<std::vector<std::int32_t>> step = {{token}};
      inference.step(step);
      for (const float logit : inference.logits().first(static_cast<std::size_t>(model.config.vocabulary))) {
        put(file, static_cast<double>(logit));
      }
    }
  }
}

void run(std::span<char*> arguments) {
  const auto device = testing::open_device(arguments[2]);
  const LoadedModel model = load_model(*device, arguments[1], 0, dtype_from_name(arguments[3]), {});
  const std::vector<std::vector<std::int32_t>> lines = read_lines();
  if (lines.empty()) fail(ErrorKind::usage, "gpt_logits", "no tokens on standard input");
  std::ofstream file(arguments[4], std::ios::binary);
  write_whole_pass(*device, model, file, lines);
  write_cached(*device, model, file, lines);
  if (!file.flush()) fail(ErrorKind::environment, arguments[4], "cannot be written");
}

}  // namespace

int main(int count, char** values) {
  if (count != 5) {
    std::fputs("usage: gpt_logits CHECKPOINT DEVICE TYPE OUTPUT < TOKENS\n", stderr);
    return 2;
  }
  try {
    run(std::span(values, static_cast<std::size_t>(count)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpt_logits: %s\n", error.what());
    return 1;
  }
  return 0;
}
