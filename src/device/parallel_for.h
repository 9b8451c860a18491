// ThreadTeam: the threads of one device, and the only way a kernel runs a loop on several of them. Built on
// OpenMP, or on a pool of its own where the build has no OpenMP (the thread sanitizer reports false races in
// libgomp).
//
// Work is cut by count and number of threads alone, so a loop's result depends on nothing else. A loop
// started inside a loop of the same team runs on the calling thread. Loops of different calling threads run
// one after another. An exception in a loop's body reaches the caller after all parts have ended; of several,
// the lowest part's.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace megalith {

class ThreadTeam {
 public:
  /// `threads` counts the calling thread; at least 1.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return threads_; }

  /// Calls body(begin, end) for consecutive ranges that cover [0, count), at most one per thread. Every
  /// boundary but the last is a multiple of `grain`, and a range holds at least `grain` elements where there
  /// are that many.
  template <typename Body>
  void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
    parallel_for_indexed(count, grain,
                         [&body](int, std::int64_t begin, std::int64_t end) { body(begin, end); });
  }

  /// The same with body(part, begin, end); part < threads() numbers the ranges in order, no two running at
  /// once with the same number, so it may choose scratch memory or a place for a partial sum (a loop inside a
  /// loop counts its parts from 0 again).
  template <typename Body>
  void parallel_for_indexed(std::int64_t count, std::int64_t grain, const Body& body) {
    if (count <= 0) return;
    const std::int64_t unit = grain < 1 ? 1 : grain;
    const std::int64_t units = (count + unit - 1) / unit;
    const int parts = units < threads_ ? static_cast<int>(units) : threads_;
    run_parts(parts, [&](int part) {
      const std::int64_t begin = units * part / parts * unit;
      const std::int64_t end = units * (part + 1) / parts * unit;
      body(part, begin, end < count ? end : count);
    });
  }

  /// Calls body(task, slot) for every task in [0, count), each when a thread is free; slot < threads() and no
  /// two tasks run at once with the same slot. For tasks of unequal size that write to disjoint places: which
  /// thread runs a task varies, its result must not.
  template <typename Body>
  void parallel_tasks(std::int64_t count, const Body& body) {
    run_tasks(count, make_call<std::int64_t>(body));
  }

  /// Calls body(part) for every part in [0, parts), parts <= threads().
  template <typename Body>
  void run_parts(int parts, const Body& body) {
    if (parts == 1) {
      body(0);
      return;
    }
    run(parts, make_call<>(body));
  }

 private:
  class Gate;
  class Pool;

  /// A callable by reference: body(part) or body(task, part).
  struct Call {
    const void* body = nullptr;
    void (*invoke)(const void* body, std::int64_t task, int part) = nullptr;
  };
  template <typename... Task, typename Body>
  static Call make_call(const Body& body) {
    return {&body, [](const void* erased, [[maybe_unused]] std::int64_t task, int part) {
              const Body& typed = *static_cast<const Body*>(erased);
              if constexpr (sizeof...(Task) == 0) {
                typed(part);
              } else {
                typed(task, part);
              }
            }};
  }

  void run(int parts, const Call& call);
  void run_tasks(std::int64_t count, const Call& call);

  int threads_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<Pool> pool_;
};

/// Processors this process may run on (the affinity mask where the system has one); at least 1.
int usable_processors();

}  // namespace megalith
