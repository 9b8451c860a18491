#include "core/stop_request.h"

#include <unistd.h>

#include <ctime>

namespace megalith {

StopRequest::StopRequest() {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  watcher_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const timespec patience{0, 20'000'000};
      const int received = ::sigtimedwait(&signals_, nullptr, &patience);
      if (received <= 0) continue;
      int expected = 0;
      if (!signal_.compare_exchange_strong(expected, received)) ::_exit(128 + received);
    }
  });
}

StopRequest::~StopRequest() {
  watcher_.request_stop();
  watcher_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace megalith
