// megalith plot: curves of one or several runs over one another.
#include "cli/command.h"
#include "core/error.h"
#include "core/files.h"
#include "train/run_curves.h"

namespace megalith {
namespace {

class PlotCommand : public Command {
 public:
  std::string name() const override { return "plot"; }
  std::string summary() const override { return "Draw the curves of one or several runs (SVG and PNG)"; }

  void declare(Schema& schema) override {
    schema.positional(runs_, "RUN...", "Run folders, or metrics.jsonl files", 1, 1000);
    schema.section("picture", "What to draw");
    schema
        .add("metric", &options_.metric, std::string("lm_loss"),
             "Which number; lm_loss draws the validation loss too")
        .one_of({"lm_loss", "validation_loss", "grad_norm", "learning_rate", "global_batch_size",
                 "elapsed_ms", "tokens_per_second", "tflops_per_device"});
    schema.add("x_axis", &options_.x_axis, std::string("iteration"), "What runs to the right")
        .one_of({"iteration", "consumed_samples"});
    schema.add("log_x", &options_.log_x, false, "Logarithmic x axis");
    schema.add("log_y", &options_.log_y, false, "Logarithmic y axis");
    schema.add("title", &options_.title, std::string(), "Title").metavar("TEXT");
    schema
        .add("output", &output_, std::string(),
             "File to write: .svg or .png; without such an ending both are written")
        .metavar("FILE")
        .completes_file()
        .default_text("METRIC.svg and .png in the first run's folder");
    schema.epilogue("Example:\n  megalith plot runs/a runs/b --log-x --output compare\n");
  }

  int run(Schema& /*schema*/, Log& messages) override {
    std::vector<RunCurve> curves;
    for (const std::string& run : runs_) curves.push_back(read_run_curve(run, options_));
    if (options_.title.empty() && curves.size() == 1) options_.title = curves.front().name;
    const Drawing drawing = draw_curves(curves, options_);
    std::filesystem::path output = output_;
    if (output_.empty()) {
      std::error_code code;
      const std::filesystem::path first = runs_.front();
      output = (std::filesystem::is_directory(first, code) ? first : first.parent_path()) / options_.metric;
    }
    const std::string ending = output.extension().string();
    const bool is_single = ending == ".svg" || ending == ".png";
    if (!is_single || ending == ".svg")
      write(is_single ? output.string() : output.string() + ".svg", to_svg(drawing), messages);
    if (!is_single || ending == ".png")
      write(is_single ? output.string() : output.string() + ".png", to_png(drawing), messages);
    return 0;
  }

 private:
  static void write(const std::filesystem::path& path, const std::string& content, Log& messages) {
    write_file_atomically(path, content);
    messages.line(format("wrote {}", path.string()));
  }

  std::vector<std::string> runs_;
  CurveOptions options_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_plot_command() {
  return std::make_unique<PlotCommand>();
}

}  // namespace megalith
