#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/philox.h"
#include "device/reference/queues.h"

namespace megalith::reference {
namespace {

constexpr std::size_t queue_count = 3;
// A program that never synchronizes would keep its whole history; beyond this much, some of it runs.
constexpr std::size_t most_pending = 8192;

class StrictQueues final : public Queues {
 public:
  explicit StrictQueues(std::uint64_t seed)
      : preference_(seed % 6), key_(philox_key(seed, "strict queues")) {}

  void enqueue(QueueKind queue, Work work) override {
    const std::lock_guard lock(mutex_);
    push(queue, {std::move(work), std::nullopt});
  }

  Event record(QueueKind queue) override {
    const std::lock_guard lock(mutex_);
    return {queue, line(queue).enqueued};
  }

  void wait(QueueKind queue, const Event& event) override {
    const std::lock_guard lock(mutex_);
    MEGALITH_ASSERT(
        event.number <= line(event.queue).enqueued,
        format("waiting for event {} of a queue with {} entries", event.number, line(event.queue).enqueued));
    if (event.queue != queue) push(queue, {nullptr, event});
  }

  void synchronize(QueueKind queue) override {
    const std::lock_guard lock(mutex_);
    while (!line(queue).entries.empty()) run_one(static_cast<std::size_t>(queue));
  }

  void drain() override {
    const std::lock_guard lock(mutex_);
    for (std::size_t queue = draw() % queue_count; pending() > 0; queue = (queue + 1) % queue_count) {
      while (!lines_[queue].entries.empty()) run_one(queue);
    }
  }

 private:
  /// Work, or a place where the queue stops until an event has passed.
  struct Entry {
    Work work;
    std::optional<Event> awaited;
  };
  struct Line {
    std::deque<Entry> entries;
    std::uint64_t enqueued = 0;
    std::uint64_t done = 0;
  };

  Line& line(QueueKind queue) { return lines_[static_cast<std::size_t>(queue)]; }

  std::size_t pending() const {
    std::size_t count = 0;
    for (const Line& each : lines_) count += each.entries.size();
    return count;
  }

  void push(QueueKind queue, Entry entry) {
    line(queue).entries.push_back(std::move(entry));
    ++line(queue).enqueued;
    if (pending() > most_pending) {
      while (pending() > most_pending / 2) run_one(draw() % queue_count);
    }
  }

  bool may_go_on(std::size_t queue) {
    if (lines_[queue].entries.empty()) return false;
    const std::optional<Event>& awaited = lines_[queue].entries.front().awaited;
    return !awaited || line(awaited->queue).done >= awaited->number;
  }

  std::uint32_t draw() { return philox({draws_++, 0, 0, 0}, key_)[0]; }

  std::size_t choose(const std::vector<std::size_t>& ready, std::size_t wanted) {
    const auto is_ready = [&](std::size_t queue) { return may_go_on(queue); };
    if (preference_ < queue_count && is_ready(preference_)) return preference_;
    if (preference_ == 3 && is_ready(wanted)) return wanted;
    if (preference_ == 4 && ready.size() > 1) {
      std::vector<std::size_t> others;
      for (const std::size_t queue : ready) {
        if (queue != wanted) others.push_back(queue);
      }
      return others[draw() % others.size()];
    }
    return ready[draw() % ready.size()];
  }

  void run_one(std::size_t wanted) {
    std::vector<std::size_t> ready;
    for (std::size_t queue = 0; queue < queue_count; ++queue) {
      if (may_go_on(queue)) ready.push_back(queue);
    }
    // Events are recorded before they are waited for, so some queue can always go on.
    MEGALITH_ASSERT(!ready.empty(), "every queue waits for another");
    Line& chosen = lines_[choose(ready, wanted)];
    const Entry entry = std::move(chosen.entries.front());
    chosen.entries.pop_front();
    ++chosen.done;
    if (entry.work) entry.work();
  }

  std::mutex mutex_;
  std::array<Line, queue_count> lines_;
  std::size_t preference_;
  PhiloxKey key_;
  std::uint32_t draws_ = 0;
};

}  // namespace

std::unique_ptr<Queues> make_strict_queues(std::uint64_t seed) {
  return std::make_unique<StrictQueues>(seed);
}

}  // namespace megalith::reference
