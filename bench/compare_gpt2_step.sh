#!/bin/bash
# Times a GPT-2 124M training step here and in PyTorch, in turns within one run, and prints both and their ratio.
# Usage: bench/compare_gpt2_step.sh [ROUNDS [SEQ_LENGTH [PYTHON]]]   (PYTHON: an interpreter with torch; python3)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-3}
sequence=${2:-256}
python=${3:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for ((round = 1; round <= rounds; ++round)); do
  build/megalith train --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length "$sequence" \
    --max-position-embeddings 1024 --vocab-size 50257 --hidden-dropout 0 --attention-dropout 0 --micro-batch-size 4 \
    --train-iters 4 --lr 1e-4 --mock-data --log-interval 1 --no-tensorboard --no-save-optim --no-progress \
    --save "$work/run$round" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  # The first step pays for first touches of memory and is left out, as for PyTorch.
  sed -n 's/.*"elapsed_ms":\([0-9.e+]*\).*/\1/p' "$work/run$round/metrics.jsonl" | tail -n +2 >> "$work/ours"
  "$python" bench/gpt2_step_torch.py --seq-length "$sequence" --steps 4 > "$work/torch.log"
  head -n 1 "$work/torch.log" > "$work/version"
  sed -n 's/^step_ms //p' "$work/torch.log" | tail -n +2 >> "$work/theirs"
  rm -rf "$work/run$round"
done
cat "$work/version"
for who in ours theirs; do sort -n "$work/$who" | awk -v who=$who '
  { value[NR] = $1 }
  END { printf "%-7s fastest %8.1f ms, median %8.1f ms, slowest %8.1f ms of %d steps\n", who, value[1],
               value[int((NR + 1) / 2)], value[NR], NR }'; done
awk -v ours="$(sort -n "$work/ours" | head -n 1)" -v theirs="$(sort -n "$work/theirs" | head -n 1)" -v s="$sequence" 'BEGIN {
  flops = 6 * 4 * s * (12 * (4 * 768 * 768 + 8 * 768 * 768 + 768 * s) + 768 * 50257)
  printf "ratio of the fastest: %.2f; ours %.0f GFLOP/s in model FLOPs\n", theirs / ours, flops / ours * 1e-6 }'
