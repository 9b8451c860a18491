#!/bin/bash
# From a fresh clone to a language model that writes English, in one command: installs, builds, gets real text, trains a
# tokenizer and a small GPT on it, and shows what it has learned.
usage() {
  cat <<'END'
Usage: scripts/quickstart.sh [--long] [--resume | --restart] [--no-install]
  --long        train a larger model for about an hour, instead of about ten minutes
  --resume      go on with what an earlier start left (without a terminal, that is the default)
  --restart     delete what an earlier start left, and begin again
  --no-install  use what is installed
All that it makes lies in quickstart/. Ctrl-C stops; the training saves itself first.
END
}
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

long=no
again=ask
install=yes
for argument in "$@"; do
  case $argument in
    --long) long=yes ;;
    --resume) again=resume ;;
    --restart) again=restart ;;
    --no-install) install=no ;;
    -h | --help) usage; exit 0 ;;
    *) echo "quickstart.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

megalith=build/megalith
text=quickstart/text
tokenizer=quickstart/tokenizer
data=quickstart/data
prompt="And it came to pass, that"
seed=1234
if [ $long = no ]; then
  run=quickstart/run
  size="3.7 million parameters"
  layers=4 hidden=256 heads=4 sequence=128 batch=16 iterations=1800 dropout=0 rate=2e-3 minutes=10
else
  run=quickstart/run-long
  size="11 million parameters"
  layers=6 hidden=384 heads=6 sequence=256 batch=16 iterations=1800 dropout=0.1 rate=1.5e-3 minutes=60
fi
tenth=$((iterations / 10))
untrained=$run-untrained
model=(--num-layers $layers --hidden-size $hidden --num-attention-heads $heads --seq-length $sequence
       --max-position-embeddings $sequence --hidden-dropout $dropout --attention-dropout $dropout
       --micro-batch-size $batch --global-batch-size $batch --seed $seed
       --tokenizer-type GPT2BPETokenizer --vocab-file $tokenizer/vocab.json --merge-file $tokenizer/merges.txt
       --train-data-path $data/train_text_document --valid-data-path $data/valid_text_document
       --data-cache-path $data/cache)

started=$SECONDS
number=0
stage() {  # TITLE ESTIMATE
  number=$((number + 1))
  printf '\n[%d/8] %s (%s)\n' $number "$1" "$2"
  stage_started=$SECONDS
}
took() { printf '      done in %d s\n' $((SECONDS - stage_started)); }
# The last value of a key in a metrics file.
metric() { sed -n "s/.*\"$2\": *\([0-9][0-9.eE+-]*\).*/\1/p" "$1" 2> /dev/null | tail -n 1; }
has_checkpoint() { [ -n "$(find "$1" -maxdepth 2 -name COMMITTED -print -quit 2> /dev/null)" ]; }
folder_of() { printf '%s/iter_%07d' "$run" "$1"; }
is_finished() { [ -e "$(folder_of $iterations)/COMMITTED" ]; }

if [ -d $run ] && [ $again = ask ]; then
  state="interrupted"
  is_finished && state="finished"
  if [ -t 0 ] && [ -t 1 ]; then
    read -r -p "An earlier run ($state) lies in $run. Resume it, or start over? [R/s] " answer || answer=
    case $answer in
      [sS]*) again=restart ;;
      *) again=resume ;;
    esac
  else
    echo "An earlier run ($state) lies in $run: resuming it (--restart starts over)."
    again=resume
  fi
fi
[ $again != restart ] || rm -rf $text $tokenizer $data $run $untrained quickstart/build.log

stage "Install compiler, libraries and text" "about 1 minute; a second where they are there"
if [ $install = yes ]; then
  scripts/install-deps.sh build
else
  echo "left out (--no-install)"
fi
took

stage "Build $megalith" "about 4 minutes on 2 cores; seconds where it is built"
mkdir -p quickstart
if ! scripts/build.sh > quickstart/build.log 2>&1; then
  tail -n 40 quickstart/build.log
  echo "quickstart.sh: the build failed; all of its output is in quickstart/build.log" >&2
  exit 1
fi
cat build/summary.txt
took

stage "Get English text" "a second"
if [ ! -s $text/valid.jsonl ]; then
  PATH=$PATH:/usr/games command -v bible > /dev/null || {
    echo "quickstart.sh: the program 'bible' is missing; run scripts/install-deps.sh (package bible-kjv)" >&2
    exit 1
  }
  mkdir -p $text
  # "Ge1:1 In the beginning ..." becomes one JSON object a chapter; the last 5 % of the text is for validation.
  PATH=$PATH:/usr/games bible -f gen1:1-rev22:21 > $text/verses
  LC_ALL=C awk -v total="$(sed 's/^[^ ]* //' $text/verses | wc -c)" -v train=$text/train.jsonl -v valid=$text/valid.part '
    function finish() {
      if (chapter == "") return
      part = seen < 0.95 * total ? train : valid
      printf "{\"text\": \"%s\"}\n", chapter > part
      size[part] += bytes
      seen += bytes
      chapter = ""
      bytes = 0
    }
    {
      name = $1
      sub(/:.*/, "", name)
      if (name != last) finish()
      last = name
      sub(/^[^ ]* /, "")
      bytes += length($0) + 1
      gsub(/[\\"]/, "\\\\&")
      chapter = chapter $0 "\\n"
    }
    END {
      finish()
      print size[train], size[valid]
    }' $text/verses > $text/bytes
  mv $text/valid.part $text/valid.jsonl
fi
read -r train_bytes valid_bytes < $text/bytes
echo "King James Bible: $train_bytes bytes to train on, the last $valid_bytes to validate on."
took

stage "Train a byte-level BPE tokenizer, 2,048 pieces" "a few seconds"
if [ ! -s $tokenizer/merges.txt ]; then
  $megalith tokenizer train --input $text/train.jsonl --vocab-size 2048 --output $tokenizer
fi
took

stage "Prepare the data" "a few seconds"
for part in train valid; do
  if [ ! -s $data/${part}_text_document.idx ]; then
    mkdir -p $data
    $megalith data prepare --input $text/$part.jsonl --output-prefix $data/$part --append-eod \
      --tokenizer-type GPT2BPETokenizer --vocab-file $tokenizer/vocab.json --merge-file $tokenizer/merges.txt
  fi
done
valid_tokens=$(($(wc -c < $data/valid_text_document.bin) / 2))
# Evaluations see the whole validation text once.
eval_iterations=$(((valid_tokens / sequence + batch - 1) / batch))
took

stage "The untrained model, and how fast this machine is" "a few seconds"
if ! has_checkpoint $untrained; then
  rm -rf $untrained
  # A learning rate that moves no float32 weight: what is saved is the model that the training will start from.
  $megalith train "${model[@]}" --train-iters 10 --lr 1e-30 --lr-decay-style constant --log-interval 5 \
    --save $untrained --save-interval 10 --no-save-optim > quickstart/untrained.log 2>&1 || {
    tail -n 20 quickstart/untrained.log >&2
    exit 1
  }
fi
speed=$(metric $untrained/metrics.jsonl tokens_per_second)
estimate=$(awk -v speed="${speed:-0}" -v tokens=$((iterations * batch * sequence)) -v minutes=$minutes \
  'BEGIN { printf "%.0f", (speed > 0 ? tokens / speed / 60 * 1.15 + 0.5 : minutes) }')
took

stage "Train a GPT of $size on $((iterations * batch * sequence / 1000)) thousand tokens" "about $estimate minutes here"
if is_finished; then
  echo "It is trained already ($run)."
else
  load=()
  ! has_checkpoint $run || load=(--load $run)
  status=0
  $megalith train "${model[@]}" --train-iters $iterations --lr $rate --min-lr 1e-4 --lr-decay-style cosine \
    --lr-warmup-iters 60 --weight-decay 0.1 --clip-grad 1.0 --adam-beta2 0.98 \
    --eval-interval $tenth --eval-iters $eval_iterations --log-interval 50 \
    --save $run --save-interval $tenth "${load[@]}" || status=$?
  if ! is_finished; then
    echo
    echo "The training stopped early (status $status). scripts/quickstart.sh --resume goes on from the last checkpoint."
    [ $status -ne 0 ] || status=1
    exit $status
  fi
  # Of the checkpoints, the one after 10 % and the last are kept.
  for folder in "$run"/iter_*; do
    case $folder in
      "$(folder_of $tenth)" | "$(folder_of $iterations)") ;;
      *) rm -rf "$folder" ;;
    esac
  done
fi
loss=$(metric $run/metrics.jsonl validation_loss)
nats=$(awk -v loss="$loss" -v tokens="$valid_tokens" -v bytes="$valid_bytes" 'BEGIN { printf "%.3f", loss * tokens / bytes }')
took

stage "What it has learned" "a few seconds"
sample() {  # FOLDER STEP: the prompt and what follows it
  $megalith generate --load "$1" --ckpt-step "$2" --prompt "$prompt" --num-tokens-to-generate 60 --temperature 0.8 \
    --top-p 0.95 --seed $seed 2> quickstart/generate.log || { cat quickstart/generate.log >&2; return 1; }
}
width=34
column() {  # TITLE FOLDER STEP
  { printf '%s\n\n' "$1"; sample "$2" "$3" | LC_ALL=C sed 's/[^ -~]/?/g' | fold -s -w $width; } > "quickstart/sample-$1"
}
column "untrained" $untrained 10
column "after 10 %" $run $tenth
column "after 100 %" $run $iterations
echo
LC_ALL=C awk -v width=$((width + 3)) '
  FNR == 1 { columns++ }
  { line[columns, FNR] = $0; if (FNR > rows) rows = FNR }
  END {
    for (row = 1; row <= rows; row++) {
      for (column = 1; column <= columns; column++) printf "%-" width "s", line[column, row]
      print ""
    }
  }' "quickstart/sample-untrained" "quickstart/sample-after 10 %" "quickstart/sample-after 100 %" | sed 's/ *$//'
$megalith plot $run --output quickstart/loss.svg > /dev/null
$megalith plot $run --output quickstart/loss.png > /dev/null || true
took

cat <<END

Validation loss: $loss nats a token, $nats nats a byte.
Run directory $run, loss curves quickstart/loss.svg and .png. All in $(((SECONDS - started) / 60)) min $(((SECONDS - started) % 60)) s.

Try next:
  $megalith generate --load $run --prompt "The king said unto her," --num-tokens-to-generate 100
  $megalith inspect $run
END
if [ $long = no ]; then
  echo "  scripts/quickstart.sh --long"
else
  echo "  $megalith plot quickstart/run $run --output quickstart/both.svg"
fi
