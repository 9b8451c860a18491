#!/bin/bash
# Two ways to go on from a checkpoint: train longer with another schedule, and start a new run from its weights.
usage() {
  cat <<'HELP'
Usage: examples/continue-with-another-schedule.sh RUN
       examples/continue-with-another-schedule.sh --smoke
  RUN      a run folder with a checkpoint; it is left as it is
  --smoke  makes a tiny run first, in seconds
  MORE     (environment) iterations to add, 1000 where it is not set
  RATE     (environment) learning rate of the new schedules, 1e-4 where it is not set
  MEGALITH (environment) the program; build/megalith, else the installed one, where it is not set
HELP
}
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$project/build:$PATH MEGALITH=${MEGALITH:-megalith}
more=${MORE:-1000}
rate=${RATE:-1e-4}
case ${1:---help} in
  --help | -h) usage; exit 0 ;;
  --smoke)
    more=4
    "$project/examples/prepare-text.sh" --smoke
    "$MEGALITH" train --config "$project/configs/gpt2-tiny.toml" --num-layers 2 --hidden-size 32 \
      --num-attention-heads 2 --seq-length 32 --micro-batch-size 2 --global-batch-size 4 --train-iters 8 \
      --lr-warmup-iters 1 --eval-interval 4 --eval-iters 1 --num-threads 1 --save runs/first
    set -- runs/first ;;
  -*) usage >&2; exit 2 ;;
esac
run=$1
last=$(cat "$run/latest_checkpointed_iteration.txt")
interval=$(((more + 3) / 4))

# 1. Longer: iteration, moments and data position go on; the schedule is this command's and not the checkpoint's. It counts
#    from the run's first iteration, so the cosine from RATE goes on in its middle. Saved apart, RUN stays as it is.
"$MEGALITH" train --config "$run/config.toml" --load "$run" --save "$run-longer" --override-opt-param-scheduler \
  --train-iters $((last + more)) --lr-decay-iters $((last + more)) --lr-warmup-iters 0 --lr "$rate" --min-lr 1e-5 \
  --lr-decay-style cosine --eval-interval "$interval" --save-interval "$interval"

# 2. Anew from its weights: iteration 0, fresh moments, a schedule of its own, the data from the start (here in another
#    order, by --seed). For another data set, give --data-path.
"$MEGALITH" train --config "$run/config.toml" --load "$run" --save "$run-anew" --finetune \
  --train-iters "$more" --lr-decay-iters "$more" --lr-warmup-iters 0 --lr "$rate" --min-lr 0 --lr-decay-style linear \
  --seed 4321 --eval-interval "$interval" --save-interval "$interval"

"$MEGALITH" plot "$run" "$run-longer" "$run-anew" --output "$run-continued.svg"
