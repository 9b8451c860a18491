// megalith generate: continues prompts with a trained model.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/tokenizer_flags.h"
#include "core/error.h"
#include "core/files.h"
#include "generate/generator.h"
#include "generate/loaded_model.h"

namespace megalith {
namespace {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string rate(std::int64_t tokens, double seconds) {
  return format("{} tokens in {:.2f} s ({:.1f} tokens a second)", tokens, seconds,
                static_cast<double>(tokens) / std::max(seconds, 1e-9));
}

// One prompt a line: a JSON object with "prompt" or "text", a JSON string, or the line itself.
std::vector<std::string> read_prompts(const std::string& path) {
  const std::string text = read_file(path);
  const bool is_json = path.ends_with(".jsonl") || path.ends_with(".json");
  std::vector<std::string> prompts;
  std::size_t number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string line = text.substr(start, end - start);
    start = end + 1;
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (!is_json) {
      prompts.push_back(line);
      continue;
    }
    const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
    const nlohmann::json value = !row.is_object()         ? row
                                 : row.contains("prompt") ? row["prompt"]
                                                          : row.value("text", nlohmann::json());
    if (!value.is_string()) {
      fail(ErrorKind::input, format("{}:{}", path, number),
           "expected a JSON string, or an object with a text \"prompt\"");
    }
    prompts.push_back(value.get<std::string>());
  }
  if (prompts.empty()) fail(ErrorKind::input, path, "holds no prompt; expected one a line");
  return prompts;
}

class GenerateCommand : public Command {
 public:
  std::string name() const override { return "generate"; }
  std::string summary() const override { return "Continue prompts with a trained model"; }

  void declare(Schema& schema) override {
    schema.section("model", "Which model");
    schema.add("load", &load_, std::string(), "Run folder or iter_N folder with the checkpoint")
        .required()
        .metavar("DIR")
        .completes_file();
    schema.add("ckpt_step", &ckpt_step_, std::int64_t{0}, "Iteration to load; 0: the newest").at_least(0);
    declare_tokenizer_flags(schema, tokenizer_);
    schema.section("prompts", "What to continue");
    schema.add("prompt", &prompts_, std::vector<std::string>{}, "Prompts; each value is one").metavar("TEXT");
    schema
        .add("prompt_file", &prompt_file_, std::string(),
             "Prompts, one a line; .jsonl: objects with \"prompt\" or \"text\"")
        .metavar("FILE")
        .completes_file();
    schema.section("sampling", "How to choose tokens");
    schema
        .add("max_new_tokens", &options_.max_new_tokens, std::int64_t{128},
             "Most tokens to generate for each prompt")
        .at_least(0)
        .alias("num-tokens-to-generate")
        .alias("out-seq-length");
    schema.add("greedy", &greedy_, false, "Always take the likeliest token");
    schema.add("temperature", &options_.sampling.temperature, 1.0, "Divides the logits; 0: greedy")
        .at_least(0)
        .at_most(1000);
    schema.add("top_k", &options_.sampling.top_k, std::int64_t{0}, "Keep the k likeliest tokens; 0: all")
        .at_least(0);
    schema.add("top_p", &options_.sampling.top_p, 1.0, "Keep the likeliest tokens that hold this probability")
        .more_than(0)
        .at_most(1);
    schema.add("seed", &seed_, std::int64_t{1234}, "Seed of the draws").at_least(0);
    schema
        .add("stop", &options_.stop_strings, std::vector<std::string>{},
             "Texts that end a continuation; they are not shown")
        .metavar("TEXT");
    schema.add("stop_at_eod", &options_.stop_at_eod, true, "End at the end-of-document token");
    schema.section("output", "What to print");
    schema.add("json", &json_, false, "One JSON object a prompt: prompt, text, token counts, why it ended");
    schema.add("echo", &echo_, true, "Print the prompt before its continuation");
    schema.section("device", "Where to compute");
    schema.add("device", &device_.name, std::string("cpu"), "Device").metavar("NAME");
    schema.add("num_threads", &threads_, std::int64_t{0}, "Threads; 0: all processors")
        .at_least(0)
        .at_most(4096);
    schema.add("bf16", &bf16_, false, "Compute in bfloat16");
    schema.add("micro_batch_size", &batch_, std::int64_t{8}, "Prompts computed at once")
        .at_least(1)
        .at_most(4096);
    schema.check([this, &schema](std::vector<std::string>& errors) {
      for (const char* name : {"temperature", "top_k", "top_p"}) {
        if (greedy_ && schema.setting(name).origin() == SettingOrigin::flag) {
          errors.push_back(format(
              "{}: contradicts --greedy, which always takes the likeliest token; leave one out", name));
        }
      }
      if (prompts_.empty() == prompt_file_.empty()) {
        errors.emplace_back("prompt: give either --prompt TEXT... or --prompt-file FILE");
      }
    });
    schema.epilogue(
        "One prompt is streamed as it is written. Each prompt's draws depend on the seed and its own number "
        "only.\n"
        "Example:\n"
        "  megalith generate --load runs/bible --prompt \"In the beginning\" --top-p 0.9 --temperature "
        "0.8\n");
  }

  int run(Schema& /*schema*/, Log& messages) override {
    const std::vector<std::string> prompts = prompt_file_.empty() ? prompts_ : read_prompts(prompt_file_);
    device_.threads = static_cast<int>(threads_);
    const std::unique_ptr<Device> device = make_device(device_);
    const DType compute = bf16_ ? DType::bfloat16 : DType::float32;
    if (!device->supports(compute)) {
      fail(ErrorKind::usage, "bf16", "the {} device does not compute in {}", device->name(),
           name_of(compute));
    }
    const LoadedModel model =
        load_model(*device, load_, ckpt_step_, compute, with_tokenizer_type(tokenizer_));
    if (!model.tokenizer) {
      fail(ErrorKind::usage, "generate",
           "the checkpoint names no tokenizer; give --tokenizer-type and its files");
    }
    messages.line(format("{}: iteration {}, {} parameters", model.folder.string(), model.iteration,
                         model.store->table().parameter_count()));
    InferenceCapacity capacity;
    capacity.sequences = std::min<std::int64_t>(batch_, static_cast<std::int64_t>(prompts.size()));
    capacity.context = model.config.max_positions;
    // Weights are read once a pass over the prompts: enough tokens that their arithmetic is what takes time.
    capacity.chunk =
        std::min<std::int64_t>(capacity.context, std::max<std::int64_t>(1024 / capacity.sequences, 128));
    GptInference inference(*device, model.config, *model.store, capacity);
    options_.sampling.seed = static_cast<std::uint64_t>(seed_);
    if (greedy_) options_.sampling.temperature = 0;

    const bool is_streaming = prompts.size() == 1 && !json_;
    // The prompt is shown with the first text: by then it is known to fit.
    bool is_echoed = !echo_;
    const auto echo = [&] {
      if (!is_echoed) print(prompts.front());
      is_echoed = true;
    };
    TextSink sink;
    if (is_streaming) {
      sink = [&](std::size_t, std::string_view text) {
        echo();
        print(text);
      };
    }
    GenerationTimes times;
    const std::vector<Generated> results =
        generate_text(inference, capacity, *model.tokenizer, prompts, options_, sink, &times);
    if (is_streaming) {
      echo();
      print("\n");
    } else {
      for (std::size_t i = 0; i < prompts.size(); ++i) print_result(prompts[i], results[i], i);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].reason == StopReason::context_full) {
        messages.warn(format("prompt {} ended after {} tokens: the model's context of {} is full", i + 1,
                             results[i].new_tokens, capacity.context));
      }
    }
    messages.line(format("prompt: {}; then: {}", rate(times.prompt_tokens, times.prompt_seconds),
                         rate(times.new_tokens, times.new_seconds)));
    return 0;
  }

 private:
  void print_result(const std::string& prompt, const Generated& result, std::size_t number) const {
    if (json_) {
      const nlohmann::ordered_json row = {{"prompt", prompt},
                                          {"text", result.text},
                                          {"prompt_tokens", result.prompt_tokens},
                                          {"new_tokens", result.new_tokens},
                                          {"stop_reason", name_of(result.reason)}};
      // Bytes that are no UTF-8 cannot stand in JSON; they become U+FFFD there.
      print(row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
      return;
    }
    print(format("{}=== {} ===\n", number == 0 ? "" : "\n", number + 1));
    if (echo_) print(prompt);
    print(result.text + "\n");
  }

  std::string load_;
  std::int64_t ckpt_step_ = 0;
  TokenizerOptions tokenizer_;
  std::vector<std::string> prompts_;
  std::string prompt_file_;
  GenerateOptions options_;
  bool greedy_ = false;
  std::int64_t seed_ = 0;
  bool json_ = false;
  bool echo_ = true;
  DeviceOptions device_;
  std::int64_t threads_ = 0;
  bool bf16_ = false;
  std::int64_t batch_ = 8;
};

}  // namespace

std::unique_ptr<Command> make_generate_command() {
  return std::make_unique<GenerateCommand>();
}

}  // namespace megalith
