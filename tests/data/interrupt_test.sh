#!/bin/bash
# Kills `megalith data prepare` at many moments: afterwards a file either is not there or is whole.
# interrupt_test.sh MEGALITH
set -u
megalith=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0
complain() { echo "FAIL: $*"; failures=$((failures + 1)); }

awk 'BEGIN { for (i = 0; i < 8000; ++i) { printf "{\"text\": \""; for (j = 0; j < i % 40; ++j) printf "%d ", (i * 31 + j) % 5000;
             printf "%d\"}\n", i % 5000 } }' > in.jsonl
prepare() { exec "$megalith" data prepare --input in.jsonl --output-prefix "$1" --tokenizer-type NullTokenizer --vocab-size 5000; }
started=$(date +%s%N)
(prepare whole) > out 2>&1 || { cat out; complain "the run without a kill"; }
took=$((($(date +%s%N) - started) / 1000))

head -n 300 in.jsonl > in-older.jsonl
"$megalith" data prepare --input in-older.jsonl --output-prefix older --tokenizer-type NullTokenizer --vocab-size 5000 \
  > out 2>&1 || complain "the older pair"

new=0
old=0
absent=0
for i in $(seq 1 12); do
  rm -f cut_text_document.bin cut_text_document.idx
  # Every second time an older pair of the same name is there already.
  if [ $((i % 2)) = 0 ]; then cp older_text_document.bin cut_text_document.bin; cp older_text_document.idx cut_text_document.idx; fi
  (prepare cut) > out 2>&1 &
  job=$!
  sleep "$(awk -v i="$i" -v took="$took" 'BEGIN { printf "%.6f", took / 1e6 * i / 11 }')"
  kill -9 $job 2> /dev/null
  wait $job 2> /dev/null
  if [ ! -e cut_text_document.idx ]; then
    absent=$((absent + 1))
  elif cmp -s cut_text_document.idx whole_text_document.idx && cmp -s cut_text_document.bin whole_text_document.bin; then
    new=$((new + 1))
  elif cmp -s cut_text_document.idx older_text_document.idx && cmp -s cut_text_document.bin older_text_document.bin; then
    old=$((old + 1))
  else
    complain "kill $i left a pair that is neither the old one nor the new one"
  fi
done
echo "12 kills: $absent times absent, $old times the older pair, $new times the new one"

(prepare cut) > out 2>&1 || complain "the run after the kills"
cmp -s cut_text_document.bin whole_text_document.bin || complain "the run after the kills wrote another .bin"
[ -z "$(find . -name '*.tmp-*')" ] || complain "temporary files of killed runs were left: $(find . -name '*.tmp-*')"

# A slow pipe, so that the interrupt surely comes in the middle.
mkfifo pipe.jsonl
(for _ in $(seq 1 400); do printf '{"text": "1 2 3"}\n' || exit; sleep 0.02; done > pipe.jsonl) 2> /dev/null &
feeder=$!
# An ordinary background job of a script ignores SIGINT, so SIGTERM stands for both.
"$megalith" data prepare --input pipe.jsonl --output-prefix piped --tokenizer-type NullTokenizer --vocab-size 5000 > out 2>&1 &
job=$!
sleep 0.5
kill -TERM $job
wait $job
status=$?
kill $feeder 2> /dev/null
[ $status = 143 ] || complain "an interrupted run ended with status $status instead of 143"
grep -q "nothing was written" out || complain "an interrupted run did not say so"
[ -z "$(find . -name 'piped*')" ] || complain "an interrupted run left $(find . -name 'piped*')"

# Damage is found and named, with status 3.
cp whole_text_document.bin damaged.bin
head -c 1000 whole_text_document.idx > damaged.idx
"$megalith" data inspect damaged > out 2>&1
[ $? = 3 ] || complain "data inspect of a truncated file did not end with status 3"
grep -q "damaged.idx: announces 8000 sequences" out || complain "data inspect did not say what is wrong: $(cat out)"
"$megalith" data inspect whole_text_document --vocab-size 4000 > out 2>&1
[ $? = 3 ] || complain "data inspect missed tokens beyond the vocabulary"
"$megalith" data inspect whole_text_document --vocab-size 5000 > out 2>&1 || complain "data inspect of a sound file: $(cat out)"
"$megalith" data prepare --input in.jsonl --output-prefix whole --no-overwrite --tokenizer-type NullTokenizer \
  --vocab-size 5000 > out 2>&1
[ $? = 2 ] || complain "--no-overwrite overwrote"

[ $failures = 0 ] && echo "all good"
exit $((failures > 0))
