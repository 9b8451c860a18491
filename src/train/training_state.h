// Everything a run changes as it goes: the objects of one model in training and how far they are.
#pragma once

#include <cstdint>

#include "core/options.h"
#include "model/gpt_config.h"
#include "model/gpt_parameters.h"
#include "model/gpt_stage.h"
#include "model/parameter_store.h"
#include "optim/num_microbatches_calculator.h"
#include "optim/optimizer.h"
#include "optim/optimizer_param_scheduler.h"
#include "train/batch_reader.h"
#include "train/interval_sums.h"

namespace megalith {

struct TrainingState {
  /// Takes all device memory of the run; weights are undefined until initialised or loaded.
  TrainingState(Device& device, const TrainOptions& options, const GptConfig& config)
      : store(device, build_gpt_parameter_table(config),
              /*with_gradients=*/true, most_words(config, options.global_batch_size)),
        optimizer(store, optimizer_config(options)),
        scheduler(param_schedule(options)),
        stage(device, config, store, StageRange::whole(config), {options.micro_batch_size, 1, true, false}),
        batch(device, config, options.micro_batch_size, options.reset_attention_mask,
              most_words(config, options.global_batch_size)) {}

  ParameterStore store;
  Optimizer optimizer;
  OptimizerParamScheduler scheduler;
  GptStage stage;
  DeviceBatch batch;

  std::int64_t iteration = 0;         ///< finished iterations
  std::int64_t consumed_samples = 0;  ///< training samples they read
  IntervalSums interval;
};

}  // namespace megalith
