#!/bin/bash
# Trains the same model with two learning rates and draws both loss curves over one another.
usage() {
  cat <<'HELP'
Usage: examples/compare-runs.sh RATE RATE
       examples/compare-runs.sh --smoke
  RATE     learning rates, such as 5e-4 and 2e-3; data/ must hold what examples/prepare-text.sh wrote
  --smoke  a tiny model, in seconds
  CONFIG   (environment) the settings of both runs, configs/gpt2-tiny.toml where it is not set
  MEGALITH (environment) the program; build/megalith, else the installed one, where it is not set
HELP
}
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$project/build:$PATH MEGALITH=${MEGALITH:-megalith}
config=${CONFIG:-$project/configs/gpt2-tiny.toml}
size=()
case ${1:---help} in
  --help | -h) usage; exit 0 ;;
  --smoke)
    "$project/examples/prepare-text.sh" --smoke
    size=(--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 32 --micro-batch-size 2
          --global-batch-size 4 --train-iters 20 --lr-warmup-iters 2 --eval-interval 10 --eval-iters 1 --log-interval 2
          --num-threads 1)
    set -- 1e-3 4e-3 ;;
  -*) usage >&2; exit 2 ;;
esac
[ $# -eq 2 ] || { usage >&2; exit 2; }

# Same seed, so same initial weights and same samples: only the learning rate differs.
for rate in "$@"; do
  "$MEGALITH" train --config "$config" "${size[@]}" --lr "$rate" --min-lr 1e-4 --save "runs/lr-$rate"
done
"$MEGALITH" plot "runs/lr-$1" "runs/lr-$2" --title "Learning rates" --output runs/compare
# The last validation loss of each, from metrics.jsonl.
for rate in "$@"; do
  printf '%s: validation loss %s\n' "$rate" \
    "$(sed -n 's/.*"validation_loss":\([0-9][^,]*\),.*/\1/p' "runs/lr-$rate/metrics.jsonl" | tail -n 1)"
done
