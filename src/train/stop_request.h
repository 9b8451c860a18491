// SIGINT and SIGTERM: the first asks the training loop to finish its step, save and leave; the second ends
// the process at once with status 130 or 143.
#pragma once

#include <atomic>
#include <thread>

namespace megalith {

/// While it lives, both signals are blocked in every thread started later and a watcher thread receives them.
/// Create it before any other thread.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The signal that came first, 0 while there was none.
  int signal() const { return signal_.load(); }

 private:
  void watch();

  std::atomic<int> signal_{0};
  std::atomic<bool> done_{false};
  std::thread watcher_;
};

}  // namespace megalith
