// Rows of far memory that will be needed soon, asked for a few at a time. A core keeps only some ten to
// twenty requests for far memory in flight, each for a hundred nanoseconds or more, and rows of one head lie
// pages apart, where hardware does not look ahead. So whoever computes for long asks between its steps for
// what comes next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"

namespace megalith {

class FarRows {
 public:
  /// Forgets what was not asked for yet.
  void clear() {
    count_ = 0;
    current_ = 0;
    rows_ = 0;
  }

  /// `rows` rows of `bytes` bytes, `step` bytes apart; at most eight such runs are remembered.
  void add(const void* first, std::int64_t step, std::int64_t bytes, std::int64_t rows) {
    if (rows <= 0 || count_ == runs_.size()) return;
    runs_[count_++] = {static_cast<const std::byte*>(first), step, bytes, rows};
    rows_ += rows;
  }

  /// Asks for everything in about so many calls of ask().
  void spread(std::int64_t calls) { rate_ = rows_ / (calls > 0 ? calls : 1) + 1; }

  void ask() {
    for (std::int64_t i = 0; i < rate_ && current_ < count_; ++i) {
      Run& run = runs_[current_];
      for (std::int64_t byte = 0; byte < run.bytes; byte += line) hwy::Prefetch(run.next + byte);
      run.next += run.step;
      if (--run.rows == 0) ++current_;
    }
  }

 private:
  static constexpr std::int64_t line = 64;
  struct Run {
    const std::byte* next;
    std::int64_t step;
    std::int64_t bytes;
    std::int64_t rows;
  };
  std::array<Run, 8> runs_{};
  std::size_t count_ = 0;
  std::size_t current_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t rate_ = 1;
};

}  // namespace megalith
