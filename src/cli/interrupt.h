// Notices Ctrl-C and SIGTERM without a signal handler, so without global state.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace megalith {

/// While it lives, SIGINT and SIGTERM set interrupted(); a second one ends the process at once with status
/// 130. Make it before any other thread: threads made later inherit that they leave these signals alone.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

 private:
  ::sigset_t signals_{};
  ::sigset_t before_{};
  std::atomic<bool> interrupted_{false};
  std::jthread thread_;
};

}  // namespace megalith
