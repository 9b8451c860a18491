// The list of subcommands. A new one: its file cli/NAME.cpp, its factory in command.h, one line here, and
// `megalith docs config > docs/config.md`.
#include "cli/command.h"

namespace megalith {

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_data_prepare_command());
  commands.push_back(make_data_inspect_command());
  commands.push_back(make_data_order_command());
  commands.push_back(make_tokenizer_train_command());
  commands.push_back(make_tokenizer_encode_command());
  commands.push_back(make_tokenizer_decode_command());
  commands.push_back(make_train_command());
  commands.push_back(make_generate_command());
  commands.push_back(make_inspect_command());
  commands.push_back(make_plot_command());
  commands.push_back(make_bench_kernels_command());
  commands.push_back(make_doctor_command());
  commands.push_back(make_bench_disk_command());
  commands.push_back(make_completion_command());
  commands.push_back(make_docs_command());
  return commands;
}

}  // namespace megalith
