// Megatron-LM's flags that are not keys here: name, number of values, and why they are without effect or
// refused. Names and counts were read from megatron/training/arguments.py and the flags it generates from its
// config classes.
#include <sstream>

#include "core/train_schema.h"

namespace megalith {
namespace {

/// Flags that share a reason. In `flags`, "name" takes no value, "name:1" one, "name:*" all up to the next
/// flag, and "name:1=x" or "name:1=x|y" is accepted without effect where the value is x (or y), whatever the
/// group says.
struct FlagGroup {
  bool refused;
  const char* reason;
  const char* flags;
};

constexpr FlagGroup groups[] = {
    // --- accepted without effect
    {false, "there is one implementation of the model",
     "use-mcore-models transformer-impl:1 attention-backend:1 use-flash-attn te-rng-tracker "
     "inference-rng-tracker "
     "use-te-activation-func enable-experimental flash-decode onnx-safe:1 lazy-mpu-init:1 local-rank:1 "
     "use-cpu-initialization init-model-with-meta-device no-initialization empty-unused-memory-level:1 "
     "train-sync-interval:1 manual-gc manual-gc-interval:1 no-manual-gc-eval disable-msc "
     "no-clone-scatter-output-in-embedding high-priority-stream-groups:* legacy-tokenizer "
     "disable-bf16-reduced-precision-matmul use-persistent-ckpt-worker disable-jit-fuser filter-warnings "
     "modules-to-filter:* "
     "set-level-for-all-loggers gpu-sniff-test-interval:1 save-tokenizer-assets "
     "external-cuda-graph enable-cuda-graph cuda-graph-impl:1 cuda-graph-scope:* "
     "cuda-graph-warmup-steps:1 cuda-graph-modules:*"},
    {false, "kernels are fused where that is faster, and fused and plain ones agree",
     "no-masked-softmax-fusion no-bias-swiglu-fusion no-bias-dropout-fusion no-rope-fusion "
     "cross-entropy-loss-fusion "
     "cross-entropy-fusion-impl:1 no-persist-layer-norm no-gradient-accumulation-fusion "
     "use-fused-weighted-squared-relu no-gradient-reduce-div-fusion"},
    {false, "softmax and sums always run in float32", "attention-softmax-in-fp32"},
    {false, "it changes only float16 arithmetic, which this version refuses",
     "loss-scale:1 initial-loss-scale:1 min-loss-scale:1 loss-scale-window:1 hysteresis:1"},
    {false, "the tanh form of GELU is the default; see activation", "openai-gelu"},
    {false, "runs are always deterministic", "deterministic-mode"},
    {false, "one device: there is nothing to communicate, shard or overlap",
     "distributed-backend:1 distributed-timeout-minutes:1 distributed-timeout-seconds-after-init:1 "
     "sequence-parallel "
     "use-distributed-optimizer overlap-grad-reduce overlap-param-gather "
     "overlap-param-gather-with-optimizer-step "
     "no-align-grad-reduce no-align-param-gather defer-embedding-wgrad-compute wgrad-deferral-limit:1 "
     "ddp-num-buckets:1 ddp-bucket-size:1 ddp-pad-buckets-for-high-nccl-busbw "
     "ddp-reduce-scatter-with-fp32-accumulation ddp-average-in-collective "
     "no-scatter-gather-tensors-in-pipeline "
     "use-ring-exchange-p2p no-overlap-p2p-communication overlap-p2p-communication-warmup-flush "
     "disable-gloo-process-groups enable-gloo-process-groups tp-comm-overlap tp-comm-overlap-cfg:1 "
     "disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs tp-comm-overlap-rs-dgrad "
     "disable-tp-comm-bulk-dgrad "
     "disable-tp-comm-bulk-wgrad disable-tp-comm-split-ag disable-tp-comm-split-rs "
     "tp-comm-bootstrap-backend:1 "
     "no-async-tensor-model-parallel-allreduce pipeline-model-parallel-comm-backend:1 use-nccl-ub "
     "disable-symmetric-registration use-sharp sharp-enabled-group:1 nccl-communicator-config-path:1 "
     "cp-comm-type:* "
     "use-tp-pp-dp-mapping num-distributed-optimizer-instances:1 data-parallel-random-init "
     "distribute-saved-activations fsdp-double-buffer suggested-communication-unit-size:1 "
     "keep-fp8-transpose-cache "
     "enable-full-sharding-in-hsdp torch-fsdp2-no-reshard-after-forward delay-wgrad-compute "
     "symmetric-ar-type:1 "
     "nccl-all-reduce-for-prefill check-weight-hash-across-dp-replicas-interval:1 "
     "microbatch-group-size-per-virtual-pipeline-stage:1 account-for-embedding-in-pipeline-split "
     "account-for-loss-in-pipeline-split replication replication-jump:1 replication-factor:1"},
    {false, "files are mapped into memory and read ahead without worker processes",
     "num-workers:1 no-mmap-bin-files num-dataset-builder-threads:1 no-create-attention-mask-in-dataloader "
     "object-storage-cache-path:1 allow-ambiguous-pad-tokens"},
    {false, "SIGINT and SIGTERM always finish the step, save and exit",
     "exit-signal-handler exit-signal:1 exit-signal-handler-for-dataloader exit-signal-handler-for-training"},
    {false, "a loss or gradient that is not finite is always noticed; nan_loss says what happens then",
     "no-check-for-nan-in-loss-and-grad check-for-spiky-loss check-for-large-grads rerun-mode:1 "
     "result-rejected-tracker-filename:1"},
    {false, "checkpoints have one format, safetensors shards of logical tensors, which every layout loads",
     "ckpt-format:1 dist-ckpt-format:1 use-dist-ckpt auto-detect-ckpt-format dist-ckpt-strictness:1 "
     "ckpt-fully-parallel-save no-ckpt-fully-parallel-save ckpt-fully-parallel-load "
     "ckpt-assume-constant-structure "
     "async-strategy:1 async-ckpt-use-cpu-shm dist-ckpt-save-pre-mcore-014 "
     "dist-ckpt-optim-fully-reshardable distrib-optim-fully-reshardable-mem-efficient "
     "no-strict-fsdp-dtensor-load "
     "ckpt-convert-update-legacy-dist-opt-format use-mp-args-from-checkpoint-args "
     "no-use-tokenizer-model-from-checkpoint-args load-main-params-from-ckpt async-ckpt-cpu-priority:1 "
     "async-ckpt-io-priority:1 "
     "ckpt-fully-parallel-load-exchange-algo:1 ckpt-fully-parallel-save-process-group:1 "
     "ckpt-fully-parallel-load-process-group:1 ckpt-fully-parallel-save-replicate-local "
     "ckpt-fully-parallel-load-replicate-local ckpt-load-validate-sharding-integrity verify-integrity"},
    {false, "metrics.jsonl and TensorBoard get every logged iteration's loss, rate, norm, scale and speed",
     "tensorboard-log-interval:1 tensorboard-queue-size:1 log-timers-to-tensorboard "
     "no-log-loss-scale-to-tensorboard "
     "log-throughput-to-tensorboard throughput-window-size:1 log-l2-norm-grad-to-tensorboard "
     "log-runtime-to-tensorboard runtime-time-unit:1 memory-keys:* log-validation-ppl-to-tensorboard "
     "log-memory-to-tensorboard "
     "log-world-size-to-tensorboard "
     "log-loss-scale-to-tensorboard log-progress log-params-norm log-num-zeros-in-grad timing-log-level:1 "
     "timing-log-option:1 no-barrier-with-level-1-timing log-energy logging-level:1 log-memory-interval:1 "
     "log-throughput log-max-attention-logit log-device-memory-used config-logger-dir:1"},
    {false, "there is no Weights & Biases client; metrics.jsonl and TensorBoard files hold the same numbers",
     "wandb-project:1 wandb-entity:1 wandb-exp-name:1 wandb-save-dir:1 "
     "inference-wandb-logging-step-interval:1"},
    {false, "it serves NVIDIA's cluster tools",
     "no-one-logger one-logger-project:1 one-logger-run-name:1 one-logger-async app-tag-run-name:1 "
     "app-tag-run-version:1 enable-one-logger adlr-autoresume adlr-autoresume-interval:1 enable-ft-package "
     "calc-ft-timeouts run-workload-inspector-server log-straggler disable-straggler-on-startup "
     "straggler-ctrlr-port:1 straggler-minmax-count:1 inprocess-max-iterations:1 "
     "inprocess-monitor-thread-interval:1 inprocess-monitor-process-interval:1 "
     "inprocess-progress-watchdog-interval:1 inprocess-heartbeat-interval:1 inprocess-soft-timeout:1 "
     "inprocess-hard-timeout:1 inprocess-heartbeat-timeout:1 inprocess-barrier-timeout:1 "
     "inprocess-completion-timeout:1 inprocess-last-call-wait:1 inprocess-termination-grace-time:1 "
     "inprocess-granularity:1 inprocess-active-world-size:1 inprocess-empty-cuda-cache"},
    {false, "every run directory holds its effective config", "save-config-filepath:1"},
    {false, "--profile writes a trace of this process that Perfetto and chrome://tracing draw",
     "profile-ranks:* use-pytorch-profiler"},
    {false, "memory is planned and taken at the start; the plan is printed",
     "record-memory-history memory-snapshot-path:1"},
    {false, "it counts only with rotary positions, which this version refuses",
     "rotary-base:1 rotary-percent:1 rotary-interleaved rotary-seq-len-interpolation-factor:1 "
     "rope-scaling-factor:1 "
     "rope-type:1 no-rope-freq:1 mrope-section:* relative-attention-num-buckets:1 "
     "relative-attention-max-distance:1"},
    {false, "it counts only with --group-query-attention, which is refused", "num-query-groups:1"},
    {false, "it counts only with --num-experts, which is refused",
     "expert-tensor-parallel-size:1 moe-layer-freq:1 moe-ffn-hidden-size:1 "
     "moe-shared-expert-intermediate-size:1 "
     "moe-shared-expert-overlap moe-shared-expert-gate moe-grouped-gemm moe-use-legacy-grouped-gemm "
     "moe-layer-recompute moe-extended-tp moe-use-upcycling moe-upcycling-granularity:1 "
     "moe-router-load-balancing-type:* moe-router-dtype:1 moe-router-fusion moe-router-score-function:1 "
     "moe-router-topk:1 moe-router-topk-limited-devices:1 moe-router-pre-softmax moe-router-num-groups:1 "
     "moe-router-group-topk:1 moe-router-topk-scaling-factor:1 moe-router-enable-expert-bias "
     "moe-router-bias-update-rate:1 moe-router-force-load-balancing moe-router-padding-for-fp8 "
     "moe-router-padding-for-quantization moe-aux-loss-coeff:* moe-z-loss-coeff:1 moe-input-jitter-eps:1 "
     "moe-per-layer-logging moe-token-dispatcher-type:1 moe-flex-dispatcher-backend:1 moe-enable-deepep "
     "moe-deepep-num-sms:1 moe-hybridep-num-sms:1 moe-permute-fusion moe-expert-capacity-factor:1 "
     "moe-pad-expert-input-to-capacity moe-token-drop-policy:1 moe-token-dropping moe-apply-probs-on-input "
     "overlap-moe-expert-parallel-comm moe-pad-experts-for-cuda-graph-inference moe-latent-size:1 "
     "moe-routing-trace-path:1 moe-routing-trace-max-training-iters:1 moe-routing-trace-capture-logits "
     "moe-routing-trace-capture-hidden-states moe-routing-trace-dump-weights "
     "save-tokens-per-expert-interval:1"},
    {false, "it counts only with --multi-latent-attention, which is refused",
     "q-lora-rank:1 kv-lora-rank:1 qk-head-dim:1 qk-pos-emb-head-dim:1 v-head-dim:1 rotary-scaling-factor:1 "
     "mscale:1 "
     "mscale-all-dim:1 beta-fast:1 beta-slow:1 cache-mla-latents mla-down-proj-fusion"},
    {false, "it counts only with --fp8-format or --fp4-format, which are refused",
     "fp8-recipe:1 fp8-quantizer-factory:1 fp8-margin:1 fp8-interval:1 fp8-amax-history-len:1 "
     "fp8-amax-compute-algo:1 no-fp8-wgrad fp8-param-gather first-last-layers-bf16 "
     "num-layers-at-start-in-bf16:1 "
     "num-layers-at-end-in-bf16:1 fp4-recipe:1 fp4-quantizer-factory:1 fp4-param-gather "
     "reuse-grad-buf-for-mxfp8-param-ag"},
    {false, "it counts only with the muon optimizer, which this version refuses",
     "muon-momentum:1 muon-no-split-qkv muon-use-nesterov muon-scale-mode:1 muon-fp32-matmul-prec:1 "
     "muon-num-ns-steps:1 muon-tp-mode:1 muon-extra-scale-factor:1"},
    {false, "it counts only with another model family or tokenizer",
     "retriever-seq-length:1 mask-prob:1 short-seq-prob:1 bert-no-binary-head ict-head-size:1 "
     "biencoder-projection-dim:1 biencoder-shared-query-context-model query-in-block-prob:1 "
     "use-one-sent-docs "
     "retriever-report-topk-accuracies:* retriever-score-scaling indexer-batch-size:1 indexer-log-interval:1 "
     "num-classes:1 img-h:1 img-w:1 num-channels:1 patch-dim:1 classes-fraction:1 data-per-class-fraction:1 "
     "no-data-sharding head-lr-mult:1 vision-pretraining-type:1 vision-backbone-type:1 swin-backbone-type:1 "
     "mask-type:1 mask-factor:1 iter-per-epoch:1 dino-local-img-size:1 dino-local-crops-number:1 "
     "dino-head-hidden-size:1 dino-bottleneck-size:1 dino-freeze-last-layer:1 dino-norm-last-layer "
     "dino-warmup-teacher-temp:1 dino-teacher-temp:1 dino-warmup-teacher-temp-epochs:1 mamba-state-dim:1 "
     "mamba-head-dim:1 mamba-num-groups:1 mamba-num-heads:1 disable-mamba-mem-eff-path "
     "mtp-loss-scaling-factor:1 "
     "activation-func-clamp-value:1 retro-cyclic-train-iters:1 retro-encoder-layers:1 "
     "retro-encoder-hidden-dropout:1 retro-encoder-attention-dropout:1 retro-num-neighbors:1 "
     "retro-num-retrieved-chunks:1 retro-attention-gate:1 retro-no-verify-neighbor-count tiktoken-pattern:1 "
     "tiktoken-num-special-tokens:1 tiktoken-special-tokens:* trust-remote-code tokenizer-metadata:1 "
     "tokenizer-special-tokens:* tokenizer-sentencepiece-legacy "
     "tokenizer-sentencepiece-ignore-extra-whitespaces "
     "tokenizer-hf-no-use-fast "
     "sft-tokenizer-prompt-format:1 bert-embedder-type:1 window-attn-skip-freq:1"},
    {false, "it concerns Megatron-LM's inference server; see megalith generate",
     "inference-batch-times-seqlen-threshold:1 max-tokens-to-oom:1 use-legacy-static-engine "
     "inference-max-requests:1 "
     "inference-max-seq-length:1 inference-max-batch-size:1 inference-dynamic-batching "
     "inference-dynamic-batching-buffer-size-gb:1 inference-dynamic-batching-block-size:1 "
     "inference-dynamic-batching-buffer-guaranteed-fraction:1 "
     "inference-dynamic-batching-buffer-overflow-factor:1 "
     "inference-dynamic-batching-max-requests-override:1 inference-dynamic-batching-max-tokens-override:1 "
     "inference-dynamic-batching-num-cuda-graphs:1 inference-dynamic-batching-track-paused-request-events "
     "decode-only-cuda-graphs inference-dynamic-batching-unified-memory-level:1 mlp-chunks-for-prefill:1 "
     "disable-chunked-prefill"},
    {false, "it counts only with --perform-rl-step, which is refused",
     "rl-prompts-per-eval:1 grpo-prompts-per-step:1 grpo-group-size:1 grpo-iterations:1 "
     "grpo-clamp-eps-lower:1 "
     "grpo-clamp-eps-upper:1 grpo-kl-beta:1 grpo-entropy-term-weight:1 grpo-filter-groups-with-same-reward "
     "grpo-default-temperature:1 grpo-default-top-p:1 langrl-inference-server-type:1 "
     "langrl-inference-server-conversation-template:1 langrl-external-server langrl-env-config:1 "
     "rl-offload-optimizer-during-inference rl-offload-kv-cache-during-training "
     "rl-remove-kv-cache-during-training "
     "rl-reset-cuda-graphs rl-partial-rollouts rl-inference-logprobs-is-correction "
     "rl-importance-sampling-truncation-coef:1 rl-calculate-intra-group-similarity rl-use-sequence-packing "
     "rl-sequence-packing-bin-size:1 rl-sequence-packing-algo:1"},
    {false, "vocabulary padding is storage only here and follows from make_vocab_size_divisible_by",
     "padded-vocab-size:1 pad-vocab-size"},
    {false, "it counts only with the precision-aware optimizer, which is refused",
     "main-grads-dtype:1 main-params-dtype:1 exp-avg-dtype:1 exp-avg-sq-dtype:1"},
    {false, "it counts only with optimizer offload, which is refused",
     "optimizer-offload-fraction:1 use-torch-optimizer-for-cpu-offload overlap-cpu-optimizer-d2h-h2d "
     "no-pin-cpu-grads no-pin-cpu-params"},

    // --- refused
    {true, "needs ranks: this version trains on one device; leave it out (the result is the same by design)",
     "num-layers-per-virtual-pipeline-stage:1 num-virtual-stages-per-pipeline-rank:1=1 "
     "decoder-first-pipeline-num-layers:1 decoder-last-pipeline-num-layers:1 "
     "pipeline-model-parallel-layout:1 "
     "hierarchical-context-parallel-sizes:* hybrid-context-parallel use-megatron-fsdp use-torch-fsdp2 "
     "data-parallel-sharding-strategy:1=no_shard inprocess-restart"},
    {true, "is an old name; use --tensor-model-parallel-size", "model-parallel-size:1"},
    {true, "is an old name; use --micro-batch-size", "batch-size:1"},
    {true, "is an old name; use --lr-warmup-fraction", "warmup:1"},
    {true, "is an old name; use --recompute-activations, or --recompute-granularity full",
     "checkpoint-activations"},
    {true,
     "this version trains GPT-2's architecture: GELU, LayerNorm, biases, learned positions, one head per "
     "query",
     "swiglu squared-relu quick-geglu group-query-attention use-rotary-position-embeddings use-rope-scaling "
     "no-position-embedding disable-bias-linear add-qkv-bias apply-layernorm-1p "
     "apply-residual-connection-post-layernorm qk-layernorm qk-l2-norm qk-clip softmax-type:1=vanilla "
     "window-size:1 "
     "multi-latent-attention mtp-num-layers:1=0 num-experts:1 attention-output-gate use-legacy-models "
     "apply-query-key-layer-scaling fp32-residual-connection glu-linear-offset:1=0|0.0 "
     "heterogeneous-layers-config-path:1 heterogeneous-layers-config-encoded-json:1 spec:* "
     "hybrid-attention-ratio:1=0 "
     "hybrid-mlp-ratio:1=0 hybrid-override-pattern:1 hybrid-layer-pattern:1 is-hybrid-model "
     "linear-attention-freq:1 "
     "encoder-num-layers:1 decoder-num-layers:1"},
    {true, "other model families are not part of this version",
     "encoder-seq-length:1 decoder-seq-length:1 vision-pretraining retro-project-dir:1 retro-add-retriever "
     "ict-load:1 "
     "bert-load:1 titles-data-path:1 evidence-data-path:1 block-data-path:1 embedding-path:1 "
     "output-bert-embeddings vocab-extra-ids:1=0"},
    {true, "reinforcement learning and instruction tuning are not part of this version",
     "perform-rl-step sft"},
    {true, "initial weights are normal with init_method_std here; leave it out",
     "embedding-init-method-std:1 init-method-xavier-uniform"},
    {true,
     "this version computes in float32, bfloat16 or float64 with float32 (float64) gradients; leave it out",
     "fp8-format:1 fp4-format:1 grad-reduce-in-bf16 fp16-lm-cross-entropy use-precision-aware-optimizer "
     "kitchen-config-file:1 kitchen-recipe-number:1 "},
    {true, "weights, gradients and moments stay in one memory in this version; leave it out",
     "optimizer-cpu-offload cpu-offloading-num-layers:1=0 fine-grained-activation-offloading "
     "offload-modules:*"},
    {true, "input and output layers learn at lr here; leave it out", "decoupled-lr:1 decoupled-min-lr:1"},
    {true, "parameter groups follow from the parameter table; leave it out",
     "dump-param-to-param-group-map:1"},
    {true,
     "selective recomputes the outputs of layer norms and GELU; attention keeps nothing that grows with the "
     "square of "
     "the sequence. Leave it out, or use --recompute-granularity full",
     "recompute-modules:*=core_attn"},
    {true, "use --rampup-batch-size START INCREMENT SAMPLES", "step-batch-size-schedule:1"},
    {true, "evaluation uses the batch sizes of training, from the first eval_interval on; leave it out",
     "start-eval-at-iter:1 eval-global-batch-size:1 eval-micro-batch-size:1 validation-set-names:*"},
    {true, "use --save-retain N, the number of newest checkpoints to keep", "most-recent-k:1=-1"},
    {true, "megalith inspect reads tensors from checkpoints; nothing else is dumped",
     "save-params-interval:1 save-activations-interval:1 save-wgrads-interval:1 save-dgrads-interval:1"},
    {true, "weight decay applies to matrices and embeddings, not to biases and norms; leave it out",
     "no-weight-decay-cond-type:1"},
    {true, "the global batch stays what the config says on every layout", "decrease-batch-size-if-needed"},
    {true, "steps are skipped only for a loss that is not finite (--nan-loss skip)", "iterations-to-skip:*"},
    {true, "samples come in Megatron-LM's single-pass order; leave it out", "dataloader-type:1=single"},
    {true, "samples are not thinned out here; leave it out", "sample-rate:1=1|1.0"},
    {true, "each data set of a blend is asked for 0.5 % more samples, as Megatron-LM does by default",
     "mid-level-dataset-surplus:1=0.005"},
    {true, "write the file's words after --data-path, or data_path = [...] in a --config file",
     "data-args-path:1"},
    {true, "give train_data_path, valid_data_path and test_data_path in a --config file",
     "per-split-data-args-path:1"},
    {true, "evaluation takes eval_iters batches of the blended validation data",
     "full-validation multiple-validation-sets test-mode"},
    {true, "use --load FOLDER --finetune", "pretrained-checkpoint:1"},
    {true, "give the model's keys, or --config with the config.toml of the run that saved the checkpoint",
     "use-checkpoint-args"},
    {true, "use --save-interval with --save-retain N",
     "non-persistent-save-interval:1 non-persistent-ckpt-type:1 non-persistent-global-ckpt-dir:1 "
     "non-persistent-local-ckpt-dir:1 non-persistent-local-ckpt-algo:1"},
    {true, "checkpoints have one format here; nothing is converted while training",
     "ckpt-convert-format:1 ckpt-convert-save:1"},
    {true, "config files are TOML: use --config FILE", "yaml-cfg:1"},
    {true, "it is for testing Megatron-LM itself", "error-injection-rate:1=0 error-injection-type:1"},
};

/// Reads one word of FlagGroup::flags.
ForeignFlag flag_of(const FlagGroup& group, const std::string& word) {
  ForeignFlag flag;
  const std::size_t colon = word.find(':');
  flag.name = word.substr(0, colon);
  flag.refused = group.refused;
  flag.reason = group.reason;
  if (colon == std::string::npos) return flag;
  flag.values = word[colon + 1] == '*' ? -1 : 1;
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return flag;
  std::istringstream values(word.substr(equals + 1));
  for (std::string value; std::getline(values, value, '|');) flag.harmless.push_back(value);
  return flag;
}

}  // namespace

std::vector<ForeignFlag> megatron_flags() {
  std::vector<ForeignFlag> flags;
  for (const FlagGroup& group : groups) {
    std::istringstream words(group.flags);
    for (std::string word; words >> word;) flags.push_back(flag_of(group, word));
  }
  return flags;
}

}  // namespace megalith
