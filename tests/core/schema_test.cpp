#include "core/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/files.h"
#include "core/schema_intake.h"
#include "core/schema_values.h"
#include "core/utf8.h"

namespace megalith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Fields {
  bool verbose = true;
  bool no_load_optim = true;
  std::int64_t num_layers = -1;
  double lr = -1;
  std::string style = "unset";
  std::vector<std::int64_t> rampup = {7};
  std::vector<std::string> data_path = {"unset"};
};

class SchemaTest : public testing::Test {
 protected:
  SchemaTest() {
    schema_.section("model", "The model");
    schema_.add("num_layers", &fields_.num_layers, 2, "layers").at_least(1).at_most(100).short_flag('n');
    schema_.section("optimizer", "The optimizer");
    schema_.add("lr", &fields_.lr, 1, "rate").more_than(0);
    schema_.add("style", &fields_.style, "linear", "decay")
        .one_of({"linear", "cosine"})
        .refuses("step", "too old");
    schema_.section("rest", "The rest");
    schema_.add("verbose", &fields_.verbose, false, "talk").alias("chatty");
    schema_.add("no_load_optim", &fields_.no_load_optim, false, "skip moments");
    schema_.add("rampup", &fields_.rampup, false, "three numbers");
    schema_.add("data_path", &fields_.data_path, false, "paths").completes_file();
    schema_.accept_config_file();
    schema_.foreign_flags({{"use-mcore-models", 0, false, "one model code exists"},
                           {"distributed-backend", 1, false, "no ranks"},
                           {"spec", -1, true, "no Python"},
                           {"num-experts", 1, true, "no experts", {"1"}}});
  }

  void parse(std::vector<std::string> arguments) { schema_.parse(arguments, notes_); }
  std::string error_of(std::vector<std::string> arguments) {
    try {
      parse(std::move(arguments));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  }
  std::string write_config(const std::string& text) {
    const std::string path = testing::TempDir() + "schema_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
    write_file_atomically(path, text);
    return path;
  }

  Fields fields_;
  Schema schema_{"demo", "A demonstration"};
  std::vector<std::string> notes_;
};

TEST_F(SchemaTest, DefaultsAreAssignedOnDeclaration) {
  EXPECT_EQ(fields_.num_layers, 2);
  EXPECT_EQ(fields_.lr, 1.0);
  EXPECT_EQ(fields_.style, "linear");
  EXPECT_FALSE(fields_.verbose);
  EXPECT_TRUE(fields_.rampup.empty());
  EXPECT_TRUE(fields_.data_path.empty());
}

TEST_F(SchemaTest, ReadsEveryFormOfFlag) {
  parse({"--num-layers", "12", "--lr=6e-4", "--style", "cosine", "--verbose", "--rampup", "16", "8", "1_000",
         "--data_path", "0.3", "a", "0.7", "-", "--no-load-optim"});
  EXPECT_EQ(fields_.num_layers, 12);
  EXPECT_EQ(fields_.lr, 6e-4);
  EXPECT_EQ(fields_.style, "cosine");
  EXPECT_TRUE(fields_.verbose);
  EXPECT_TRUE(fields_.no_load_optim);
  EXPECT_THAT(fields_.rampup, ElementsAre(16, 8, 1000));
  EXPECT_THAT(fields_.data_path, ElementsAre("0.3", "a", "0.7", "-"));
}

TEST_F(SchemaTest, SwitchesGoOffAgainAndTheLastFlagWins) {
  parse({"--verbose", "--no-verbose"});
  EXPECT_FALSE(fields_.verbose);
  parse({"--verbose=true"});
  EXPECT_TRUE(fields_.verbose);
  parse({"--verbose=false", "--num-layers", "3", "--num_layers", "4", "-n", "5"});
  EXPECT_FALSE(fields_.verbose);
  EXPECT_EQ(fields_.num_layers, 5);
  parse({"--chatty"});
  EXPECT_TRUE(fields_.verbose);
  parse({"--no-no-load-optim"});
  EXPECT_FALSE(fields_.no_load_optim);
}

TEST_F(SchemaTest, NegativeNumbersAreValues) {
  EXPECT_THAT(error_of({"--lr", "-1e-3"}), HasSubstr("--lr -0.001: must be more than 0"));
  EXPECT_THAT(error_of({"--num-layers", "-3"}),
              HasSubstr("must be at least 1, at most 100; the nearest is 1"));
  parse({"--rampup", "-1", "-2"});
  EXPECT_THAT(fields_.rampup, ElementsAre(-1, -2));
}

TEST_F(SchemaTest, NumbersAreStrict) {
  const std::pair<const char*, const char*> cases[] = {
      {"12x", "must be a whole number"},  {"", "must be a whole number"},
      {"1__0", "must be a whole number"}, {"_1", "must be a whole number"},
      {"0x10", "must be a whole number"}, {"1e2", "write 100"},
      {"1.5", "must be a whole number"},  {"9223372036854775808", "64 bits"},
      {" 1", "must be a whole number"},   {"+-1", "must be a whole number"},
      {"nan", "must be a whole number"}};
  for (const auto& [word, expected] : cases) {
    EXPECT_THAT(error_of({std::string("--num-layers=") + word}), HasSubstr(expected)) << word;
  }
  for (const char* word : {"nan", "inf", "-inf", "1e999", "1,5", "0x1p3", "one"}) {
    EXPECT_THAT(error_of({std::string("--lr=") + word}), Not(HasSubstr("no error"))) << word;
  }
}

TEST_F(SchemaTest, AllMistakesAtOnce) {
  const std::string text =
      error_of({"--num-layer", "12", "--lr", "fast", "--style", "cosin", "stray", "--verbose=maybe"});
  EXPECT_THAT(text, HasSubstr("5 mistakes"));
  EXPECT_THAT(text, HasSubstr("--num-layer: unknown flag; did you mean --num-layers?"));
  EXPECT_THAT(text, HasSubstr("--lr 'fast': must be a number"));
  EXPECT_THAT(text, HasSubstr("--style cosin: must be one of: linear, cosine; did you mean cosine?"));
  EXPECT_THAT(text, HasSubstr("--verbose=maybe: must be true or false"));
}

TEST_F(SchemaTest, SuggestionsForUnderscoresSingleDashesAndNegatedNames) {
  EXPECT_THAT(error_of({"--num_layer", "3"}), HasSubstr("did you mean --num-layers?"));
  EXPECT_THAT(error_of({"-num-layers", "3"}), HasSubstr("did you mean --num-layers?"));
  EXPECT_THAT(error_of({"--no-verbos"}), HasSubstr("did you mean --verbose?"));
  EXPECT_THAT(error_of({"--qqqqqqqqqqqqqqqqqqqq"}), HasSubstr("megalith demo --help lists all"));
}

TEST_F(SchemaTest, MissingValuesAndStrayWords) {
  EXPECT_THAT(error_of({"--num-layers"}), HasSubstr("--num-layers: needs a value"));
  EXPECT_THAT(error_of({"--num-layers", "--lr", "1"}), HasSubstr("'--lr' looks like a flag"));
  EXPECT_THAT(error_of({"--verbose", "true"}), HasSubstr("--verbose is a switch and takes no value"));
  EXPECT_THAT(error_of({"--config"}), HasSubstr("--config: needs a FILE"));
}

TEST_F(SchemaTest, ForeignFlagsAreSaidOnceOrRefused) {
  parse({"--use-mcore-models", "--distributed-backend", "nccl", "--num-layers", "7", "--use-mcore-models",
         "--num-experts", "1", "--no-use-mcore-models"});
  EXPECT_EQ(fields_.num_layers, 7);
  EXPECT_EQ(notes_.size(), 3U);
  EXPECT_THAT(notes_[0], HasSubstr("--use-mcore-models has no effect here: one model code exists"));
  EXPECT_THAT(error_of({"--num-experts", "8", "--spec", "a", "b", "--lr", "2"}),
              testing::AllOf(HasSubstr("2 mistakes"), HasSubstr("--num-experts 8: no experts"),
                             HasSubstr("no Python")));
  EXPECT_THAT(error_of({"--distributed-backend"}), HasSubstr("needs 1 value"));
}

TEST_F(SchemaTest, FileThenFlag) {
  const std::string path =
      write_config("lr = 1e-4\n[model]\nnum_layers = 1_0\n[rest]\ndata_path = 'one'\nrampup = [1, 2]\n");
  parse({"--lr", "2", "--config", path});
  EXPECT_EQ(fields_.lr, 2.0);
  EXPECT_EQ(fields_.num_layers, 10);
  EXPECT_THAT(fields_.data_path, ElementsAre("one"));
  EXPECT_THAT(fields_.rampup, ElementsAre(1, 2));
  EXPECT_EQ(schema_.setting("num_layers").origin(), SettingOrigin::file);
  EXPECT_EQ(schema_.setting("lr").origin(), SettingOrigin::flag);
  EXPECT_EQ(schema_.setting("style").origin(), SettingOrigin::by_default);
}

TEST_F(SchemaTest, FileMistakesHaveLineAndColumn) {
  const std::string path = write_config(
      "[model]\nnum_layer = 3\nlr = 1.0\n[optimiser]\nstyle = 'linear'\n[optimizer]\nlr = 'fast'\nstyle = "
      "1\n[rest]\n"
      "verbose = 1\nrampup = [1.5]\ndata_path = 1979-05-27\nnum-layers = 4\n[rest.deep]\nx = 1\n[empty]\n");
  const std::string text = error_of({"--config=" + path});
  for (const char* expected :
       {":2:1: num_layer: unknown key; did you mean num_layers?",
        ":3:1: lr: stands in section [model]; it belongs to [optimizer]",
        ":5:1: style: stands in section [optimiser]", ":7:1: lr = \"fast\": is text; must be number",
        ":8:1: style = 1: is integer; must be text", ":10:1: verbose = 1: is integer; must be switch",
        ":11:1: rampup = [\"1.5\"]: is texts; must be integers", ":12:1: data_path: is a date or time",
        ":13:1: num-layers: keys are written with underscores: num_layers", "[empty]: unknown section"}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
}

TEST_F(SchemaTest, BrokenFiles) {
  EXPECT_THAT(error_of({"--config", write_config("[model]\nnum_layers = \n")}), HasSubstr(":2:"));
  EXPECT_THAT(error_of({"--config", write_config("lr = 1\nlr = 2\n")}), HasSubstr("not valid TOML"));
  EXPECT_THAT(error_of({"--config", write_config("lr = 1.0\n[optimizer]\nlr = 2.0\n")}),
              HasSubstr("set a second time"));
  EXPECT_THAT(error_of({"--config", write_config("lr = inf\n")}), HasSubstr("must be a finite number"));
  EXPECT_THAT(error_of({"--config", write_config("num_layers = 99999999999999999999\n")}),
              HasSubstr("not valid TOML"));
  EXPECT_THAT(error_of({"--config", write_config(std::string("style = \"\xff\"\n"))}),
              HasSubstr("not valid TOML"));
  EXPECT_THAT(error_of({"--config", "/nonexistent/x.toml"}), HasSubstr("/nonexistent/x.toml"));
  EXPECT_THAT(error_of({"--config", testing::TempDir()}), HasSubstr("not a regular file"));
}

TEST(SchemaToml, HostileFilesEndInErrors) {
  std::vector<std::string> errors;
  std::string deep = "x = ";
  for (int i = 0; i < 10000; ++i) deep += "[";
  parse_toml_entries(deep, "deep.toml", errors);
  EXPECT_EQ(errors.size(), 1U);
  std::string dotted = "a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  parse_toml_entries(dotted + " = 1\n", "dotted.toml", errors);
  EXPECT_EQ(errors.size(), 2U);
  parse_toml_entries(std::string((1 << 20) + 1, '#'), "long.toml", errors);
  EXPECT_EQ(errors.size(), 3U);
  // The deepest nesting that the limits let through must not exhaust the stack.
  std::string nested;
  for (int level = 0; level < 7; ++level) {
    nested += level == 0 ? "" : "{";
    for (int i = 0; i < 450; ++i) nested += i == 0 ? "a" : ".a";
    nested += " = [\n";
  }
  parse_toml_entries(nested, "nested.toml", errors);
  EXPECT_EQ(errors.size(), 4U);
}

TEST_F(SchemaTest, ForeignKeysInFiles) {
  const std::string path = write_config("use_mcore_models = true\n[model]\nnum_experts = 1\nspec = false\n");
  EXPECT_THAT(error_of({"--config", path}), HasSubstr("spec false: no Python"));
  parse({"--config", write_config("use_mcore_models = true\n")});
  EXPECT_THAT(notes_.back(), HasSubstr("use_mcore_models has no effect here"));
}

TEST_F(SchemaTest, RefusedChoiceSaysWhy) {
  EXPECT_THAT(error_of({"--style", "step"}), HasSubstr("is refused: too old"));
}

TEST_F(SchemaTest, ChecksRunAfterAllValuesAndCanTellFaultyKeys) {
  schema_.check([this](std::vector<std::string>& errors) {
    if (schema_.usable({"num_layers"}) && fields_.num_layers % 2 != 0)
      errors.push_back(schema_.describe("num_layers") + ": must be even");
  });
  EXPECT_THAT(error_of({"--num-layers", "3"}), HasSubstr("--num-layers 3: must be even"));
  EXPECT_THAT(error_of({"--num-layers", "x"}), Not(HasSubstr("even")));
}

TEST_F(SchemaTest, EffectiveTomlReadsBackToEqualValues) {
  parse({"--num-layers", "12", "--lr", "0.1234567890123456789", "--style", "cosine", "--verbose",
         "--data-path", "a \"quoted\" \\ path", "tab\there", "line\nbreak", "\x01\x7f", "ünïcödé", "--rampup",
         "-5", "9223372036854775807"});
  EXPECT_THAT(schema_.effective_toml(), HasSubstr("no_load_optim = false  # default"));
  const std::string path = write_config(schema_.effective_toml());
  const Fields before = fields_;
  parse({"--config", path});
  EXPECT_EQ(fields_.num_layers, before.num_layers);
  EXPECT_EQ(fields_.lr, before.lr);
  EXPECT_EQ(fields_.style, before.style);
  EXPECT_EQ(fields_.verbose, before.verbose);
  EXPECT_EQ(fields_.data_path, before.data_path);
  EXPECT_EQ(fields_.rampup, before.rampup);
}

TEST_F(SchemaTest, DerivedValuesAreCommentsUnlessKept) {
  schema_.mark_derived("num_layers");
  schema_.mark_derived("lr", true);
  const std::string text = schema_.effective_toml();
  EXPECT_THAT(text, HasSubstr("# num_layers = 2  # derived"));
  EXPECT_THAT(text, HasSubstr("\nlr = 1.0  # derived"));
}

TEST_F(SchemaTest, HelpListsEveryKeyWithRuleAndDefault) {
  const std::string text = schema_.help_text(false);
  EXPECT_THAT(text, HasSubstr("-n, --num-layers N"));
  EXPECT_THAT(text, HasSubstr("one of: linear, cosine"));
  EXPECT_THAT(text, HasSubstr("--config FILE"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(schema_.help_text(true), HasSubstr("\x1b[1m"));
  EXPECT_THAT(schema_.reference_markdown(),
              HasSubstr("| `num_layers`, `-n` | integer | 2 | at least 1, at most 100 | layers |"));
  EXPECT_THAT(schema_.man_page(), HasSubstr(".TH MEGALITH\\-DEMO 1"));
}

TEST(SchemaPositional, CountsAndDoubleDash) {
  std::vector<std::string> runs;
  bool quiet = false;
  Schema schema("plot", "Curves");
  schema.add("quiet", &quiet, false, "hush");
  schema.positional(runs, "RUN...", "run directories", 1, 2);
  schema.parse(std::vector<std::string>{"a", "--quiet", "--", "--b"});
  EXPECT_THAT(runs, ElementsAre("a", "--b"));
  EXPECT_TRUE(quiet);
  EXPECT_THROW(schema.parse(std::vector<std::string>{}), Error);
  EXPECT_THROW(schema.parse(std::vector<std::string>({"a", "b", "c"})), Error);
}

TEST(SchemaRequired, ZeroIsNoWayAroundARequiredKey) {
  std::int64_t size = 0;
  Schema schema("demo", "x");
  schema.add("size", &size, 0, "size").required().at_least(1);
  EXPECT_THROW(schema.parse(std::vector<std::string>{}), Error);
  EXPECT_THROW(schema.parse(std::vector<std::string>({"--size", "0"})), Error);
  schema.parse(std::vector<std::string>({"--size", "1"}));
}

TEST(SchemaValues, Utf8) {
  EXPECT_TRUE(is_utf8("aé€😀"));
  for (const char* bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(SchemaValues, NearestName) {
  const std::vector<std::string> names = {"num_layers", "hidden_size", "lr"};
  EXPECT_EQ(nearest_name("num_layer", names), "num_layers");
  EXPECT_EQ(nearest_name("hiden_sise", names), "hidden_size");
  EXPECT_EQ(nearest_name("zzz", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'n'), names), "");
}

}  // namespace
}  // namespace megalith
