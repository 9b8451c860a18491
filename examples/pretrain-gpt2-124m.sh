#!/bin/bash
# Pretrains a GPT-2 of 124 million parameters on your own text: prepare, train, resume, generate. Run it again after an
# interruption, and it goes on from the last checkpoint.
usage() {
  cat <<'HELP'
Usage: examples/pretrain-gpt2-124m.sh TEXT...
       examples/pretrain-gpt2-124m.sh --smoke
  TEXT       plain text or JSON lines ("text"), also .gz and .zst
  --smoke    the same steps with a tiny model, in seconds
  RUN        (environment) the run folder, runs/gpt2-124m where it is not set
  ITERATIONS (environment) steps of 32 sequences of 1024 tokens, 2000 where it is not set
  PROMPT     (environment) what to continue at the end
  MEGALITH   (environment) the program; build/megalith, else the installed one, where it is not set
HELP
}
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$project/build:$PATH MEGALITH=${MEGALITH:-megalith}
run=${RUN:-runs/gpt2-124m}
iterations=${ITERATIONS:-2000}
prompt=${PROMPT:-The}
size=()
smoke=no
case ${1:---help} in
  --help | -h) usage; exit 0 ;;
  --smoke)
    smoke=yes
    run=runs/smoke
    iterations=6
    size=(--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 32 --max-position-embeddings 32
          --vocab-size 300 --micro-batch-size 2 --global-batch-size 4 --num-threads 1) ;;
  -*) usage >&2; exit 2 ;;
esac

# 1. Prepare.
if [ ! -e data/corpus_text_document.idx ]; then
  if [ $smoke = yes ]; then "$project/examples/prepare-text.sh" --smoke; else "$project/examples/prepare-text.sh" data "$@"; fi
fi

# 2. Train. --load of the folder that --save writes resumes; where nothing is saved yet, the run begins.
train() {
  "$MEGALITH" train --config "$project/configs/gpt2-124m.toml" --global-batch-size 32 \
    --train-iters "$iterations" --lr-decay-iters "$iterations" --lr-warmup-iters $((iterations / 20)) \
    --data-path data/corpus_text_document --split 95,5,0 \
    --vocab-file data/tokenizer/vocab.json --merge-file data/tokenizer/merges.txt \
    --eval-interval $((iterations / 2)) --eval-iters 2 --sample-prompt "$prompt" --sample-tokens 24 \
    --save "$run" --load "$run" --save-interval $((iterations / 2)) "${size[@]}" "$@"
}
train --dry-run  # what it is, and the memory it needs
if [ $smoke = yes ]; then train --exit-interval 3; fi  # as if it had been interrupted
train

# 3. Generate, and draw the loss.
"$MEGALITH" generate --load "$run" --prompt "$prompt" --max-new-tokens 60 --temperature 0.8 --top-p 0.95
"$MEGALITH" plot "$run" --output "$run/loss.svg"
