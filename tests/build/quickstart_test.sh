#!/bin/bash
# scripts/quickstart.sh with a pretended program: the stages, an interrupted training, resuming, starting over.
# Whether a real model learns is not tested here; scripts/bare-check.sh does that.
#   quickstart_test.sh SOURCE_FOLDER
set -uo pipefail
PATH=$PATH:/usr/games command -v bible > /dev/null || { echo "skipped: no program 'bible' (package bible-kjv)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scripts" "$folder/build"
cp "$1/scripts/quickstart.sh" "$folder/scripts/"
cd "$folder" || exit 1
for script in build install-deps; do
  printf '#!/bin/bash\necho summary > build/summary.txt\n' > scripts/$script.sh
done
cat > build/megalith <<'END'
#!/bin/bash
value() {  # FLAG: what follows it
  local flag=$1 previous=
  for word in "${arguments[@]}"; do
    [ "$previous" != "$flag" ] || echo "$word"
    previous=$word
  done
}
arguments=("$@")
echo "$*" >> log
case $1 in
  tokenizer) mkdir -p "$(value --output)"; echo x > "$(value --output)/merges.txt" ;;
  data)
    head -c 120000 /dev/zero > "$(value --output-prefix)_text_document.bin"
    echo x > "$(value --output-prefix)_text_document.idx" ;;
  train)
    save=$(value --save) interval=$(value --save-interval) last=$(value --train-iters)
    for ((step = interval; step <= last; step += interval)); do
      checkpoint=$(printf '%s/iter_%07d' "$save" $step)
      mkdir -p "$checkpoint" && touch "$checkpoint/COMMITTED"
      if [ -e interrupt ] && [ $step -ge 300 ]; then rm interrupt; exit 0; fi
    done
    printf '{"lm_loss":7.5,"validation_loss":3.5,"tokens_per_second":8000.5}\n{"lm_loss":7,"validation_loss":null}\n' \
      > "$save/metrics.jsonl" ;;
  generate) printf 'step %s \303\251 of words that follow the prompt\n' "$(value --ckpt-step)" ;;
  plot) echo picture > "$(value --output)" ;;
esac
END
chmod +x build/megalith scripts/*.sh

failed=0
complain() { echo "$1"; failed=1; }
expect() { grep -qE -e "$1" output || complain "$2: no line '$1'"; }

touch interrupt
scripts/quickstart.sh < /dev/null > output 2>&1 && complain "an interrupted training was reported as success"
expect 'stopped early' "interrupted"
expect 'about [1-9][0-9]* minutes here' "estimate"
expect '3933170 bytes to train on, the last 204680 ' "text"
scripts/quickstart.sh < /dev/null > output 2>&1 || complain "resuming failed"
expect 'An earlier run \(interrupted\).*resuming' "resumed"
expect '^untrained  *after 10 %  *after 100 %$' "samples"
expect '^step 10 .*step [1-9][0-9]* .*step [1-9]' "samples"
expect 'Validation loss: 3.5 nats a token, 1.026 nats a byte' "loss"
[ "$(grep -c '^train.*--load quickstart/run$' log)" -eq 1 ] || complain "the resumed training did not load its checkpoint"
[ "$(grep -c '^tokenizer train' log)" -eq 1 ] || complain "the tokenizer was trained twice"
[ "$(find quickstart/run -name COMMITTED | wc -l)" -eq 2 ] || complain "two checkpoints should be left"
tokens=$(grep -oE 'on [0-9]+ thousand tokens' output | grep -oE '[0-9]+')
[ "$tokens" -ge 3000 ] || complain "$tokens thousand tokens are fewer than 3 million"
: > log
scripts/quickstart.sh < /dev/null > output 2>&1 || complain "a third start failed"
grep -q '^train' log && complain "a finished training was run again"
scripts/quickstart.sh --restart < /dev/null > output 2>&1 || complain "starting over failed"
[ "$(grep -c '^tokenizer train\|^train' log)" -eq 3 ] || complain "--restart did not begin again"
scripts/quickstart.sh --long < /dev/null > output 2>&1 || complain "--long failed"
[ -e quickstart/run-long ] && [ -e quickstart/run ] || complain "--long should stand beside the short run"
[ $failed -eq 0 ] || cat output
exit $failed
