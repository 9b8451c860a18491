#include "device/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace megalith {
namespace {

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

Ranges ranges_of(ThreadTeam& team, std::int64_t count, std::int64_t grain) {
  Ranges ranges(static_cast<std::size_t>(team.threads()), {-1, -1});
  team.parallel_for_indexed(count, grain, [&](int part, std::int64_t begin, std::int64_t end) {
    ranges[static_cast<std::size_t>(part)] = {begin, end};
  });
  std::erase(ranges, std::pair<std::int64_t, std::int64_t>{-1, -1});
  return ranges;
}

TEST(parallel_for, covers_every_element_once_and_respects_the_grain) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadTeam team(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 16, 17, 100, 1000}) {
      for (const std::int64_t grain : {0, 1, 4, 16, 2000}) {
        std::int64_t next = 0;
        for (const auto& [begin, end] : ranges_of(team, count, grain)) {
          EXPECT_EQ(begin, next);
          EXPECT_LT(begin, end);
          if (grain > 1 && end != count) {
            EXPECT_EQ(end % grain, 0) << count << " " << grain;
          }
          next = end;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

TEST(parallel_for, partition_depends_on_count_and_threads_alone) {
  ThreadTeam team(3);
  const Ranges expected{{0, 33}, {33, 66}, {66, 100}};
  for (int repeat = 0; repeat < 50; ++repeat) EXPECT_EQ(ranges_of(team, 100, 1), expected);
}

TEST(parallel_for, small_counts_use_few_parts) {
  ThreadTeam team(4);
  EXPECT_EQ(ranges_of(team, 10, 8), (Ranges{{0, 8}, {8, 10}}));
  EXPECT_EQ(ranges_of(team, 8, 8), (Ranges{{0, 8}}));
}

TEST(parallel_for, runs_on_several_threads) {
  ThreadTeam team(2);
  std::atomic<int> arrived{0};
  // Each part waits for the other: this hangs (and times out) where parts run one after another.
  team.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST(parallel_for, exceptions_reach_the_caller_and_the_team_survives) {
  ThreadTeam team(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> finished{0};
    try {
      team.parallel_for(3, 1, [&](std::int64_t begin, std::int64_t) {
        if (begin >= 1) throw std::runtime_error(begin == 1 ? "one" : "two");
        ++finished;
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "one");
    }
    EXPECT_EQ(finished.load(), 1);
    EXPECT_EQ(ranges_of(team, 3, 1).size(), 3U);
  }
}

TEST(parallel_for, a_loop_inside_a_loop_runs_on_the_same_thread) {
  ThreadTeam team(3);
  std::vector<std::int64_t> sums(3, 0);
  team.parallel_for(3, 1, [&](std::int64_t outer, std::int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    team.parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      for (std::int64_t i = begin; i < end; ++i) sums[static_cast<std::size_t>(outer)] += i;
    });
    EXPECT_THROW(team.parallel_for(3, 1, [](std::int64_t, std::int64_t) { throw std::logic_error("inner"); }),
                 std::logic_error);
  });
  EXPECT_EQ(sums, (std::vector<std::int64_t>(3, 4950)));
}

TEST(parallel_for, several_callers_take_turns) {
  ThreadTeam team(2);
  std::int64_t unguarded = 0;
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        team.parallel_for(2, 1, [&](std::int64_t begin, std::int64_t) {
          if (begin == 0) ++unguarded;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(unguarded, 600);
}

TEST(parallel_for, tasks_run_once_each_with_slots_of_their_own) {
  ThreadTeam team(3);
  std::vector<int> runs(1000, 0);
  std::vector<std::atomic<int>> busy(3);
  team.parallel_tasks(1000, [&](std::int64_t task, int slot) {
    EXPECT_EQ(busy[static_cast<std::size_t>(slot)].exchange(1), 0);
    ++runs[static_cast<std::size_t>(task)];
    busy[static_cast<std::size_t>(slot)] = 0;
  });
  EXPECT_EQ(runs, std::vector<int>(1000, 1));
  team.parallel_tasks(0, [](std::int64_t, int) { FAIL(); });
  EXPECT_THROW(team.parallel_tasks(5, [](std::int64_t, int) { throw std::runtime_error("task"); }),
               std::runtime_error);
}

TEST(parallel_for, usable_processors_is_positive) {
  EXPECT_GE(usable_processors(), 1);
}

}  // namespace
}  // namespace megalith
