#include "train/stop_request.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

namespace megalith {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopRequest::StopRequest() {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

StopRequest::~StopRequest() {
  done_.store(true);
  watcher_.join();
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void StopRequest::watch() {
  const sigset_t set = stop_signals();
  constexpr std::timespec patience{0, 50'000'000};
  while (!done_.load()) {
    const int received = ::sigtimedwait(&set, nullptr, &patience);
    if (received <= 0) continue;
    int expected = 0;
    if (!signal_.compare_exchange_strong(expected, received)) ::_exit(128 + received);
  }
}

}  // namespace megalith
