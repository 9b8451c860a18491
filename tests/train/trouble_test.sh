#!/usr/bin/env bash
# What a run does in trouble: SIGTERM and SIGINT, a full disk and a read-only folder during a save, a second process in the
# same folder. Usage: trouble_test.sh MEGALITH
set -euo pipefail
megalith=$1
work=$(mktemp -d)
mounted=()
cleanup() {
  for place in "${mounted[@]}"; do umount "$place" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAIL: $*"; [ -e "$work/log" ] && cat "$work/log"; exit 1; }

flags=(--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16 --vocab-size 97
       --micro-batch-size 2 --global-batch-size 4 --lr 1e-3 --mock-data --log-interval 100 --num-threads 1 --no-progress)
newest() { ls "$1" | sed -n 's/^iter_0*\([0-9][0-9]*\)$/\1/p' | sort -n | tail -n 1; }
# Waits until the run prints its first iteration line or checkpoint.
wait_for() { for _ in $(seq 600); do grep -q "$1" "$work/log" 2>/dev/null && return 0; sleep 0.05; done; fail "no \"$1\" within 30 s"; }

for signal in TERM INT; do
  expected=$([ $signal = TERM ] && echo 143 || echo 130)
  "$megalith" train "${flags[@]}" --train-iters 10000000 --save "$work/$signal" > "$work/log" 2>&1 &
  pid=$!
  wait_for "iteration      100/"
  "$megalith" train "${flags[@]}" --train-iters 10 --save "$work/$signal" > "$work/second" 2>&1 && fail "two processes trained in one folder"
  grep -q "another process" "$work/second" || fail "the second process was refused for another reason: $(cat "$work/second")"
  kill -s $signal "$pid"
  status=0; wait "$pid" || status=$?
  [ "$status" = "$expected" ] || fail "SIG$signal gave status $status, expected $expected"
  grep -q "SIG$signal: the step was finished and a checkpoint saved" "$work/log" || fail "no clear message after SIG$signal"
  [ "$(newest "$work/$signal")" -ge 100 ] || fail "SIG$signal left no checkpoint"
done

# A signal does not wait for an evaluation, however long.
"$megalith" train "${flags[@]}" --train-iters 30 --eval-interval 20 --eval-iters 2000000 --log-interval 10 --save "$work/evaluating" > "$work/log" 2>&1 &
pid=$!
wait_for "iteration       10/"
sleep 0.5
kill -s TERM "$pid"
for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
kill -0 "$pid" 2>/dev/null && { kill -9 "$pid"; fail "SIGTERM waited for an evaluation"; }
status=0; wait "$pid" || status=$?
[ "$status" = 143 ] || fail "SIGTERM during an evaluation gave status $status"
[ "$(newest "$work/evaluating")" -ge 10 ] || fail "SIGTERM during an evaluation left no checkpoint"

if [ "$(id -u)" != 0 ] || ! mkdir "$work/disk" || ! mount -t tmpfs -o size=3m tmpfs "$work/disk" 2>/dev/null; then
  echo "SKIP: full disk and read-only folder need the right to mount"
  exit 77
fi
mounted+=("$work/disk")
# The first checkpoint fits (about 0.35 MB), the later ones do not; the run goes on and says so, also where they are written
# beside the training.
for more in "" --async-save; do
  rm -rf "$work/disk/run"
  head -c 2200000 /dev/zero > "$work/disk/filler"
  "$megalith" train "${flags[@]}" $more --train-iters 30 --save-interval 10 --save "$work/disk/run" > "$work/log" 2>&1 &&
    fail "a full disk gave status 0"
  grep -q "no checkpoint at iteration" "$work/log" || fail "the full disk was not reported"
  grep -q "iteration       30/" "$work/log" || fail "training did not go on after a failed save"
  kept=$(newest "$work/disk/run")
  [ "$kept" = 10 ] || [ "$kept" = 20 ] || fail "the newest checkpoint is \"$kept\""
  ls "$work/disk/run" | grep -q writing && fail "a partial checkpoint was left"
  rm "$work/disk/filler"
  "$megalith" train "${flags[@]}" $more --train-iters 30 --save "$work/disk/run" --load "$work/disk/run" > "$work/log" 2>&1 ||
    fail "the run did not resume"
done

# A file system that has no way past the page cache.
mkdir "$work/plain"
if mount -t ramfs ramfs "$work/plain" 2>/dev/null; then
  mounted+=("$work/plain")
  "$megalith" train "${flags[@]}" --train-iters 20 --exit-interval 10 --save "$work/plain/run" > "$work/log" 2>&1 || fail "no run in a ramfs"
  "$megalith" train "${flags[@]}" --train-iters 20 --save "$work/plain/run" --load "$work/plain/run" > "$work/log" 2>&1 ||
    fail "no resumed run in a ramfs"
fi

mount -o remount,ro "$work/disk"
"$megalith" train "${flags[@]}" --train-iters 40 --save "$work/disk/run" --load "$work/disk/run" > "$work/log" 2>&1 && fail "a read-only folder gave status 0"
grep -qi "read-only" "$work/log" || fail "the read-only folder was not named"
[ "$(newest "$work/disk/run")" = 30 ] || fail "the checkpoint of iteration 30 is gone"
echo "signals, full disk, read-only folder and a second process are handled"
