// megalith doctor: what this machine has and lacks, and what each lack costs.
#include <cstdio>

#include "cli/doctor.h"
#include "core/build_libraries.h"
#include "core/format.h"

namespace megalith {
namespace {

class DoctorCommand : public Command {
 public:
  std::string name() const override { return "doctor"; }
  std::string summary() const override {
    return "Say what this machine has and lacks, and what each lack costs";
  }
  void declare(Schema& /*schema*/) override {}
  int run(Schema& /*schema*/, Log& messages) override {
    std::string text = version_text();
    bool colour = wants_colour(stdout);
    std::size_t lacks = 0;
    for (const Finding& finding : examine_machine()) {
      const std::string mark = finding.well ? "ok  " : "LACK";
      const std::string painted = !colour ? mark : format("\x1b[{}m{}\x1b[0m", finding.well ? 32 : 33, mark);
      text += format("{}  {:<18} {}\n", painted, finding.subject, finding.found);
      if (finding.well) continue;
      ++lacks;
      text += format("      {:<18} cost: {}\n", "", finding.cost);
      if (!finding.remedy.empty()) text += format("      {:<18} do: {}\n", "", finding.remedy);
    }
    text += lacks == 0 ? "Nothing is missing.\n"
                       : format("{} of these could be better; megalith runs with what is there.\n", lacks);
    std::fwrite(text.data(), 1, text.size(), stdout);
    messages.clear_progress();
    return 0;
  }
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace megalith
