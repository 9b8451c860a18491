#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/completion.h"
#include "cli/docs.h"
#include "cli/doctor.h"
#include "core/files.h"
#include "core/format.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int status = -1;
  std::string output;
};

/// Runs a shell command; standard error is part of the output.
Outcome shell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = ::popen(("( " + command + " ) 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.output.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

Outcome megalith(const std::string& arguments) {
  return shell(std::string(MEGALITH_BINARY) + " " + arguments);
}

TEST(Program, HelpInAllItsForms) {
  for (const char* arguments : {"", "--help", "-h", "help"}) {
    const Outcome outcome = megalith(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments;
    EXPECT_THAT(outcome.output, HasSubstr("Usage: megalith SUBCOMMAND")) << arguments;
    for (const auto& command : make_commands())
      EXPECT_THAT(outcome.output, HasSubstr("  " + command->name() + " "));
  }
}

TEST(Program, EverySubcommandHasHelp) {
  for (const auto& command : make_commands()) {
    const Outcome outcome = megalith(command->name() + " --help");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.output, HasSubstr("Usage: megalith " + command->name()));
    EXPECT_THAT(outcome.output, Not(HasSubstr("\x1b"))) << "colour without a terminal";
    EXPECT_EQ(megalith("help " + command->name()).output, outcome.output);
  }
}

TEST(Program, VersionNamesCompilerLibrariesAndDevices) {
  const Outcome outcome = megalith("--version");
  EXPECT_EQ(outcome.status, 0);
  for (const char* part : {"megalith ", "compiler", "libraries", "toml++", "device", "reference"}) {
    EXPECT_THAT(outcome.output, HasSubstr(part));
  }
}

TEST(Program, UnknownSubcommandSuggests) {
  const Outcome outcome = megalith("docter");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.output, HasSubstr("megalith: error: docter: unknown subcommand; did you mean doctor?"));
  EXPECT_THAT(megalith("--num-layers 3").output, HasSubstr("a subcommand comes first"));
  EXPECT_EQ(megalith("completion tcsh").status, 2);
}

TEST(Program, BenchDiskComparesCheckpointsWithTheDisk) {
  const TemporaryFolder folder;
  const Outcome outcome =
      megalith("bench disk " + folder.path().string() + " --megabytes 20 --rounds 1 --device reference");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("19 MB, 1 round, device reference"));
  EXPECT_THAT(outcome.output, HasSubstr("checkpoint"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Program, ClosedPipesAndFullDisksAreNoSilentSuccess) {
  EXPECT_EQ(megalith("docs config > /dev/full").status, 4);
  EXPECT_THAT(megalith("docs config > /dev/full").output, HasSubstr("standard output: cannot write"));
  // The reader leaves before anything is written.
  const Outcome outcome =
      shell(std::string("{ sleep 0.2; ") + MEGALITH_BINARY + " docs config; echo status $? >&2; } | true");
  EXPECT_THAT(outcome.output, HasSubstr("status 141"));
}

TEST(Doctor, SaysEverythingAndSucceeds) {
  const Outcome outcome = megalith("doctor");
  EXPECT_EQ(outcome.status, 0);
  for (const char* subject : {"processors", "instruction sets", "memory", "huge pages", "disk here",
                              "terminal", "device reference"}) {
    EXPECT_THAT(outcome.output, HasSubstr(subject));
  }
  for (const Finding& finding : examine_machine()) {
    EXPECT_FALSE(finding.found.empty()) << finding.subject;
    EXPECT_NE(finding.well, !finding.cost.empty()) << finding.subject;
  }
}

TEST(Completion, ScriptsAreValidShell) {
  for (const char* name : {"bash", "zsh", "fish"}) {
    const std::string path = testing::TempDir() + "completion." + name;
    write_file_atomically(path, completion_script(name, make_commands()));
    if (shell(format("command -v {} > /dev/null", name)).status != 0) continue;  // not on this machine
    const Outcome outcome = shell(format("{} -n {}", name, path));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
  }
}

TEST(Completion, BashOffersSubcommandsFlagsAndChoices) {
  const auto complete = [](const std::string& line, int word) {
    return shell(format("bash -c 'source <({} completion bash); COMP_WORDS=({}); COMP_CWORD={}; _megalith; "
                        "echo \"${{COMPREPLY[@]}}\"'",
                        MEGALITH_BINARY, line, word))
        .output;
  };
  EXPECT_EQ(complete("megalith doct", 1), "doctor\n");
  EXPECT_THAT(complete("megalith doctor --he", 2), HasSubstr("--help"));
}

TEST(Docs, ManPagesAreWritten) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "megalith_man";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(megalith("docs man " + folder.string()).status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "megalith.1"));
  for (const auto& command : make_commands()) {
    std::string name = command->name();
    for (char& c : name) c = c == ' ' ? '-' : c;
    const std::filesystem::path page = folder / format("megalith-{}.1", name);
    ASSERT_TRUE(std::filesystem::exists(page)) << page;
    if (shell("command -v groff > /dev/null").status == 0) {
      const Outcome outcome = shell(format("groff -man -Tascii -ww {} > /dev/null", page.string()));
      EXPECT_EQ(outcome.output, "") << page;
    }
  }
  std::filesystem::remove_all(folder);
}

// To bring the pages up to date:
//   megalith docs config > docs/config.md
//   sed -i '/^### Keys of/,$d' docs/from-megatron.md && megalith docs megatron >> docs/from-megatron.md
TEST(Docs, CommittedPagesEqualTheGeneratedOnes) {
  const std::filesystem::path docs = std::filesystem::path(MEGALITH_SOURCE_DIR) / "docs";
  EXPECT_EQ(read_file(docs / "config.md"), config_page(make_commands()))
      << "run: megalith docs config > docs/config.md";
  EXPECT_TRUE(read_file(docs / "from-megatron.md").ends_with("\n\n" + megatron_table()))
      << "run: sed -i '/^### Keys of/,$d' docs/from-megatron.md && megalith docs megatron >> "
         "docs/from-megatron.md";
}

}  // namespace
}  // namespace megalith
