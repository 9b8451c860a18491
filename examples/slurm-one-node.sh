#!/bin/bash
#SBATCH --job-name=gpt2-124m
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
# Trains on one node, and queues itself again until the run is finished: five minutes before the end Slurm sends SIGTERM, the
# run finishes its step, saves and ends with status 143.
#   sbatch examples/slurm-one-node.sh         from the project's folder; data/ as examples/prepare-text.sh writes it
#   examples/slurm-one-node.sh --smoke        a tiny run without Slurm, in seconds
# RUN, CONFIG and MEGALITH (environment) as in the other examples; FLAGS (environment): more flags of megalith train.
set -uo pipefail
project=${SLURM_SUBMIT_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
export PATH=$project/build:$PATH MEGALITH=${MEGALITH:-megalith}
config=${CONFIG:-$project/configs/gpt2-124m.toml}
run=${RUN:-runs/slurm}
read -r -a more <<< "${FLAGS:-}"
launch=(srun)
case ${1:-} in
  "") ;;
  --smoke)
    "$project/examples/prepare-text.sh" --smoke || exit
    launch=()
    run=runs/smoke
    more+=(--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 32 --max-position-embeddings 32
           --vocab-size 300 --micro-batch-size 2 --global-batch-size 4 --train-iters 6 --lr-decay-iters 6
           --lr-warmup-iters 1 --eval-interval 3 --eval-iters 1 --num-threads 1) ;;
  *) sed -n '/^# Trains/,/^# RUN/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; [ "$1" = --help ] && exit 0; exit 2 ;;
esac

status=0
"${launch[@]}" "$MEGALITH" train --config "$config" --data-path data/corpus_text_document \
  --vocab-file data/tokenizer/vocab.json --merge-file data/tokenizer/merges.txt --split 95,5,0 \
  --num-threads "${SLURM_CPUS_PER_TASK:-0}" --save "$run" --load "$run" "${more[@]}" || status=$?

if [ $status -eq 143 ] && [ -n "${SLURM_JOB_ID:-}" ]; then
  echo "The time was up and the run saved itself: queued again."
  scontrol requeue "$SLURM_JOB_ID"
  exit
fi
exit $status
