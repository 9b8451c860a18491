// SIGINT and SIGTERM without a signal handler, so without global state: the first asks long work to end well
// (finish the step, save, leave no half file), the second ends the process at once with status 130 or 143.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace megalith {

/// A repeat of the same signal within a fifth of a second is the same request: `timeout` and terminals may
/// deliver one twice. While it lives, both signals are blocked in every thread started later and a watcher
/// thread receives them. Make it before any other thread.
class StopRequest {
 public:
  /// `on_first` is called by the watcher thread when the first signal has come.
  explicit StopRequest(std::function<void(int signal)> on_first = {});
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The signal that came first, 0 while there was none.
  int signal() const { return signal_.load(std::memory_order_relaxed); }

 private:
  std::function<void(int)> on_first_;
  ::sigset_t signals_{};
  ::sigset_t before_{};
  std::atomic<int> signal_{0};
  std::jthread watcher_;
};

}  // namespace megalith
