#include "core/train_schema.h"

#include "core/error.h"

namespace megalith {
namespace {

constexpr double longest_sequence = 1 << 24;
constexpr double most_samples = 1e15;

void declare_model(Schema& schema, TrainOptions& options) {
  const std::string later = "this version trains GPT-2's architecture; use ";
  schema.section("model", "The transformer");
  schema.add("num_layers", &options.num_layers, 0, "transformer layers")
      .required()
      .at_least(1)
      .at_most(65536);
  schema
      .add("hidden_size", &options.hidden_size, 0,
           "width of the residual stream; num_attention_heads divides it")
      .required()
      .at_least(1)
      .at_most(1 << 20);
  schema.add("ffn_hidden_size", &options.ffn_hidden_size, 0, "width of the MLP's inner layer")
      .at_least(1)
      .at_most(1 << 22)
      .default_text("4 * hidden_size");
  schema.add("num_attention_heads", &options.num_attention_heads, 0, "attention heads")
      .required()
      .at_least(1)
      .at_most(1 << 16);
  schema.add("kv_channels", &options.kv_channels, 0, "width of one head")
      .at_least(1)
      .at_most(1 << 16)
      .default_text("hidden_size / num_attention_heads");
  schema.add("seq_length", &options.seq_length, 0, "tokens of a training sample")
      .required()
      .at_least(1)
      .at_most(longest_sequence);
  schema.add("max_position_embeddings", &options.max_position_embeddings, 0, "rows of the position embedding")
      .at_least(1)
      .at_most(longest_sequence)
      .default_text("seq_length");
  schema
      .add("vocab_size", &options.vocab_size, 0,
           "true vocabulary; needed only without a tokenizer or with NullTokenizer")
      .at_least(1)
      .at_most(2147483647)
      .default_text("the tokenizer's");
  schema
      .add("make_vocab_size_divisible_by", &options.make_vocab_size_divisible_by, 128,
           "vocabulary rows in memory are padded to a multiple; without megatron_padded_softmax padding "
           "never reaches loss or checkpoints")
      .at_least(1)
      .at_most(1 << 20);
  schema.add(
      "megatron_padded_softmax", &options.megatron_padded_softmax, false,
      "padding rows are rows of the model and take part in the softmax, as in Megatron-LM; for comparisons");
  schema
      .add("position_embedding_type", &options.position_embedding_type, "learned_absolute",
           "how positions are told")
      .one_of({"learned_absolute"})
      .refuses("rope", later + "learned_absolute")
      .refuses("mrope", later + "learned_absolute")
      .refuses("yarn", later + "learned_absolute")
      .refuses("relative", later + "learned_absolute")
      .refuses("none", later + "learned_absolute");
  schema.add("normalization", &options.normalization, "LayerNorm", "normalization before attention and MLP")
      .one_of({"LayerNorm"})
      .refuses("RMSNorm", later + "LayerNorm");
  schema.add("norm_epsilon", &options.norm_epsilon, 1e-5, "added to the variance")
      .more_than(0)
      .less_than(1)
      .alias("layernorm-epsilon");
  schema
      .add("activation", &options.activation, "gelu_tanh",
           "the MLP's nonlinearity: GELU by its tanh approximation (GPT-2) or exact")
      .one_of({"gelu_tanh", "gelu_erf"});
  schema.add("bias_gelu_fusion", &options.bias_gelu_fusion, true,
             "Megatron-LM's switch; --no-bias-gelu-fusion without activation selects gelu_erf, as there");
  schema.add("untie_embeddings_and_output_weights", &options.untie_embeddings_and_output_weights, false,
             "give the output layer weights of its own");
  schema.add("hidden_dropout", &options.hidden_dropout, 0.1, "dropout after embedding, attention and MLP")
      .at_least(0)
      .less_than(1);
  schema.add("attention_dropout", &options.attention_dropout, 0.1, "dropout of attention probabilities")
      .at_least(0)
      .less_than(1);
  schema
      .add("init_method_std", &options.init_method_std, 0.02,
           "standard deviation of initial weights; output layers divide it by sqrt(2 * num_layers)")
      .more_than(0);
}

void declare_training(Schema& schema, TrainOptions& options, SettingsUse use) {
  schema.section("training", "Batches and length of the run");
  Setting& micro = schema
                       .add("micro_batch_size", &options.micro_batch_size, 0,
                            "sequences computed at once; changes memory and speed, not the result")
                       .at_least(1)
                       .at_most(1 << 20);
  if (use == SettingsUse::train) micro.required();
  schema.add("global_batch_size", &options.global_batch_size, 0, "sequences of one optimizer step")
      .at_least(1)
      .at_most(1 << 24)
      .default_text("micro_batch_size");
  schema
      .add(
          "rampup_batch_size", &options.rampup_batch_size, false,
          "start, increment and samples: grow the batch from start to global_batch_size over so many samples")
      .at_least(0)
      .metavar("START INCREMENT SAMPLES")
      .default_text("none");
  schema
      .add("train_iters", &options.train_iters, 0, "optimizer steps of the whole run (or give train_samples)")
      .at_least(1)
      .at_most(1e11)
      .default_text("from train_samples");
  schema.add("train_samples", &options.train_samples, 0, "sequences of the whole run (or give train_iters)")
      .at_least(1)
      .at_most(most_samples)
      .default_text("none");
  schema.add("exit_interval", &options.exit_interval, 0, "save and exit after an iteration divisible by this")
      .at_least(0)
      .default_text("none")
      .once();
  schema
      .add("exit_duration_in_mins", &options.exit_duration_in_mins, 0, "save and exit after so many minutes")
      .at_least(0)
      .default_text("none")
      .once();
  schema.add("seed", &options.seed, 1234, "of initial weights, dropout and data order")
      .at_least(0)
      .at_most(4294967295.0);
  schema
      .add("recompute_granularity", &options.recompute_granularity, "",
           "recompute activations in backward: selective (outputs of layer norms and GELU) or full (whole "
           "layers)")
      .one_of({"selective", "full"})
      .default_text("none");
  schema
      .add("recompute_method", &options.recompute_method, "",
           "with full: uniform (all layers, in groups) or block (the first recompute_num_layers layers)")
      .one_of({"uniform", "block"})
      .default_text("uniform");
  schema
      .add("recompute_num_layers", &options.recompute_num_layers, 0,
           "with full: layers of a group (uniform) or layers recomputed (block)")
      .at_least(1)
      .default_text("1");
  schema.add("recompute_activations", &options.recompute_activations, false,
             "short for recompute_granularity selective");
  schema.add("calculate_per_token_loss", &options.calculate_per_token_loss, true,
             "loss = sum over unmasked tokens of the global batch / their count, equal on every layout; "
             "--no-calculate-per-token-loss is Megatron-LM's default, the mean of microbatch means");
  schema
      .add("nan_loss", &options.nan_loss, "stop",
           "on a loss or gradient that is not finite: stop, or skip the step and go on")
      .one_of({"stop", "skip"});
  schema.add("dry_run", &options.dry_run, false, "check everything, print sizes and estimates, train nothing")
      .once();
}

void declare_optimizer(Schema& schema, TrainOptions& options) {
  schema.section("optimizer", "Optimizer and learning-rate schedule");
  schema.add("optimizer", &options.optimizer, "adam", "adam (AdamW: decoupled weight decay) or sgd")
      .one_of({"adam", "sgd"})
      .refuses("muon", "this version has adam and sgd")
      .refuses("dist_muon", "this version has adam and sgd");
  schema.add("lr", &options.lr, 0, "peak learning rate").more_than(0).default_text("none");
  schema.add("min_lr", &options.min_lr, 0, "the schedule never falls below").at_least(0);
  schema.add("lr_decay_style", &options.lr_decay_style, "linear", "how the learning rate falls after warm-up")
      .one_of({"constant", "linear", "cosine", "inverse-square-root", "WSD"});
  schema.add("lr_decay_iters", &options.lr_decay_iters, 0, "iterations until min_lr")
      .at_least(1)
      .at_most(1e11)
      .default_text("train_iters");
  schema
      .add("lr_decay_samples", &options.lr_decay_samples, 0,
           "samples until min_lr, for runs given in samples")
      .at_least(1)
      .at_most(most_samples)
      .default_text("train_samples");
  schema.add("lr_warmup_iters", &options.lr_warmup_iters, 0, "iterations of linear warm-up")
      .at_least(0)
      .at_most(1e11);
  schema
      .add("lr_warmup_samples", &options.lr_warmup_samples, 0,
           "samples of linear warm-up, for runs given in samples")
      .at_least(0)
      .at_most(most_samples);
  schema
      .add("lr_warmup_fraction", &options.lr_warmup_fraction, 0, "warm-up as a fraction of the decay length")
      .at_least(0)
      .less_than(1)
      .default_text("none");
  schema.add("lr_warmup_init", &options.lr_warmup_init, 0, "learning rate at which warm-up starts")
      .at_least(0);
  schema.add("lr_wsd_decay_style", &options.lr_wsd_decay_style, "exponential", "shape of WSD's final decay")
      .one_of({"exponential", "linear", "cosine", "minus_sqrt"});
  schema.add("lr_wsd_decay_iters", &options.lr_wsd_decay_iters, 0, "iterations of WSD's final decay")
      .at_least(1)
      .at_most(1e11)
      .default_text("none");
  schema.add("lr_wsd_decay_samples", &options.lr_wsd_decay_samples, 0, "samples of WSD's final decay")
      .at_least(1)
      .at_most(most_samples)
      .default_text("none");
  schema
      .add("override_opt_param_scheduler", &options.override_opt_param_scheduler, false,
           "on resume, take the schedule from the command line, not from the checkpoint")
      .once();
  schema
      .add("use_checkpoint_opt_param_scheduler", &options.use_checkpoint_opt_param_scheduler, false,
           "on resume, take the schedule from the checkpoint, whatever the command line says")
      .once();
  schema
      .add("weight_decay", &options.weight_decay, 0.01,
           "of matrices and embeddings; biases and norms have none")
      .at_least(0);
  schema.add("start_weight_decay", &options.start_weight_decay, 0, "weight decay at the start of an increase")
      .at_least(0)
      .default_text("weight_decay");
  schema.add("end_weight_decay", &options.end_weight_decay, 0, "weight decay at the end of an increase")
      .at_least(0)
      .default_text("weight_decay");
  schema
      .add("weight_decay_incr_style", &options.weight_decay_incr_style, "constant", "how weight decay grows")
      .one_of({"constant", "linear", "cosine"});
  schema.add("clip_grad", &options.clip_grad, 1.0, "largest global gradient norm; 0: no clipping")
      .at_least(0);
  schema.add("adam_beta1", &options.adam_beta1, 0.9, "decay of the first moment").at_least(0).less_than(1);
  schema.add("adam_beta2", &options.adam_beta2, 0.999, "decay of the second moment").at_least(0).less_than(1);
  schema.add("adam_eps", &options.adam_eps, 1e-8, "added to the root of the second moment").more_than(0);
  schema.add("sgd_momentum", &options.sgd_momentum, 0.9, "momentum of sgd").at_least(0).less_than(1);
}

void declare_machine(Schema& schema, TrainOptions& options) {
  schema.section("precision",
                 "Number formats; master weights, gradients and moments are float32 (float64 with fp64)");
  schema.add("bf16", &options.bf16, false, "compute in bfloat16 instead of float32");
  schema.add("fp16", &options.fp16, false, "compute in float16; needs a GPU, refused in this version");
  schema.add("fp64", &options.fp64, false, "compute in float64 on the reference device, for checking");
  schema.add("accumulate_allreduce_grads_in_fp32", &options.accumulate_allreduce_grads_in_fp32, true,
             "gradients accumulate in float32; always on");

  schema.section("device", "Where to compute");
  schema.add("device", &options.device, "cpu", "cpu, or reference: readable loops, slow, for checking")
      .one_of({"cpu", "reference"})
      .refuses("cuda", "this version has no CUDA device; use cpu")
      .refuses("gpu", "this version has no GPU device; use cpu");
  schema
      .add("num_threads", &options.num_threads, 0,
           "threads of the device; results depend on it in the last bits")
      .at_least(0)
      .at_most(4096)
      .default_text("all processors");
  schema.add("strict", &options.strict, false,
             "reference device: memory without access rights and late queues, to find misuse");

  schema.section("parallel", "Ranks; this version trains on one device, so every size is 1");
  schema.add("tensor_model_parallel_size", &options.tensor_model_parallel_size, 1, "tensor-parallel ranks")
      .at_least(1);
  schema.add("pipeline_model_parallel_size", &options.pipeline_model_parallel_size, 1, "pipeline stages")
      .at_least(1);
  schema.add("context_parallel_size", &options.context_parallel_size, 1, "ranks that share a sequence")
      .at_least(1);
  schema.add("expert_model_parallel_size", &options.expert_model_parallel_size, 1, "ranks that share experts")
      .at_least(1);
}

void declare_data(Schema& schema, TrainOptions& options) {
  schema.section("data", "Token files and tokenizer");
  schema
      .add("data_path", &options.data_path, false,
           "prefix of .bin/.idx files, or a blend: weight prefix weight prefix ...; cut by split")
      .metavar("PREFIX")
      .completes_file();
  schema.add("train_data_path", &options.train_data_path, false, "training data apart, instead of data_path")
      .metavar("PREFIX")
      .completes_file();
  schema.add("valid_data_path", &options.valid_data_path, false, "validation data apart")
      .metavar("PREFIX")
      .completes_file();
  schema.add("test_data_path", &options.test_data_path, false, "test data apart")
      .metavar("PREFIX")
      .completes_file();
  schema.add("split", &options.split, "969,30,1", "shares of training, validation and test in data_path");
  schema.add("data_cache_path", &options.data_cache_path, "", "folder for sample indices")
      .metavar("FOLDER")
      .completes_file()
      .default_text("beside the data");
  schema.add("mock_data", &options.mock_data, false, "random tokens instead of files, for timing");
  const std::string no_tokenizer =
      "this version has GPT2BPETokenizer, HuggingFaceTokenizer and NullTokenizer; "
      "data prepared elsewhere trains with vocab_size and no tokenizer_type";
  schema
      .add("tokenizer_type", &options.tokenizer_type, "",
           "needed to print samples and to know the vocabulary")
      .one_of({"GPT2BPETokenizer", "HuggingFaceTokenizer", "NullTokenizer"})
      .refuses("BertWordPieceLowerCase", no_tokenizer)
      .refuses("BertWordPieceCase", no_tokenizer)
      .refuses("SentencePieceTokenizer", no_tokenizer)
      .refuses("GPTSentencePieceTokenizer", no_tokenizer)
      .refuses("Llama2Tokenizer", no_tokenizer)
      .refuses("TikTokenizer", no_tokenizer)
      .refuses("MultimodalTokenizer", no_tokenizer)
      .refuses("NullMultimodalTokenizer", no_tokenizer)
      .refuses("SFTTokenizer", no_tokenizer)
      .default_text("none");
  schema.add("vocab_file", &options.vocab_file, "", "vocab.json of GPT2BPETokenizer")
      .metavar("FILE")
      .completes_file();
  schema.add("merge_file", &options.merge_file, "", "merges.txt of GPT2BPETokenizer")
      .metavar("FILE")
      .completes_file();
  schema
      .add("tokenizer_model", &options.tokenizer_model, "",
           "tokenizer.json of HuggingFaceTokenizer, or its folder")
      .metavar("FILE")
      .completes_file();
  schema.add("reset_position_ids", &options.reset_position_ids, false,
             "positions start at 0 after end-of-document");
  schema.add("reset_attention_mask", &options.reset_attention_mask, false,
             "no attention across end-of-document");
  schema.add("eod_mask_loss", &options.eod_mask_loss, false, "no loss on end-of-document tokens");
}

void declare_output(Schema& schema, TrainOptions& options) {
  schema.section("evaluation", "Validation during the run");
  schema.add("eval_interval", &options.eval_interval, 0, "iterations between evaluations; 0: none")
      .at_least(0);
  schema.add("eval_iters", &options.eval_iters, 100, "iterations of one evaluation")
      .at_least(0)
      .at_most(1e11);
  schema.add("skip_train", &options.skip_train, false, "evaluate only").once();
  schema.add("sample_prompt", &options.sample_prompt, false,
             "prompts to continue and print at each evaluation");
  schema.add("sample_tokens", &options.sample_tokens, 64, "tokens of each continuation")
      .at_least(1)
      .at_most(65536);

  schema.section("checkpoint", "Saving and loading");
  schema.add("save", &options.save, "", "run directory: checkpoints, metrics, config")
      .metavar("FOLDER")
      .completes_file()
      .default_text("a fresh folder under runs/");
  schema.add("load", &options.load, "", "run directory or checkpoint to start from")
      .metavar("FOLDER")
      .completes_file()
      .once();
  schema.add("save_interval", &options.save_interval, 0, "iterations between checkpoints; 0: only at the end")
      .at_least(0)
      .alias("persistent-save-interval");
  schema.add("save_retain", &options.save_retain, 0, "newest checkpoints to keep; 0: all").at_least(0);
  schema
      .add("save_retain_interval", &options.save_retain_interval, 0,
           "with save_retain: checkpoints at multiples of this are kept as well")
      .at_least(0);
  schema.add("async_save", &options.async_save, false,
             "write checkpoints while the training goes on; takes host memory up to a checkpoint's size");
  schema.add("ckpt_step", &options.ckpt_step, 0, "iteration to load")
      .at_least(1)
      .default_text("the latest")
      .once();
  schema.add("finetune", &options.finetune, false, "load weights only and start at iteration 0").once();
  schema.add("no_load_optim", &options.no_load_optim, false, "do not load moments").once();
  schema.add("no_load_rng", &options.no_load_rng, false, "do not load the random state").once();
  schema.add("no_save_optim", &options.no_save_optim, false,
             "do not save moments; such a run cannot resume exactly");
  schema.add("no_save_rng", &options.no_save_rng, false, "do not save the random state");
  schema
      .add("exit_on_missing_checkpoint", &options.exit_on_missing_checkpoint, false,
           "fail where load has no checkpoint, instead of starting fresh")
      .once();

  schema.section("logging", "Console, metrics.jsonl and TensorBoard");
  schema.add("log_interval", &options.log_interval, 100, "iterations between lines").at_least(1);
  schema.add("tensorboard_dir", &options.tensorboard_dir, "", "folder of TensorBoard's event files")
      .metavar("FOLDER")
      .completes_file()
      .default_text("tensorboard/ in the run directory");
  schema.add("no_tensorboard", &options.no_tensorboard, false, "write no event files");
  schema.add("progress", &options.progress, true, "live line with the remaining time, on a terminal");
  schema
      .add("profile", &options.profile, false,
           "record some iterations: trace.json in the run directory, and a table of where the time goes")
      .once();
  schema
      .add("profile_step_start", &options.profile_step_start, 10,
           "finished iterations after which profile begins")
      .at_least(0)
      .once();
  schema.add("profile_step_end", &options.profile_step_end, 12, "finished iterations at which profile ends")
      .at_least(1)
      .once();
}

}  // namespace

void declare_train_settings(Schema& schema, TrainOptions& options, SettingsUse use) {
  declare_model(schema, options);
  declare_training(schema, options, use);
  declare_optimizer(schema, options);
  declare_machine(schema, options);
  declare_data(schema, options);
  declare_output(schema, options);
  schema.accept_config_file();
  schema.foreign_flags(megatron_flags());
  schema.check([&schema, &options, use](std::vector<std::string>& errors) {
    resolve_options(schema, options, use, errors);
  });
}

void resolve_options(Schema& schema, TrainOptions& options, SettingsUse use) {
  std::vector<std::string> errors;
  resolve_options(schema, options, use, errors);
  if (errors.empty()) return;
  std::string text = errors.size() == 1 ? errors[0] : format("{} mistakes", errors.size());
  for (std::size_t i = 0; errors.size() > 1 && i < errors.size(); ++i)
    text += format("\n  {}. {}", i + 1, errors[i]);
  throw Error(ErrorKind::usage, schema.command(), text);
}

}  // namespace megalith
