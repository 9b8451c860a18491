#!/usr/bin/env bash
# Kills a training run at random moments with SIGKILL and resumes it each time. The run must always be resumable, never lose a
# committed checkpoint, and end with the bits of a run that was never cut.
# Usage: kill_test.sh MEGALITH KILLS [FLAG...], the flags for the runs that are cut
set -euo pipefail
megalith=$1
kills=$2
more=("${@:3}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16 --vocab-size 97
       --micro-batch-size 2 --global-batch-size 4 --train-iters 400 --lr 1e-3 --mock-data --log-interval 7 --eval-interval 50
       --eval-iters 2 --save-interval 5 --save-retain 3 --num-threads 1 --no-progress)
# The clock's figures differ from run to run; everything else must not.
clockless() { sed -E 's/"(elapsed_ms|tokens_per_second|tflops_per_device)":[^,}]*//g' "$1/metrics.jsonl"; }
newest() { ls "$1" 2>/dev/null | sed -n 's/^iter_0*\([0-9][0-9]*\)$/\1/p' | while read -r i; do
  [ -e "$(printf '%s/iter_%07d/COMMITTED' "$1" "$i")" ] && echo "$i"; done | sort -n | tail -n 1; }

"$megalith" train "${flags[@]}" --save "$work/whole" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }

RANDOM=${KILL_SEED:-7}
last=0
done_kills=0
for ((i = 0; i < kills; ++i)); do
  "$megalith" train "${flags[@]}" "${more[@]}" --save "$work/cut" --load "$work/cut" > "$work/log" 2>&1 &
  pid=$!
  sleep "$(printf '0.%03d' $((RANDOM % 600 + 20)))"
  if kill -9 "$pid" 2>/dev/null; then done_kills=$((done_kills + 1)); fi
  status=0
  wait "$pid" 2>/dev/null || status=$?
  if [ "$status" != 0 ] && [ "$status" != 137 ]; then
    echo "FAIL: a resumed run ended with status $status"; cat "$work/log"; exit 1
  fi
  now=$(newest "$work/cut"); now=${now:-0}
  if [ "$now" -lt "$last" ]; then echo "FAIL: iteration $last was committed, after kill $i the newest is $now"; exit 1; fi
  last=$now
  # A finished run starts over, so that every kill hits a run at work.
  if [ "$last" -ge 400 ] && [ $((i + 1)) -lt "$kills" ]; then
    cmp <(clockless "$work/whole") <(clockless "$work/cut") || { echo "FAIL: metrics differ"; exit 1; }
    rm -rf "$work/cut"; last=0
  fi
done
"$megalith" train "${flags[@]}" "${more[@]}" --save "$work/cut" --load "$work/cut" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmp "$work/whole/iter_0000400/model-00001-of-00001.safetensors" "$work/cut/iter_0000400/model-00001-of-00001.safetensors" ||
  { echo "FAIL: the weights differ from the uncut run's"; exit 1; }
cmp <(clockless "$work/whole") <(clockless "$work/cut") || { echo "FAIL: metrics differ"; exit 1; }
echo "killed $done_kills times; final weights, moments and metrics equal the uncut run's"
