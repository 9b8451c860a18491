#!/bin/bash
# A command line of Megatron-LM's flags alone, without a config file. Flags that have no effect here are accepted, and said
# once; docs/from-megatron.md lists them all.
usage() {
  cat <<'HELP'
Usage: examples/megatron-flags.sh [FLAG...]
       examples/megatron-flags.sh --smoke
  FLAG     more flags of megalith train; data/ must hold what examples/prepare-text.sh wrote
  --smoke  a tiny model, in seconds
  MEGALITH (environment) the program; build/megalith, else the installed one, where it is not set
HELP
}
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$project/build:$PATH MEGALITH=${MEGALITH:-megalith}
MODEL_ARGS=(--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024)
BATCH_ARGS=(--micro-batch-size 4 --global-batch-size 32 --train-iters 2000)
run=runs/megatron-flags
case ${1:-} in
  --help | -h) usage; exit 0 ;;
  --smoke)
    shift
    run=runs/smoke
    "$project/examples/prepare-text.sh" --smoke
    MODEL_ARGS=(--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 32 --max-position-embeddings 32)
    BATCH_ARGS=(--micro-batch-size 2 --global-batch-size 4 --train-iters 8) ;;
esac
TRAINING_ARGS=(--lr 6.0e-4 --min-lr 6.0e-5 --lr-decay-style cosine --lr-warmup-fraction .1 --weight-decay 0.1
               --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.02 --clip-grad 1.0 --bf16)
DATA_ARGS=(--split "90,10,0" --data-path data/corpus_text_document --vocab-file data/tokenizer/vocab.json
           --merge-file data/tokenizer/merges.txt)
OUTPUT_ARGS=(--log-interval 2 --eval-interval 1000 --eval-iters 2 --save-interval 1000 --save "$run" --load "$run")
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1)

"$MEGALITH" train --use-mcore-models --transformer-impl local --distributed-backend gloo \
  "${MODEL_ARGS[@]}" "${BATCH_ARGS[@]}" "${TRAINING_ARGS[@]}" "${MODEL_PARALLEL_ARGS[@]}" "${DATA_ARGS[@]}" \
  "${OUTPUT_ARGS[@]}" "$@"
