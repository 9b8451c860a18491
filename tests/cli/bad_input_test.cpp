// What the program says to bad command lines, settings and paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command.h"
#include "tests/cli/support/bad_input.h"

namespace megalith {
namespace {

using test::BadInputFolder;
using test::Outcome;
using testing::HasSubstr;

TEST(BadInput, SettingsOfATrainingRun) {
  const BadInputFolder folder;
  folder.write("unknown.toml", "[model]\nnum_layer = 2\n");
  folder.write("section.toml", "[training]\nnum_layers = 2\n");
  folder.write("type.toml", "[model]\nnum_layers = \"two\"\n");
  folder.write("cut.toml", "[model]\nnum_layers = 2\nhidden_size = ");
  folder.write("binary.toml", std::string_view("\0\x01\xff\xfe[model]", 11));
  folder.expect({
      {"train TRAIN --hidden-size 15",
       2,
       {"--hidden-size 15", "multiple of num_attention_heads (2)", "14 or 16"}},
      {"train TRAIN --num-attention-heads 3", 2, {"--hidden-size 16", "num_attention_heads (3)", "15 or 18"}},
      {"train TRAIN --num-layer 2", 2, {"--num-layer", "did you mean --num-layers?"}},
      {"train TRAIN --num-layers 0 --lr nan --seed -1 --hidden-dropout 1.5",
       2,
       {"4 mistakes", "--num-layers 0: must be at least 1", "--lr 'nan': must be a finite number",
        "--seed -1", "--hidden-dropout 1.5"}},
      {"train TRAIN --num-layers 99999999999999999999", 2, {"--num-layers", "beyond 64 bits"}},
      {"train TRAIN --num-layers -9223372036854775808", 2, {"--num-layers", "at least 1"}},
      {"train TRAIN --num-layers 1e3", 2, {"--num-layers '1e3'", "whole number; write 1000"}},
      {"train TRAIN --num-layers ''", 2, {"--num-layers ''", "must be a whole number"}},
      {"train TRAIN --num-layers", 2, {"--num-layers: needs a value"}},
      {"train TRAIN --lr 1e999", 2, {"--lr '1e999'", "beyond what a float64 can hold"}},
      {"train TRAIN --lr 1e-3 --min-lr 1", 2, {"min-lr", "more than lr (0.001)"}},
      {"train TRAIN --train-iters 9223372036854775807", 2, {"--train-iters", "at most 100000000000"}},
      {"train TRAIN --global-batch-size 3",
       2,
       {"--global-batch-size 3", "multiple of micro_batch_size (2)", "2 or 4"}},
      {"train TRAIN --max-position-embeddings 8",
       2,
       {"--seq-length 16", "more than max_position_embeddings (8)"}},
      {"train TRAIN --bf16 --fp16", 2, {"bf16", "fp16", "give one"}},
      {"train TRAIN --lr-decay-style linaer", 2, {"--lr-decay-style", "linear"}},
      {"train TRAIN --device gpu", 2, {"gpu", "cpu"}},
      {"train TRAIN --tokenizer-type GPT3", 2, {"GPT3", "GPT2BPETokenizer"}},
      {"train TRAIN --tensor-model-parallel-size 2", 2, {"--tensor-model-parallel-size 2"}},
      {"train TRAIN --split 0,1,1", 2, {"--split 0,1,1"}},
      {"train TRAIN --split a,b", 2, {"--split a,b"}},
      {"train TRAIN --data-path 0.5 data_text_document 0.5", 2, {"data-path"}},
      {"train TRAIN --data-path -1 data_text_document", 2, {"data-path"}},
      {"train TRAIN --rampup-batch-size 2 2", 2, {"--rampup-batch-size", "three numbers"}},
      {"train TRAIN --vocab-size 100", 2, {"vocab_size", "100", "280"}},
      {"train TRAIN --hidden-size 1048576 --ffn-hidden-size 1048576", 4, {"the machine has", "smaller"}},
      {"train TRAIN stray", 2, {"'stray': this word belongs to no flag"}},
      {"train TRAIN --save \"$(printf '\\377\\376')\"", 2, {"--save", "must be valid UTF-8"}},
      {"train TRAIN --sample-prompt \"$(printf 'a\\377')\"", 2, {"--sample-prompt", "must be valid UTF-8"}},
      {"train --config unknown.toml",
       2,
       {"unknown.toml:2", "num_layer: unknown key; did you mean num_layers?"}},
      {"train --config section.toml", 2, {"section.toml:2", "belongs to [model]"}},
      {"train --config type.toml", 2, {"type.toml:2", "num_layers", "must be integer"}},
      {"train --config cut.toml", 2, {"cut.toml:3", "not valid TOML"}},
      {"train --config binary.toml", 2, {"binary.toml"}},
      {"train --config missing.toml", 2, {"missing.toml", "cannot open"}},
      {"train --config folder", 2, {"folder", "is a folder, not a regular file"}},
      {"train --config pipe", 2, {"pipe", "is a pipe, not a regular file"}},
      {"train --config loop", 2, {"loop", "symbolic links"}},
      {"train --config /dev/null", 2, {"/dev/null", "is a device or socket, not a regular file"}},
      {"train --config", 2, {"--config: needs a FILE"}},
  });
  // Nothing else is complained of where the file could not be read.
  EXPECT_EQ(folder.megalith("train --config missing.toml").output.find("required"), std::string::npos);
}

TEST(BadInput, DataOfATrainingRun) {
  const BadInputFolder folder;
  folder.write("short.txt", "in the\n");
  const std::string prepare =
      "MEGALITH data prepare --tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer ";
  ASSERT_EQ(folder.shell(prepare + "--input short.txt --output-prefix short").status, 0);
  ASSERT_EQ(folder.shell(prepare + "--input empty --output-prefix nothing").status, 0);
  const std::string other =
      "MODEL --tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer --save x ";
  folder.expect({
      {"train " + other + "--data-path short_text_document",
       3,
       {"short_text_document", "one sample of 17 (seq_length + 1)"}},
      {"train " + other + "--data-path nothing_text_document", 3, {"nothing_text_document", "0 sequences"}},
      {"train " + other + "--data-path missing", 3, {"missing.idx", "cannot open"}},
      {"train " + other + "--data-path folder", 3, {"folder.idx", "cannot open"}},
      {"train " + other + "--data-path ''", 3, {".idx", "cannot open"}},
      {"train MODEL --vocab-size 100 --save x --data-path data_text_document",
       3,
       {"data_text_document.bin", "outside of the vocabulary of 100", "another tokenizer"}},
      {"train TRAIN --lr 1e300 --save nan",
       5,
       {"not finite at iteration 2", "no checkpoint was saved before it", "--nan-loss skip"}},
      {"train TRAIN --lr 1e300 --save nan2 --save-interval 1",
       5,
       {"the last good checkpoint is iteration 1 in nan2"}},
      {"train TRAIN --lr 1e300 --save skip --nan-loss skip", 0, {"number of nan iterations:   1"}},
      {"data order --data-path short_text_document --seq-length 16 --train-samples 4",
       3,
       {"short_text_document"}},
      {"data order --train-samples 4", 2, {"--data-path: is missing"}},
      {"data order --data-path data_text_document --seq-length 0", 2, {"--seq-length 0", "at least 1"}},
      {"data order --data-path data_text_document --split x --train-samples 4", 2, {"split", "x"}},
      {"data inspect missing", 3, {"missing.idx", "cannot open"}},
      {"data inspect data_text_document --vocab-size 100", 3, {"outside of the vocabulary of 100"}},
      {"data inspect data_text_document --samples -1", 2, {"--samples -1", "at least 0"}},
      {"data inspect", 2, {"PREFIX", "at least 1 needed"}},
  });
}

TEST(BadInput, RunFoldersAndCheckpoints) {
  const BadInputFolder folder;
  folder.expect({
      {"train TRAIN --save run", 2, {"run already holds checkpoints up to iteration 4", "--load run"}},
      {"train TRAIN --save empty", 4, {"empty", "Not a directory"}},
      {"train TRAIN --save loop", 4, {"loop", "symbolic links"}},
      {"train TRAIN --save /proc/nowhere/run", 4, {"/proc/nowhere/run"}},
      {"train TRAIN --save x --load empty", 3, {"empty", "is no folder"}},
      {"train TRAIN --save x --load pipe", 3, {"pipe", "is no folder"}},
      {"train TRAIN --save x --load loop", 3, {"loop", "symbolic links"}},
      {"train TRAIN --save x --load folder --exit-on-missing-checkpoint",
       3,
       {"folder", "holds no checkpoint"}},
      {"train TRAIN --save new --load missing",
       0,
       {"missing holds no checkpoint: starting from random weights"}},
      {"train TRAIN --save x --load run --ckpt-step 3",
       3,
       {"no checkpoint of iteration 3", "there are: 2, 4"}},
      {"train TRAIN --save x --load other",
       3,
       {"another model", "hidden_size: 32 in the checkpoint, 16 in this run"}},
      {"train TRAIN --save x --load run --seed 7", 3, {"--seed 1234, this run has 7", "--no-load-rng"}},
      {"train TRAIN --save x --load run --lr 2e-3", 2, {"max_lr is 0.001 there and 0.002 here"}},
      {"train TRAIN --save x --load run --optimizer sgd", 3, {"--optimizer \"adam\", this run has sgd"}},
      {"train TRAIN --save x --load run --tokenizer-model other_tokenizer --vocab-size 280",
       3,
       {"another tokenizer", "270 pieces"}},
      {"generate --load missing --prompt in", 3, {"missing", "is no folder"}},
      {"generate --load folder --prompt in", 3, {"folder", "no committed checkpoint"}},
      {"generate --load empty --prompt in", 3, {"empty", "is no folder"}},
      {"generate --load run --ckpt-step 9 --prompt in", 3, {"no checkpoint of iteration 9", "2, 4"}},
      {"generate --load run", 2, {"--prompt", "--prompt-file"}},
      {"generate --prompt in", 2, {"load: is required"}},
      {"generate --load run --prompt-file missing", 3, {"missing", "cannot open"}},
      {"generate --load run --prompt-file folder", 3, {"folder", "is a folder"}},
      {"generate --load run --prompt-file pipe", 3, {"pipe", "is a pipe"}},
      {"generate --load run --prompt-file empty", 3, {"empty", "holds no prompt"}},
      {"generate --load run --prompt-file tokenizer/tokenizer.json",
       3,
       {"tokenizer/tokenizer.json:1", "prompt"}},
      {"generate --load run --prompt \"$(cat text.txt)\"", 2, {"prompt 1", "no room in a context of 16"}},
      {"generate --load run --prompt in --temperature -1", 2, {"--temperature -1", "at least 0"}},
      {"generate --load run --prompt in --top-p 0", 2, {"--top-p 0"}},
      {"generate --load run --prompt in --top-k -1", 2, {"--top-k -1"}},
      {"generate --load run --prompt in --device gpu", 2, {"gpu"}},
      {"generate --load run --prompt in --tokenizer-type HuggingFaceTokenizer --tokenizer-model "
       "other_tokenizer",
       3,
       {"another tokenizer"}},
      {"generate --load run --prompt in --tokenizer-type NullTokenizer --vocab-size 100000",
       3,
       {"another tokenizer"}},
      {"inspect missing", 3, {"missing", "is no folder"}},
      {"inspect folder", 3, {"folder", "no committed checkpoint"}},
      {"inspect run --ckpt-step 3", 3, {"no checkpoint of iteration 3"}},
      {"inspect run --hidden-size 32", 2, {"hidden_size", "leave"}},
      {"inspect run other", 2, {"'other': one word too many"}},
      {"inspect", 2, {"num_layers: is required"}},
      {"inspect --num-layers 2 --hidden-size 15 --num-attention-heads 2 --seq-length 8 --vocab-size 9",
       2,
       {"--hidden-size 15", "14 or 16"}},
      {"plot missing", 3, {"missing", "cannot open"}},
      {"plot folder", 3, {"folder/metrics.jsonl", "cannot open"}},
      {"plot empty", 3, {"empty", "holds no value of \"lm_loss\""}},
      {"plot pipe", 3, {"pipe", "is a pipe"}},
      {"plot text.txt", 3, {"text.txt:1", "no metrics object"}},
      {"plot", 2, {"RUN...", "at least 1 needed"}},
      {"plot run --metric loss", 2, {"--metric loss", "lm_loss"}},
      {"plot run --output /proc/nowhere/a.svg", 4, {"/proc/nowhere/a.svg", "cannot create"}},
  });
  EXPECT_EQ(folder.megalith("inspect run").status, 0);
  // A prompt of bytes that are no text, or with NUL bytes in a file, is text like any other.
  EXPECT_EQ(
      folder.megalith("generate --load run --max-new-tokens 2 --prompt \"$(printf 'a\\377\\376b')\"").status,
      0);
  EXPECT_EQ(folder.megalith("generate --load run --max-new-tokens 2 --prompt-file nul.txt --json").status, 0);
}

TEST(BadInput, TextAndTokenizers) {
  const BadInputFolder folder;
  folder.write("bad.jsonl", "{\"text\": \"a\"}\n{\"text\": \n");
  folder.write("key.jsonl", "{\"body\": \"a\"}\n");
  folder.write("number.jsonl", "{\"text\": 5}\n");
  folder.write("half.json", folder.read("tokenizer/tokenizer.json").substr(0, 700));
  folder.write("beyond.txt", "5 999");
  folder.write("negative.txt", "5 -1");
  folder.write("huge.txt", "5 99999999999999999999");
  folder.write("merges.txt", "#version: 0.2\n");
  const std::string one =
      "--tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer --output-prefix out ";
  folder.expect({
      {"tokenizer train --input missing --vocab-size 300 --output o", 3, {"missing", "no such file"}},
      {"tokenizer train --input folder --vocab-size 300 --output o", 3, {"folder", "is a folder"}},
      {"tokenizer train --input empty --vocab-size 300 --output o", 3, {"holds no text"}},
      {"tokenizer train --input /dev/null --vocab-size 300 --output o", 3, {"holds no text"}},
      {"tokenizer train --input loop --vocab-size 300 --output o", 3, {"loop"}},
      {"tokenizer train --input text.txt --vocab-size 256 --output o",
       2,
       {"--vocab-size 256", "at least 257"}},
      {"tokenizer train --input text.txt --vocab-size 5000000 --output o", 2, {"--vocab-size", "at most"}},
      {"tokenizer train --input text.txt --vocab-size 300 --output empty", 4, {"empty", "Not a directory"}},
      {"tokenizer train --input text.txt --output o", 2, {"vocab_size: is required"}},
      {"tokenizer encode --text in", 2, {"tokenizer_type", "no tokenizer is named"}},
      {"tokenizer encode --tokenizer-model missing --text in", 3, {"missing", "cannot open"}},
      {"tokenizer encode --tokenizer-model folder --text in", 3, {"folder/tokenizer.json", "cannot open"}},
      {"tokenizer encode --tokenizer-model pipe --text in", 3, {"pipe", "is a pipe"}},
      {"tokenizer encode --tokenizer-model loop --text in", 3, {"loop", "symbolic links"}},
      {"tokenizer encode --tokenizer-model empty --text in", 3, {"empty", "JSON"}},
      {"tokenizer encode --tokenizer-model half.json --text in", 3, {"half.json", "JSON"}},
      {"tokenizer encode --tokenizer-model text.txt --text in", 3, {"text.txt", "JSON"}},
      {"tokenizer encode --vocab-file tokenizer/vocab.json --text in", 2, {"--merge-file is not given"}},
      {"tokenizer encode --vocab-file tokenizer/vocab.json --merge-file merges.txt --text in",
       3,
       {"merges.txt", "has 0 merges", "cut short"}},
      {"tokenizer encode --vocab-file other_tokenizer/vocab.json --merge-file tokenizer/merges.txt --text in",
       3,
       {"other_tokenizer/vocab.json with tokenizer/merges.txt"}},
      {"tokenizer encode --tokenizer-model tokenizer --input pipe", 3, {"pipe", "is a pipe"}},
      {"tokenizer encode --tokenizer-model tokenizer --input folder", 3, {"folder", "is a folder"}},
      {"tokenizer decode --tokenizer-model tokenizer --input text.txt", 3, {"text.txt"}},
      {"tokenizer decode --tokenizer-model tokenizer --input beyond.txt", 3, {"beyond.txt", "999"}},
      {"tokenizer decode --tokenizer-model tokenizer --input negative.txt", 3, {"negative.txt", "-1"}},
      {"tokenizer decode --tokenizer-model tokenizer --input huge.txt",
       3,
       {"huge.txt", "99999999999999999999"}},
      {"data prepare --input missing " + one, 3, {"missing", "no such file"}},
      {"data prepare --input folder " + one, 3, {"folder", "is a folder"}},
      {"data prepare --input bad.jsonl " + one, 3, {"bad.jsonl:2"}},
      {"data prepare --input key.jsonl " + one, 3, {"key.jsonl:1", "text"}},
      {"data prepare --input number.jsonl " + one, 3, {"number.jsonl:1"}},
      {"data prepare --input text.txt --no-overwrite --output-prefix data --tokenizer-type "
       "HuggingFaceTokenizer "
       "--tokenizer-model tokenizer",
       2,
       {"data_text_document"}},
      {"data prepare --input text.txt --output-prefix /proc/nowhere/x --tokenizer-type HuggingFaceTokenizer "
       "--tokenizer-model tokenizer",
       4,
       {"/proc/nowhere"}},
      {"data prepare --input text.txt --workers -2 " + one, 2, {"--workers -2"}},
      {"data prepare --input text.txt --output-prefix o", 2, {"tokenizer"}},
      {"doctor stray", 2, {"'stray'"}},
      {"completion", 2, {"bash|zsh|fish"}},
      {"completion powershell", 2, {"'powershell'", "bash, zsh or fish"}},
      {"docs", 2, {"config"}},
      {"docs confg", 2, {"'confg'", "config, megatron or man"}},
      {"docs man empty", 4, {"empty", "Not a directory"}},
      {"docs man ''", 4, {"cannot create"}},
      {"trian", 2, {"unknown subcommand; did you mean train?"}},
      {"data", 2, {"data prepare", "data inspect"}},
      {"bench disk missing", 3, {"missing", "is no folder"}},
      {"bench disk . --device gpu", 2, {"gpu"}},
      {"\"$(printf '\\377')\"", 2, {"unknown subcommand"}},
  });
}

TEST(BadInput, NobodyWritesIntoAPipe) {
  const BadInputFolder folder;
  folder.expect(
      {{"tokenizer train --input pipe --vocab-size 300 --output o", 3, {"pipe", "nobody has opened"}}});
  // One that somebody writes into is text like a file's.
  const Outcome outcome = folder.shell(
      "timeout 60 sh -c '{ sleep 0.3; cat text.txt; } > pipe' & MEGALITH tokenizer train --input pipe "
      "--vocab-size 280 --output "
      "p "
      "&& cmp p/tokenizer.json tokenizer/tokenizer.json");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

// In a mount namespace of its own, so that nothing stays mounted whatever happens.
TEST(BadInput, FullDisksAndReadOnlyFolders) {
  const BadInputFolder folder;
  if (folder.shell("unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs folder'").status != 0)
    GTEST_SKIP() << "mounting is not permitted here";
  const std::string tokenizer = "--tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer";
  folder.write("long.txt", std::string(300000, 'x') + "\n");
  struct Case {
    std::string command;
    std::string leftover;  ///< must not exist under this name afterwards
  };
  for (const Case& row : std::vector<Case>{
           {"tokenizer train --input text.txt --vocab-size 280 --output folder/t", "folder/t/tokenizer.json"},
           {"data prepare --input long.txt --output-prefix folder/d " + tokenizer,
            "folder/d_text_document.idx"},
           {"tokenizer encode --tokenizer-model tokenizer --input long.txt --output folder/e", "folder/e"},
           {"plot run --output folder/p.png", "folder/p.png"},
           {"docs man folder/m", "folder/m/megalith-train.1"},
           {"train TRAIN --save folder/r", "folder/r/iter_0000004/COMMITTED"}}) {
    for (const std::string& trouble :
         {std::string(
              "mount -t tmpfs -o size=8k,nr_inodes=20 tmpfs folder; head -c 8k /dev/zero > folder/filler"),
          std::string("mount -t tmpfs -o ro tmpfs folder")}) {
      const Outcome outcome =
          folder.shell("unshare -m sh -c '" + trouble + "; MEGALITH " + row.command +
                       "; status=$?; test ! -e " + row.leftover + " || echo LEFTOVER; exit $status'");
      SCOPED_TRACE(row.command + "\n" + trouble + "\n" + outcome.output);
      EXPECT_EQ(outcome.status, 4);
      EXPECT_THAT(outcome.output, testing::AnyOf(HasSubstr("No space left"), HasSubstr("Read-only")));
      EXPECT_THAT(outcome.output, HasSubstr("folder/"));
      EXPECT_THAT(outcome.output, testing::Not(HasSubstr("LEFTOVER")));
    }
  }
}

}  // namespace
}  // namespace megalith
