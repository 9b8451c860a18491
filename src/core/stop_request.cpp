#include "core/stop_request.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <utility>

namespace megalith {
namespace {

constexpr auto repeat_window = std::chrono::milliseconds(200);

}  // namespace

StopRequest::StopRequest(std::function<void(int)> on_first) : on_first_(std::move(on_first)) {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  watcher_ = std::jthread([this](const std::stop_token& stop) {
    std::chrono::steady_clock::time_point first;
    while (!stop.stop_requested()) {
      const timespec patience{0, 20'000'000};
      const int received = ::sigtimedwait(&signals_, nullptr, &patience);
      if (received <= 0) continue;
      const auto now = std::chrono::steady_clock::now();
      int expected = 0;
      if (signal_.compare_exchange_strong(expected, received)) {
        first = now;
        if (on_first_) on_first_(received);
      } else if (received != expected || now - first > repeat_window) {
        ::_exit(128 + received);
      }
    }
  });
}

StopRequest::~StopRequest() {
  watcher_.request_stop();
  watcher_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace megalith
