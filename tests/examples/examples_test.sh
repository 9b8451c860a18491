#!/bin/bash
# Every script of examples/ parses, prints its usage, refuses an unknown flag, and does its work with --smoke.
#   examples_test.sh MEGALITH SOURCE_FOLDER
set -uo pipefail
MEGALITH=$(realpath "$1")
export MEGALITH
source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RUN CONFIG FLAGS ITERATIONS PROMPT VOCAB MORE RATE SLURM_JOB_ID SLURM_SUBMIT_DIR SLURM_CPUS_PER_TASK
failed=0
complain() { echo "$1"; failed=1; }

# What each must leave behind.
declare -A expected=(
  [prepare-text]="data/corpus_text_document.idx data/tokenizer/tokenizer.json"
  [pretrain-gpt2-124m]="runs/smoke/iter_0000003/COMMITTED runs/smoke/iter_0000006/COMMITTED runs/smoke/loss.svg"
  [continue-with-another-schedule]="runs/first-longer/iter_0000012/COMMITTED runs/first-anew/iter_0000004/COMMITTED
                                    runs/first-continued.svg"
  [compare-runs]="runs/lr-1e-3/metrics.jsonl runs/lr-4e-3/metrics.jsonl runs/compare.svg"
  [slurm-one-node]="runs/smoke/iter_0000006/COMMITTED"
  [megatron-flags]="runs/smoke/iter_0000008/COMMITTED"
)
for script in "$source"/examples/*.sh; do
  name=$(basename "$script" .sh)
  [ -x "$script" ] || complain "$name is not executable"
  grep -q -- "--smoke" <(bash "$script" --help 2>&1) || complain "$name --help does not show its usage"
  if [ "$name" != megatron-flags ]; then  # whose flags are the program's
    "$script" --no-such-flag > /dev/null 2>&1
    [ $? -eq 2 ] || complain "$name --no-such-flag did not end with status 2"
  fi
  [ -n "${expected[$name]:-}" ] || { complain "$name: this test does not know what it leaves behind"; continue; }
  mkdir "$work/$name"
  if ! (cd "$work/$name" && "$script" --smoke) > "$work/log" 2>&1; then
    complain "$name --smoke failed:"
    tail -n 15 "$work/log"
  fi
  for file in ${expected[$name]}; do
    [ -s "$work/$name/$file" ] || complain "$name --smoke left no $file"
  done
  grep -q "examples/$name.sh\|($name.sh)" "$source/examples/README.md" || complain "examples/README.md does not list $name.sh"
done

# The Slurm script queues itself again after a stop by SIGTERM, and only then.
mkdir "$work/bin" "$work/slurm"
printf '#!/bin/bash\nexit 143\n' > "$work/bin/srun"
printf '#!/bin/bash\necho "$@" > %s/requeued\n' "$work" > "$work/bin/scontrol"
chmod +x "$work/bin"/*
(cd "$work/slurm" && PATH="$work/bin:$PATH" SLURM_JOB_ID=7 SLURM_SUBMIT_DIR=$source "$source/examples/slurm-one-node.sh") > /dev/null ||
  complain "slurm-one-node.sh failed though it was queued again"
[ "$(cat "$work/requeued" 2> /dev/null)" = "requeue 7" ] || complain "slurm-one-node.sh did not queue itself again"
rm -f "$work/requeued"
printf '#!/bin/bash\nexit 5\n' > "$work/bin/srun"
(cd "$work/slurm" && PATH="$work/bin:$PATH" SLURM_JOB_ID=7 SLURM_SUBMIT_DIR=$source "$source/examples/slurm-one-node.sh") > /dev/null
[ $? -eq 5 ] || complain "slurm-one-node.sh hid status 5"
[ ! -e "$work/requeued" ] || complain "slurm-one-node.sh queued itself again after a failure"
exit $failed
