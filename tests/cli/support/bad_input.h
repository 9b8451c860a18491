// For tests that give the program bad input: a folder with a sound tokenizer, data set and run to spoil, and
// a table of commands with the exit status and the words that must come out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace megalith::test {

struct Outcome {
  int status = -1;
  std::string output;  ///< standard output and standard error
};

/// One command of a table. In `arguments`, a line of shell, TRAIN stands for a small model's settings with
/// data and tokenizer.
struct BadInput {
  std::string arguments;
  int status = 3;
  std::vector<std::string> says;  ///< all must occur in the output
};

/// The folder:
///   text.txt, tokenizer/, data_text_document.bin/.idx, run/ with iter_0000002 and iter_0000004
///   other/ (a run of a wider model), other_tokenizer/
///   empty, folder/, pipe, loop (a symbolic link to itself), nul.txt
class BadInputFolder {
 public:
  BadInputFolder();

  std::string path(std::string_view name = {}) const;
  std::string read(std::string_view name) const;
  void write(std::string_view name, std::string_view content) const;
  /// A copy of a folder or file inside the folder, replacing an older copy.
  void copy(std::string_view from, std::string_view to) const;
  /// Writes an index and a commit marker that fits it, as nobody but a forger would.
  void forge_index(std::string_view checkpoint, const nlohmann::json& index) const;

  /// Runs a shell command in the folder; MEGALITH, TRAIN and MODEL in it are replaced. One that takes longer
  /// than 60 s has status 124.
  Outcome shell(const std::string& command) const;
  Outcome megalith(const std::string& arguments) const { return shell("MEGALITH " + arguments); }
  /// Runs the table and expects the status, the words and one well-formed message of each row.
  void expect(const std::vector<BadInput>& table) const;

 private:
  TemporaryFolder folder_;
};

}  // namespace megalith::test
