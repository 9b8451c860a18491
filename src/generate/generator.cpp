#include "generate/generator.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "generate/text_stream.h"

namespace megalith {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<Token> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt, std::size_t number,
                                 std::int64_t context) {
  std::vector<Token> tokens = tokenizer.encode(prompt);
  if (tokens.empty()) {
    if (tokenizer.eod() < 0) {
      fail(ErrorKind::usage, "generate",
           "prompt {} is empty and this tokenizer has no end-of-document token to start from", number + 1);
    }
    tokens.push_back(tokenizer.eod());
  }
  if (static_cast<std::int64_t>(tokens.size()) >= context) {
    fail(ErrorKind::usage, "generate",
         "prompt {} has {} tokens, which leaves no room in a context of {}; shorten it", number + 1,
         tokens.size(), context);
  }
  return tokens;
}

// One prompt under way in a row of the batch.
struct Row {
  std::size_t prompt = 0;
  TextStream stream;
  bool running = true;
};

class BatchRun {
 public:
  BatchRun(GptInference& inference, const InferenceCapacity& capacity, const Tokenizer& tokenizer,
           const GenerateOptions& options, const TextSink& sink)
      : inference_(inference),
        capacity_(capacity),
        tokenizer_(tokenizer),
        options_(options),
        sink_(sink),
        sampler_(options.sampling) {}

  // Prompts [first, first + count) of `prompts`.
  void run(const std::vector<std::vector<Token>>& prompts, std::size_t first, std::size_t count,
           std::vector<Generated>& results) {
    inference_.reset();
    std::vector<std::vector<Token>> input(static_cast<std::size_t>(capacity_.sequences));
    std::vector<Row> rows;
    for (std::size_t i = 0; i < count; ++i) {
      rows.push_back({first + i, TextStream(tokenizer_, options_.stop_strings, prompts[first + i])});
      rows.back().running = options_.max_new_tokens > 0;
      if (!rows.back().running) continue;
      input[i] = prompts[first + i];
      times_.prompt_tokens += static_cast<std::int64_t>(input[i].size());
    }
    double began = now_seconds();
    bool is_prompt = true;
    while (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.running; })) {
      inference_.step(input);
      if (is_prompt) began = take_time(times_.prompt_seconds, began);
      const auto vocabulary = inference_.logits().size() / static_cast<std::size_t>(capacity_.sequences);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        input[i].clear();
        if (!rows[i].running) continue;
        advance(rows[i], results[rows[i].prompt], inference_.logits().subspan(i * vocabulary, vocabulary),
                input[i], inference_.length(static_cast<std::int64_t>(i)));
        if (!is_prompt) ++times_.new_tokens;
      }
      is_prompt = false;
    }
    take_time(times_.new_seconds, began);
  }

  const GenerationTimes& times() const { return times_; }

 private:
  // Adds the time since `began`; gives the time now.
  static double take_time(double& seconds, double began) {
    const double now = now_seconds();
    seconds += now - began;
    return now;
  }

  void advance(Row& row, Generated& result, std::span<const float> logits, std::vector<Token>& next,
               std::int64_t length) {
    const Token token =
        sampler_.choose(logits.first(static_cast<std::size_t>(std::min<std::int64_t>(
                            static_cast<std::int64_t>(logits.size()), tokenizer_.vocab_size()))),
                        row.prompt, static_cast<std::uint64_t>(result.new_tokens));
    if (options_.stop_at_eod && token == tokenizer_.eod())
      return finish(row, result, StopReason::end_of_document);
    ++result.new_tokens;
    show(row, result, row.stream.push(token));
    if (row.stream.stopped()) return finish(row, result, StopReason::stop_string);
    if (result.new_tokens >= options_.max_new_tokens) return finish(row, result, StopReason::length);
    if (length >= capacity_.context) return finish(row, result, StopReason::context_full);
    next.push_back(token);
  }

  void finish(Row& row, Generated& result, StopReason reason) {
    result.reason = reason;
    row.running = false;
    if (reason != StopReason::stop_string) show(row, result, row.stream.finish());
  }

  void show(const Row& row, Generated& result, const std::string& text) {
    if (text.empty()) return;
    result.text += text;
    if (sink_) sink_(row.prompt, text);
  }

  GptInference& inference_;
  InferenceCapacity capacity_;
  const Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  const TextSink& sink_;
  Sampler sampler_;
  GenerationTimes times_;
};

}  // namespace

std::vector<Generated> generate_text(GptInference& inference, const InferenceCapacity& capacity,
                                     const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                     const GenerateOptions& options, const TextSink& sink,
                                     GenerationTimes* times) {
  std::vector<std::vector<Token>> tokens;
  std::vector<Generated> results(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    tokens.push_back(prompt_tokens(tokenizer, prompts[i], i, capacity.context));
    results[i].prompt_tokens = static_cast<std::int64_t>(tokens[i].size());
  }
  BatchRun run(inference, capacity, tokenizer, options, sink);
  const auto batch = static_cast<std::size_t>(capacity.sequences);
  for (std::size_t first = 0; first < prompts.size(); first += batch) {
    run.run(tokens, first, std::min(batch, prompts.size() - first), results);
  }
  if (times != nullptr) *times = run.times();
  return results;
}

std::string_view name_of(StopReason reason) {
  switch (reason) {
    case StopReason::length:
      return "length";
    case StopReason::end_of_document:
      return "end_of_document";
    case StopReason::stop_string:
      return "stop_string";
    case StopReason::context_full:
      return "context_full";
  }
  return "";
}

}  // namespace megalith
