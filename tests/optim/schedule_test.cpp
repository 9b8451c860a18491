#include <gtest/gtest.h>

#include "core/error.h"
#include "optim/num_microbatches_calculator.h"
#include "optim/optimizer_param_scheduler.h"
#include "tests/optim/schedule_tables.h"

namespace megalith {
namespace {

TrainOptions options() {
  TrainOptions all;
  all.global_batch_size = 1;
  all.micro_batch_size = 1;
  all.train_iters = 2000;
  all.lr = 6e-4;
  all.min_lr = 6e-5;
  all.lr_warmup_init = 1e-6;
  all.lr_warmup_iters = 300;
  all.lr_wsd_decay_iters = 400;
  all.weight_decay = 0.1;
  return all;
}

TEST(OptimizerParamScheduler, LearningRatesFollowTheTable) {
  for (const testing::RateRow& row : testing::rate_rows) {
    TrainOptions all = options();
    all.lr_decay_style = row.style;
    all.lr_wsd_decay_style = row.wsd_style;
    OptimizerParamScheduler scheduler(param_schedule(all));
    scheduler.step(row.steps);
    EXPECT_NEAR(scheduler.learning_rate(), row.rate, 1e-15 * 6e-4)
        << row.style << " " << row.wsd_style << " " << row.steps;
  }
}

TEST(OptimizerParamScheduler, WeightDecaysFollowTheTable) {
  for (const testing::DecayRow& row : testing::decay_rows) {
    TrainOptions all = options();
    all.start_weight_decay = 0.01;
    all.end_weight_decay = 0.1;
    all.weight_decay_incr_style = row.style;
    EXPECT_NEAR(weight_decay(param_schedule(all), row.steps), row.decay, 1e-16)
        << row.style << " " << row.steps;
  }
  EXPECT_EQ(weight_decay(param_schedule(options()), 7), 0.1);
}

TEST(OptimizerParamScheduler, CountsIterationsInSamples) {
  TrainOptions all = options();
  all.global_batch_size = 32;
  ParamSchedule schedule = param_schedule(all);
  EXPECT_EQ(schedule.warmup_steps, 300.0 * 32);
  EXPECT_EQ(schedule.decay_steps, 2000 * 32);
  EXPECT_EQ(schedule.wsd_decay_steps, 400 * 32);
  EXPECT_EQ(schedule.weight_decay_steps, 2000 * 32);
  all.lr_warmup_iters = 0;
  all.lr_warmup_fraction = 0.01;
  all.lr_decay_iters = 1001;
  schedule = param_schedule(all);
  EXPECT_DOUBLE_EQ(schedule.warmup_steps, 0.01 * 1001 * 32);
  all.train_samples = 5000;
  all.lr_decay_samples = 4000;
  all.lr_warmup_fraction = 0.0;
  all.lr_warmup_samples = 100;
  schedule = param_schedule(all);
  EXPECT_EQ(schedule.decay_steps, 4000);
  EXPECT_EQ(schedule.warmup_steps, 100.0);
  EXPECT_EQ(schedule.weight_decay_steps, 5000);
}

TEST(OptimizerParamScheduler, RefusesContradictions) {
  const auto refused = [](auto change) {
    TrainOptions all = options();
    change(all);
    EXPECT_THROW(param_schedule(all), Error);
  };
  refused([](TrainOptions& all) { all.min_lr = 1.0; });
  refused([](TrainOptions& all) { all.lr_warmup_init = 1.0; });
  refused([](TrainOptions& all) { all.lr_warmup_iters = 2000; });
  refused([](TrainOptions& all) { all.lr_decay_style = "exponential"; });
  refused([](TrainOptions& all) {
    all.lr_decay_style = "WSD";
    all.lr_wsd_decay_iters = 0;
  });
  refused([](TrainOptions& all) {
    all.weight_decay_incr_style = "linear";
    all.start_weight_decay = 0.2;
    all.end_weight_decay = 0.1;
  });
}

TEST(OptimizerParamScheduler, StateRoundTrips) {
  TrainOptions all = options();
  all.lr_decay_style = "cosine";
  OptimizerParamScheduler first(param_schedule(all));
  first.step(777);
  const nlohmann::json state = nlohmann::json::parse(first.state().dump());
  OptimizerParamScheduler second(param_schedule(all));
  second.load(state, false, false);
  EXPECT_EQ(second.steps(), 777);
  EXPECT_EQ(second.learning_rate(), first.learning_rate());

  all.lr = 1e-3;
  OptimizerParamScheduler other(param_schedule(all));
  EXPECT_THROW(other.load(state, false, false), Error);
  other.load(state, true, false);
  EXPECT_EQ(other.steps(), 777);
  EXPECT_NE(other.learning_rate(), first.learning_rate());
  other.load(state, false, true);
  EXPECT_EQ(other.learning_rate(), first.learning_rate());

  nlohmann::json damaged = state;
  damaged.erase("max_lr");
  EXPECT_THROW(other.load(damaged, false, true), Error);
  damaged = state;
  damaged["num_steps"] = -1;
  EXPECT_THROW(other.load(damaged, true, false), Error);
}

TrainOptions ramp(std::vector<std::int64_t> values, std::int64_t global_batch = 64,
                  std::int64_t micro_batch = 4) {
  TrainOptions all = options();
  all.global_batch_size = global_batch;
  all.micro_batch_size = micro_batch;
  all.rampup_batch_size = std::move(values);
  return all;
}

TEST(NumMicrobatchesCalculator, RampsFollowTheTable) {
  for (const testing::Ramp& row : testing::ramps) {
    const NumMicrobatchesCalculator calculator(
        ramp(row.rampup_batch_size, row.global_batch_size, row.micro_batch_size), row.data_parallel);
    std::int64_t whole = 0;
    for (const testing::BatchRow& step : row.rows) {
      EXPECT_EQ(calculator.global_batch_size(step.consumed), step.size) << step.consumed;
      EXPECT_EQ(calculator.num_microbatches(step.consumed), step.microbatches) << step.consumed;
      whole += step.consumed + step.size <= row.samples ? 1 : 0;
    }
    EXPECT_EQ(calculator.iterations_for(row.samples), whole) << row.samples;
  }
}

TEST(NumMicrobatchesCalculator, WithoutARampNothingChanges) {
  EXPECT_EQ(NumMicrobatchesCalculator(ramp({})).num_microbatches(0), 16);
  EXPECT_EQ(NumMicrobatchesCalculator(ramp({}), 2).num_microbatches(1'000'000), 8);
  EXPECT_EQ(NumMicrobatchesCalculator(ramp({})).iterations_for(640), 10);
}

TEST(NumMicrobatchesCalculator, RefusesWhatDoesNotFit) {
  EXPECT_THROW(NumMicrobatchesCalculator(ramp({16, 8})), Error);
  EXPECT_THROW(NumMicrobatchesCalculator(ramp({16, 7, 500})), Error);
  EXPECT_THROW(NumMicrobatchesCalculator(ramp({128, 8, 500})), Error);
  EXPECT_THROW(NumMicrobatchesCalculator(ramp({18, 2, 500})), Error);
  EXPECT_THROW(NumMicrobatchesCalculator(ramp({16, 8, -1})), Error);
  TrainOptions all = ramp({});
  all.global_batch_size = 63;
  EXPECT_THROW(NumMicrobatchesCalculator{all}, Error);
}

}  // namespace
}  // namespace megalith
