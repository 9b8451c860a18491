#include "cli/interrupt.h"

#include <unistd.h>

#include <ctime>

namespace megalith {

InterruptWatch::InterruptWatch() {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const timespec wait{0, 20'000'000};
      if (::sigtimedwait(&signals_, nullptr, &wait) < 0) continue;
      if (interrupted_.exchange(true)) ::_exit(130);
    }
  });
}

InterruptWatch::~InterruptWatch() {
  thread_.request_stop();
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace megalith
