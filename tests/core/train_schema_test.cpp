#include "core/train_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/files.h"

namespace megalith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct Parsed {
  TrainOptions options;
  Schema schema{"train", "Train"};
  std::vector<std::string> notes;
  explicit Parsed(SettingsUse use = SettingsUse::train) { declare_train_settings(schema, options, use); }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;
  void parse(const std::string& line) { schema.parse(words_of(line), notes); }
  std::string error_of(const std::string& line) {
    try {
      parse(line);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  }
};

std::string error_of(const std::string& line) {
  return Parsed().error_of(line);
}

const std::string model =
    "--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 16 --vocab-size 100 ";
const std::string small = model + "--micro-batch-size 2 --lr 1e-3 --mock-data ";
const std::string run = small + "--train-iters 10 ";

TEST(TrainSchema, MegatronDefaults) {
  Parsed parsed;
  parsed.parse(run);
  const TrainOptions& o = parsed.options;
  EXPECT_EQ(o.hidden_dropout, 0.1);
  EXPECT_EQ(o.attention_dropout, 0.1);
  EXPECT_EQ(o.seed, 1234);
  EXPECT_EQ(o.clip_grad, 1.0);
  EXPECT_EQ(o.init_method_std, 0.02);
  EXPECT_EQ(o.lr_decay_style, "linear");
  EXPECT_EQ(o.split, "969,30,1");
  EXPECT_EQ(o.log_interval, 100);
  EXPECT_EQ(o.eval_iters, 100);
  EXPECT_EQ(o.eval_interval, 0);
  EXPECT_EQ(o.adam_beta1, 0.9);
  EXPECT_EQ(o.adam_beta2, 0.999);
  EXPECT_EQ(o.adam_eps, 1e-8);
  EXPECT_EQ(o.weight_decay, 0.01);
  EXPECT_EQ(o.make_vocab_size_divisible_by, 128);
  EXPECT_EQ(o.norm_epsilon, 1e-5);
  EXPECT_EQ(o.min_lr, 0);
  EXPECT_EQ(o.activation, "gelu_tanh");
  EXPECT_TRUE(o.calculate_per_token_loss);
}

TEST(TrainSchema, DerivedDefaults) {
  Parsed parsed;
  parsed.parse(run);
  const TrainOptions& o = parsed.options;
  EXPECT_EQ(o.ffn_hidden_size, 32);
  EXPECT_EQ(o.kv_channels, 4);
  EXPECT_EQ(o.max_position_embeddings, 16);
  EXPECT_EQ(o.global_batch_size, 2);
  EXPECT_EQ(o.lr_decay_iters, 10);
  EXPECT_EQ(o.lr_decay_samples, 20);
  EXPECT_EQ(o.start_weight_decay, 0.01);
  EXPECT_EQ(o.end_weight_decay, 0.01);
  EXPECT_EQ(parsed.schema.setting("kv_channels").origin(), SettingOrigin::derived);
  EXPECT_THAT(parsed.schema.effective_toml(), HasSubstr("\nglobal_batch_size = 2  # derived"));
}

TEST(TrainSchema, ResolvingAgainChangesNothing) {
  Parsed parsed;
  parsed.parse(
      small +
      "--train-samples 1000 --global-batch-size 8 --rampup-batch-size 2 2 300 --lr-warmup-samples 50");
  const std::string before = parsed.schema.effective_toml();
  resolve_options(parsed.schema, parsed.options);
  EXPECT_EQ(parsed.schema.effective_toml(), before);
}

TEST(TrainSchema, SamplesGiveIterations) {
  Parsed parsed;
  parsed.parse(small + "--train-samples 1003 --global-batch-size 10 --lr-warmup-samples 100");
  EXPECT_EQ(parsed.options.train_iters, 100);
  EXPECT_EQ(parsed.options.lr_decay_samples, 1003);
  EXPECT_EQ(parsed.options.lr_warmup_iters, 10);
}

// Batch 2 until 10 samples, 4 until 20, 6 until 30, then 8: 5 + 3 (to 22) + 2 (to 34, past 30), 66 left: 8
// of 8.
TEST(TrainSchema, RampupIterationsAreCounted) {
  Parsed parsed;
  parsed.parse(small + "--train-samples 100 --global-batch-size 8 --rampup-batch-size 2 2 30");
  EXPECT_EQ(parsed.options.train_iters, 5 + 3 + 2 + 8);
}

TEST(TrainSchema, BadInputTable) {
  const std::pair<std::string, std::string> cases[] = {
      {run + "--hidden-size 7",
       "--hidden-size 7: must be a multiple of num_attention_heads (2); the nearest is 6 or 8"},
      {run + "--num-attention-heads 3", "hidden-size 8: must be a multiple of num_attention_heads (3)"},
      {run + "--max-position-embeddings 8", "--seq-length 16: is more than max_position_embeddings (8)"},
      {run + "--global-batch-size 5",
       "--global-batch-size 5: must be a multiple of micro_batch_size (2); the nearest is 4 or 6"},
      {run + "--global-batch-size 1", "the nearest is 2"},
      {run + "--train-samples 5", "give one of them"},
      {small, "the length of the run is missing"},
      {run + "--lr 0", "lr: is required"},
      {run + "--lr -1", "must be more than 0"},
      {run + "--min-lr 1", "--min-lr 1: is more than lr (0.001)"},
      {run + "--lr-decay-samples 5", "the run's length is given in iterations; use lr_decay_iters"},
      {small + "--train-samples 100 --lr-warmup-iters 5",
       "the run's length is given in samples; use lr_warmup_samples"},
      {small + "--train-samples 1", "is less than one global batch (2)"},
      {run + "--lr-warmup-iters 10", "must be less than lr_decay_iters (10)"},
      {run + "--lr-warmup-iters 2 --lr-warmup-fraction 0.1",
       "--lr-warmup-fraction 0.1 and --lr-warmup-iters 2: give one"},
      {run + "--lr-warmup-fraction 1", "less than 1"},
      {run + "--lr-decay-style WSD", "needs lr_wsd_decay_iters"},
      {run + "--lr-decay-style WSD --lr-wsd-decay-iters 11", "is more than lr_decay_iters (10)"},
      {run + "--lr-decay-style wsd", "did you mean WSD?"},
      {run + "--rampup-batch-size 2 2 10", "a batch ramp-up needs a run given in samples"},
      {small + "--train-samples 100 --rampup-batch-size 2 2", "needs three numbers"},
      {small + "--train-samples 100 --global-batch-size 8 --rampup-batch-size 2 4 30",
       "must divide global_batch_size - start (6)"},
      {small + "--train-samples 100 --global-batch-size 8 --rampup-batch-size 3 1 30",
       "multiples of micro_batch_size (2)"},
      {small + "--train-samples 100 --global-batch-size 8 --rampup-batch-size 2 0 30", "at least 1"},
      {small +
           "--train-samples 900000000000000 --global-batch-size 8 --rampup-batch-size 2 2 900000000000000",
       "takes more than"},
      {run + "--recompute-method uniform", "needs recompute_granularity full"},
      {run + "--recompute-granularity selective --recompute-num-layers 1",
       "needs recompute_granularity full, which is selective"},
      {run + "--recompute-granularity full --recompute-method block", "block needs recompute_num_layers"},
      {run + "--recompute-granularity full --recompute-num-layers 3", "the nearest is 2"},
      {run + "--recompute-activations --recompute-granularity full", "give one of them"},
      {run + "--bf16 --fp16", "exclude each other"},
      {run + "--fp16", "float16 with loss scaling needs a GPU"},
      {run + "--bf16 --device reference", "computes in float32 and float64"},
      {run + "--fp64", "needs device reference; device is cpu"},
      {run + "--strict", "needs device reference"},
      {run + "--device cuda", "no CUDA device"},
      {run + "--no-accumulate-allreduce-grads-in-fp32", "always accumulate in float32"},
      {run + "--tensor-model-parallel-size 2", "needs ranks: this version trains on one device"},
      {run + "--hidden-dropout 1", "less than 1"},
      {run + "--split 1,2,3,4", "three numbers"},
      {run + "--split 0,0,0", "positive sum"},
      {run + "--split 90,x,1", "three numbers"},
      {run + "--position-embedding-type rope", "is refused"},
      {run + "--normalization RMSNorm", "is refused"},
      {run + "--tokenizer-type SentencePieceTokenizer", "is refused"},
      {run + "--tokenizer-type GPT2BPETokenizer", "needs vocab_file"},
      {run + "--vocab-file v", "needs merge_file beside it"},
      {run + "--eod-mask-loss", "needs a tokenizer"},
      {run + "--data-path x", "excludes data files"},
      {run + "--ckpt-step 5", "needs load"},
      {run + "--weight-decay-incr-style linear", "needs both"},
      {run + "--start-weight-decay 0.5", "weight_decay_incr_style is constant"},
      {run + "--train-iters 99999999999 --global-batch-size 16777216 --micro-batch-size 1",
       "more than 4e18 tokens"},
      {model + "--micro-batch-size 1 --lr 1 --train-iters 1", "data_path: is required"},
      {model + "--micro-batch-size 1 --lr 1 --train-iters 1 --data-path 1 a b", "'b' should be a weight"},
      {run + "--eval-interval 1 --eval-iters 100000000000 --train-iters 100000000",
       "1e15 validation samples"},
      {model + "--micro-batch-size 1 --lr 1 --train-iters 1 --data-path 0 a 1 b",
       "weight 0 must be more than 0"},
      {model + "--micro-batch-size 1 --lr 1 --train-iters 1 --data-path 1 a 2",
       "the last weight (2) has no prefix"},
      {"--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --lr "
       "1e-3 --mock-data "
       "--train-iters 10",
       "vocab_size: is not known"},
      {"", "num_layers: is required; give --num-layers N, or num_layers in the config file"}};
  for (const auto& [line, expected] : cases) EXPECT_THAT(error_of(line), HasSubstr(expected)) << line;
}

TEST(TrainSchema, AllMistakesAtOnce) {
  const std::string text = error_of(
      "--num-layers 0 --hidden-size 7 --num-attention-heads 2 --seq-lenght 16 --lr fast "
      "--tensor-model-parallel-size 2 --micro-batch-size 2 --global-batch-size 3 --fp16");
  for (const char* expected :
       {"--num-layers 0: must be at least 1", "--hidden-size 7", "did you mean --seq-length?",
        "seq_length: is required", "--lr 'fast'", "--tensor-model-parallel-size 2", "--global-batch-size 3",
        "--fp16", "vocab_size: is not known", "data_path: is required"}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
}

TEST(TrainSchema, EffectiveConfigReadsBackToEqualSettings) {
  const std::string lines[] = {
      run +
          "--global-batch-size 8 --lr-warmup-fraction 0.1 --min-lr 1e-5 --lr-decay-style cosine --bf16 "
          "--no-progress",
      small + "--train-samples 1000 --global-batch-size 8 --rampup-batch-size 2 2 300 --lr-warmup-samples 50",
      run + "--recompute-granularity full --no-bias-gelu-fusion --lr-decay-style WSD --lr-wsd-decay-iters 3"};
  for (const std::string& line : lines) {
    Parsed first;
    first.parse(line);
    const std::string path = testing::TempDir() + "effective.toml";
    write_file_atomically(path, first.schema.effective_toml());
    Parsed second;
    second.parse("--config " + path);
    for (const auto& key : first.schema.settings()) {
      EXPECT_EQ(key->value(), second.schema.setting(key->name()).value()) << key->name();
    }
    // A changed length carries over to what follows from it.
    Parsed longer;
    if (first.options.train_samples == 0) {
      longer.parse("--config " + path + " --train-iters 20");
      EXPECT_EQ(longer.options.lr_decay_iters, 20);
    }
  }
}

// The flags of Megatron-LM's examples/gpt3 scripts, for a GPT-2 size.
TEST(TrainSchema, MegatronCommandLine) {
  Parsed parsed;
  parsed.parse(
      "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 "
      "--max-position-embeddings 1024 "
      "--attention-backend auto --micro-batch-size 4 --global-batch-size 16 --train-iters 500 --weight-decay "
      "0.1 "
      "--adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.006 --clip-grad 1.0 --bf16 --lr 0.0006 "
      "--lr-decay-style cosine --min-lr 6.0e-5 --lr-warmup-fraction .001 --lr-decay-iters 430000 "
      "--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --data-path 0.3 a 0.7 b --vocab-file "
      "vocab.json "
      "--merge-file merges.txt --tokenizer-type GPT2BPETokenizer --split 949,50,1 --log-interval 100 "
      "--save-interval 10000 --eval-interval 1000 --save D --load D --eval-iters 10 --tensorboard-dir T "
      "--use-mcore-models --distributed-backend nccl --transformer-impl transformer_engine --use-flash-attn "
      "--sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
      "--no-gradient-accumulation-fusion --attention-softmax-in-fp32 --ckpt-format torch_dist --num-workers "
      "4 "
      "--distributed-timeout-minutes 60 --exit-duration-in-mins 230 --exit-signal-handler --log-throughput");
  const TrainOptions& o = parsed.options;
  EXPECT_EQ(o.hidden_size, 768);
  EXPECT_EQ(o.global_batch_size, 16);
  EXPECT_EQ(o.lr_warmup_fraction, 0.001);
  EXPECT_EQ(o.lr_decay_samples, 430000 * 16);
  EXPECT_THAT(o.data_path, ElementsAre("0.3", "a", "0.7", "b"));
  EXPECT_GE(parsed.notes.size(), 6U);
  EXPECT_THAT(testing::PrintToString(parsed.notes),
              HasSubstr("--use-mcore-models, --transformer-impl, --use-flash-attn have no effect here"));
}

TEST(TrainSchema, EveryConfigOfTheProjectParses) {
  std::size_t configs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MEGALITH_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    ++configs;
    Parsed parsed;
    EXPECT_NO_THROW(parsed.parse("--config " + entry.path().string() + " --micro-batch-size 4"))
        << entry.path();
    EXPECT_TRUE(parsed.notes.empty());
    EXPECT_EQ(parsed.options.micro_batch_size, 4);
  }
  EXPECT_GE(configs, 5U);
}

// Radford et al. 2019, table 2, and the released checkpoints: parameters with tied output.
TEST(TrainSchema, Gpt2ConfigsHaveThePublishedSizes) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"gpt2-124m", 124439808},
                                                        {"gpt2-355m", 354823168},
                                                        {"gpt2-774m", 774030080},
                                                        {"gpt2-1558m", 1557611200}};
  for (const auto& [name, expected] : sizes) {
    Parsed parsed;
    parsed.parse(std::string("--config ") + MEGALITH_SOURCE_DIR + "/configs/" + name + ".toml");
    const TrainOptions& o = parsed.options;
    const std::int64_t h = o.hidden_size;
    const std::int64_t layer = 4 * h * h + 4 * h + 2 * h * o.ffn_hidden_size + o.ffn_hidden_size + h + 4 * h;
    const std::int64_t count = (o.vocab_size + o.max_position_embeddings) * h + o.num_layers * layer + 2 * h;
    EXPECT_EQ(count, expected) << name;
  }
}

TEST(TrainSchema, DescriptionNeedsOnlyTheModel) {
  Parsed parsed(SettingsUse::describe);
  parsed.parse(model);
  EXPECT_EQ(parsed.options.kv_channels, 4);
}

TEST(MegatronFlags, EveryFlagIsOnOneListWithAReason) {
  TrainOptions options;
  Schema schema("train", "x");
  declare_train_settings(schema, options);
  std::vector<std::string> names;
  for (const ForeignFlag& flag : megatron_flags()) {
    EXPECT_EQ(schema.find(flag.name), nullptr) << flag.name << " is a key";
    EXPECT_FALSE(flag.reason.empty()) << flag.name;
    EXPECT_GE(flag.values, -1) << flag.name;
    names.push_back(flag.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_GT(names.size(), 350U);
}

TEST(MegatronFlags, OtherModelFamiliesAreRefused) {
  for (const char* flags :
       {"--swiglu", "--group-query-attention", "--num-experts 8", "--disable-bias-linear",
        "--use-rotary-position-embeddings", "--multi-latent-attention", "--fp8-format hybrid",
        "--num-layers-per-virtual-pipeline-stage 2", "--apply-layernorm-1p"}) {
    const std::string text = error_of(run + flags);
    EXPECT_THAT(text, HasSubstr(words_of(flags)[0])) << flags;
    EXPECT_THAT(text, Not(HasSubstr("unknown"))) << flags;
  }
}

}  // namespace
}  // namespace megalith
