#include "core/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/format.h"

namespace megalith {

bool wants_colour(std::FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(::fileno(stream)) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

Log::Log(std::FILE* stream, bool live)
    : stream_(stream),
      terminal_(::isatty(::fileno(stream)) == 1),
      colour_(wants_colour(stream)),
      live_(live) {}

int Log::width() const {
  winsize size{};
  if (::ioctl(::fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Log::erase_locked() {
  if (!progress_.empty()) std::fputs("\r\x1b[K", stream_);
}

void Log::line(std::string_view text) {
  const std::lock_guard guard(mutex_);
  erase_locked();
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fputc('\n', stream_);
  if (!progress_.empty()) std::fputs(progress_.c_str(), stream_);
  std::fflush(stream_);
}

void Log::warn(std::string_view text) {
  line(colour_ ? format("\x1b[33mwarning:\x1b[0m {}", text) : format("warning: {}", text));
}

void Log::progress(std::string_view text) {
  if (!terminal_ || !live_) return;
  const int columns = width();
  const std::lock_guard guard(mutex_);
  erase_locked();
  progress_ = std::string(text.substr(0, static_cast<std::size_t>(columns > 1 ? columns - 1 : 1)));
  std::fputs(progress_.c_str(), stream_);
  std::fflush(stream_);
}

void Log::clear_progress() {
  const std::lock_guard guard(mutex_);
  erase_locked();
  progress_.clear();
  std::fflush(stream_);
}

}  // namespace megalith
