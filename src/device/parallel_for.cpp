#include "device/parallel_for.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(MEGALITH_HAVE_OPENMP)
#include <omp.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

#include "core/error.h"

namespace megalith {

#if defined(MEGALITH_HAVE_OPENMP)

class ThreadTeam::Pool {
 public:
  explicit Pool(int) {}

  /// `call` must not throw.
  void run(int parts, const Call& call) {
#pragma omp parallel num_threads(parts)
    {
      // The runtime may give fewer threads than asked for.
      for (int part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) {
        call.invoke(call.body, 0, part);
      }
    }
  }
};

#else

class ThreadTeam::Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) {
      workers_.emplace_back([this, i] { work(i); });
    }
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// `call` must not throw.
  void run(int parts, const Call& call) {
    {
      const std::lock_guard lock(mutex_);
      call_ = &call;
      parts_ = parts;
      running_ = static_cast<int>(workers_.size());
      ++round_;
    }
    start_.notify_all();
    call.invoke(call.body, 0, 0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void work(int part) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      start_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      const Call* call = call_;
      const bool wanted = part < parts_;
      lock.unlock();
      if (wanted) call->invoke(call->body, 0, part);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  std::vector<std::thread> workers_;
  const Call* call_ = nullptr;
  std::uint64_t round_ = 0;
  int parts_ = 0;
  int running_ = 0;
  bool stopping_ = false;
};

#endif

/// Who is inside a loop of this team now, and the lock that lets one caller in at a time.
class ThreadTeam::Gate {
 public:
  explicit Gate(int threads) : inside_(static_cast<std::size_t>(threads)) {}

  bool holds_this_thread() const {
    const std::thread::id self = std::this_thread::get_id();
    for (const std::atomic<std::thread::id>& id : inside_) {
      if (id.load(std::memory_order_relaxed) == self) return true;
    }
    return false;
  }
  void enter(int part) {
    inside_[static_cast<std::size_t>(part)].store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void leave(int part) { inside_[static_cast<std::size_t>(part)].store({}, std::memory_order_relaxed); }
  std::mutex& mutex() { return mutex_; }

 private:
  std::vector<std::atomic<std::thread::id>> inside_;
  std::mutex mutex_;
};

namespace {

void rethrow_first(const std::vector<std::exception_ptr>& errors) {
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

ThreadTeam::ThreadTeam(int threads)
    : threads_(threads), gate_(std::make_unique<Gate>(threads)), pool_(std::make_unique<Pool>(threads)) {
  MEGALITH_ASSERT(threads >= 1, format("a team of {} threads", threads));
}

ThreadTeam::~ThreadTeam() = default;

void ThreadTeam::run(int parts, const Call& call) {
  MEGALITH_ASSERT(parts >= 0 && parts <= threads_, format("{} parts on {} threads", parts, threads_));
  if (threads_ == 1 || gate_->holds_this_thread()) {
    for (int part = 0; part < parts; ++part) call.invoke(call.body, 0, part);
    return;
  }
  const std::lock_guard one_caller(gate_->mutex());
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(parts));
  const auto guarded = [&](int part) {
    gate_->enter(part);
    try {
      call.invoke(call.body, 0, part);
    } catch (...) {
      errors[static_cast<std::size_t>(part)] = std::current_exception();
    }
    gate_->leave(part);
  };
  const Call guarded_call = make_call<>(guarded);
  pool_->run(parts, guarded_call);
  rethrow_first(errors);
}

void ThreadTeam::run_tasks(std::int64_t count, const Call& call) {
  if (count <= 0) return;
  std::atomic<std::int64_t> next{0};
  const int parts = count < threads_ ? static_cast<int>(count) : threads_;
  run_parts(parts, [&](int part) {
    for (std::int64_t task = next.fetch_add(1); task < count; task = next.fetch_add(1)) {
      call.invoke(call.body, task, part);
    }
  });
}

int usable_processors() {
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    const int count = CPU_COUNT(&mask);
    if (count > 0) return count;
  }
#endif
  const unsigned found = std::thread::hardware_concurrency();
  return found == 0 ? 1 : static_cast<int>(found);
}

}  // namespace megalith
