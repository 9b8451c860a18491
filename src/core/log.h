// What the program says to people. A Log is passed to whoever speaks; there is no global one.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace megalith {

/// Lines on a stream, and at most one live progress line below them where the stream is a terminal. Colour
/// only on a terminal and never with NO_COLOR set. Thread-safe.
class Log {
 public:
  /// Writes to `stream` (stdout or stderr), which must outlive the log. `live` false switches the progress
  /// line off.
  explicit Log(std::FILE* stream, bool live = true);

  /// One line; the newline is added.
  void line(std::string_view text);
  /// "warning: ..." in yellow.
  void warn(std::string_view text);
  /// Replaces the live line; does nothing where the stream is no terminal.
  void progress(std::string_view text);
  /// Removes the live line.
  void clear_progress();

  bool is_terminal() const { return terminal_; }
  bool colour() const { return colour_; }
  /// Columns of the terminal, 80 where unknown.
  int width() const;

 private:
  void erase_locked();

  std::mutex mutex_;
  std::FILE* stream_;
  bool terminal_;
  bool colour_;
  bool live_;
  std::string progress_;
};

/// True where `stream` is a terminal and NO_COLOR is unset or empty.
bool wants_colour(std::FILE* stream);

}  // namespace megalith
