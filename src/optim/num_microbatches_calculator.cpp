#include "optim/num_microbatches_calculator.h"

#include <algorithm>

#include "core/error.h"

namespace megalith {

NumMicrobatchesCalculator::NumMicrobatchesCalculator(const TrainOptions& options, std::int64_t data_parallel)
    : final_(options.global_batch_size),
      start_(options.global_batch_size),
      unit_(options.micro_batch_size * data_parallel) {
  if (unit_ <= 0) {
    fail(ErrorKind::usage, "micro_batch_size", "is {}; expected at least 1", options.micro_batch_size);
  }
  if (final_ <= 0 || final_ % unit_ != 0) {
    fail(ErrorKind::usage, "global_batch_size",
         "is {}; expected a multiple of micro_batch_size {} times {} data-parallel ranks; nearest is {}",
         final_, options.micro_batch_size, data_parallel, std::max(final_ / unit_, std::int64_t{1}) * unit_);
  }
  if (options.rampup_batch_size.empty()) return;
  if (options.rampup_batch_size.size() != 3) {
    fail(ErrorKind::usage, "rampup_batch_size", "has {} values; expected three: start, increment, samples",
         options.rampup_batch_size.size());
  }
  start_ = options.rampup_batch_size[0];
  increment_ = options.rampup_batch_size[1];
  ramp_samples_ = options.rampup_batch_size[2];
  if (start_ <= 0 || increment_ <= 0 || ramp_samples_ < 0) {
    fail(ErrorKind::usage, "rampup_batch_size",
         "is {} {} {}; start and increment are at least 1, samples at least 0", start_, increment_,
         ramp_samples_);
  }
  if (start_ > final_ || (final_ - start_) % increment_ != 0) {
    fail(ErrorKind::usage, "rampup_batch_size", "steps of {} do not lead from {} to global_batch_size {}",
         increment_, start_, final_);
  }
  if (start_ % unit_ != 0 || (start_ != final_ && increment_ % unit_ != 0)) {
    fail(ErrorKind::usage, "rampup_batch_size",
         "start {} and increment {} must be multiples of micro_batch_size {} times {} data-parallel ranks",
         start_, increment_, options.micro_batch_size, data_parallel);
  }
}

std::int64_t NumMicrobatchesCalculator::global_batch_size(std::int64_t consumed_samples) const {
  if (start_ == final_ || consumed_samples > ramp_samples_ || ramp_samples_ == 0) return final_;
  const std::int64_t increments = (final_ - start_) / increment_;
  const double samples_each = static_cast<double>(ramp_samples_) / static_cast<double>(increments);
  const auto done = static_cast<std::int64_t>(static_cast<double>(consumed_samples) / samples_each);
  return start_ + std::min(done, increments) * increment_;
}

std::int64_t NumMicrobatchesCalculator::num_microbatches(std::int64_t consumed_samples) const {
  return global_batch_size(consumed_samples) / unit_;
}

std::int64_t NumMicrobatchesCalculator::iterations_for(std::int64_t train_samples) const {
  if (start_ == final_) return train_samples / final_;
  std::int64_t iterations = 0;
  std::int64_t consumed = 0;
  while (consumed <= ramp_samples_ && consumed <= train_samples) {
    consumed += global_batch_size(consumed);
    ++iterations;
  }
  if (train_samples > consumed) iterations += (train_samples - consumed) / final_;
  return iterations;
}

}  // namespace megalith
