// The settings of a training run, one plain field per key of the config. Defaults, rules, help texts and TOML
// sections stand in core/train_schema.cpp; a field and its key have one name, Megatron-LM's flag.
//
// After resolve_options() (core/train_schema.h) derived defaults are filled in: ffn_hidden_size, kv_channels,
// global_batch_size, train_iters, max_position_embeddings, lr_decay_iters and so on always hold their
// effective value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace megalith {

struct TrainOptions {
  // [model]
  std::int64_t num_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t ffn_hidden_size = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t kv_channels = 0;
  std::int64_t seq_length = 0;
  std::int64_t max_position_embeddings = 0;
  std::int64_t vocab_size = 0;  ///< true vocabulary; 0: the tokenizer's
  std::int64_t make_vocab_size_divisible_by = 0;
  bool megatron_padded_softmax = false;
  std::string position_embedding_type;
  std::string normalization;
  double norm_epsilon = 0;
  std::string activation;  ///< "gelu_tanh" (GPT-2, Megatron's fused bias-gelu) or "gelu_erf"
  bool bias_gelu_fusion =
      true;  ///< Megatron's switch: without it (and without `activation`) its GELU is the exact one
  bool untie_embeddings_and_output_weights = false;
  double hidden_dropout = 0;
  double attention_dropout = 0;
  double init_method_std = 0;

  // [training]
  std::int64_t micro_batch_size = 0;
  std::int64_t global_batch_size = 0;
  std::vector<std::int64_t> rampup_batch_size;  ///< start, increment, samples; empty: none
  std::int64_t train_iters = 0;
  std::int64_t train_samples = 0;
  std::int64_t exit_interval = 0;
  double exit_duration_in_mins = 0;
  std::int64_t seed = 0;
  std::string recompute_granularity;  ///< "", "full", "selective"
  std::string recompute_method;       ///< "", "uniform", "block"
  std::int64_t recompute_num_layers = 0;
  bool recompute_activations = false;  ///< Megatron's short form of selective
  bool calculate_per_token_loss = true;
  bool dry_run = false;
  std::string nan_loss;  ///< "stop" or "skip"

  // [optimizer]
  std::string optimizer;  ///< "adam" (AdamW, as in Megatron) or "sgd"
  double lr = 0;
  double min_lr = 0;
  // The schedule counts consumed samples. After resolve_options() the *_samples fields below hold the
  // effective lengths whether the run was given in iterations or in samples; where lr_warmup_fraction is not
  // 0 it rules instead: warm-up = lr_warmup_fraction * lr_decay_samples, not rounded, as in Megatron-LM.
  std::string lr_decay_style;
  std::int64_t lr_decay_iters = 0;
  std::int64_t lr_decay_samples = 0;
  std::int64_t lr_warmup_iters = 0;
  std::int64_t lr_warmup_samples = 0;
  double lr_warmup_fraction = 0;
  double lr_warmup_init = 0;
  std::string lr_wsd_decay_style;
  std::int64_t lr_wsd_decay_iters = 0;
  std::int64_t lr_wsd_decay_samples = 0;
  bool override_opt_param_scheduler = false;
  bool use_checkpoint_opt_param_scheduler = false;
  double weight_decay = 0;
  double start_weight_decay = 0;
  double end_weight_decay = 0;
  std::string weight_decay_incr_style;
  double clip_grad = 0;
  double adam_beta1 = 0;
  double adam_beta2 = 0;
  double adam_eps = 0;
  double sgd_momentum = 0;

  // [precision]
  bool bf16 = false;
  bool fp16 = false;
  bool fp64 = false;  ///< reference device
  bool accumulate_allreduce_grads_in_fp32 = true;

  // [device]
  std::string device;
  std::int64_t num_threads = 0;
  bool strict = false;

  // [data]
  std::vector<std::string> data_path;  ///< path, or weight path weight path ...
  std::vector<std::string> train_data_path;
  std::vector<std::string> valid_data_path;
  std::vector<std::string> test_data_path;
  std::string split;
  std::string data_cache_path;
  bool mock_data = false;  ///< random tokens, for timing
  std::string tokenizer_type;
  std::string vocab_file;
  std::string merge_file;
  std::string tokenizer_model;
  bool reset_position_ids = false;
  bool reset_attention_mask = false;
  bool eod_mask_loss = false;

  // [evaluation]
  std::int64_t eval_interval = 0;
  std::int64_t eval_iters = 0;
  bool skip_train = false;
  std::vector<std::string> sample_prompt;
  std::int64_t sample_tokens = 0;

  // [checkpoint]
  std::string save;
  std::string load;
  std::int64_t save_interval = 0;
  std::int64_t save_retain = 0;  ///< newest checkpoints to keep; 0: all
  std::int64_t save_retain_interval = 0;
  std::int64_t ckpt_step = 0;
  bool finetune = false;
  bool no_load_optim = false;
  bool no_load_rng = false;
  bool async_save = false;
  bool no_save_optim = false;
  bool no_save_rng = false;
  bool exit_on_missing_checkpoint = false;

  // [logging]
  std::int64_t log_interval = 0;
  std::string tensorboard_dir;
  bool no_tensorboard = false;
  bool progress = true;
  bool profile = false;
  std::int64_t profile_step_start = 0;
  std::int64_t profile_step_end = 0;

  // [parallel]: only 1 (false) is accepted until ranks exist
  std::int64_t tensor_model_parallel_size = 1;
  std::int64_t pipeline_model_parallel_size = 1;
  std::int64_t context_parallel_size = 1;
  std::int64_t expert_model_parallel_size = 1;
};

}  // namespace megalith
