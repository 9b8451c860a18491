#!/bin/bash
# Every command in the documents names a subcommand and flags that the program has, and so does every flag that the
# subcommands' pages mention.
#   flags_test.sh MEGALITH FOLDER
set -uo pipefail
megalith=$1
cd "$2" || exit 1
failed=0
complain() { echo "$1"; failed=1; }

mapfile -t commands < <("$megalith" --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p')
[ ${#commands[@]} -ge 10 ] || { echo "cannot read the subcommands from megalith --help"; exit 1; }
declare -A flags=()  # "SUBCOMMAND --flag" and "--flag", with - for _
add() {
  for flag in $2; do
    flags["$1 ${flag//_/-}"]=1
    flags["${flag//_/-}"]=1
  done
}
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086
  add "$command" "$("$megalith" $command --help | sed -nE 's/^  (-h, )?(--.*)/\2/p' | sed 's/  .*//' | grep -oE -- '--[a-z0-9_-]+')"
done
# What Megatron-LM has and this program accepts or refuses by name.
add train "$("$megalith" docs megatron | grep '^| `--' | grep -oE -- '--[a-z0-9_-]+')"
known() {  # "SUBCOMMAND " or "", then the flag
  local flag=${2//_/-}
  [ -n "${flags["$1$flag"]:-}" ] || [[ $flag == --no-* && -n "${flags["$1--${flag#--no-}"]:-}" ]]
}

# The code of a page: fenced and indented lines, continued lines joined, and `code in backticks`, a command a line.
code() {
  awk '
    /^ *```/ { fenced = !fenced; next }
    { is_code = fenced || /^    / || FILENAME ~ /\.toml$/
      if (!is_code) { text = $0; while (match(text, /`[^`]+`/)) { print substr(text, RSTART + 1, RLENGTH - 2); text = substr(text, RSTART + RLENGTH) }; next }
      line = line $0
      if (sub(/\\$/, "", line)) next
      print line; line = "" }' "$1" | sed 's/&&\|;\||/\n/g'
}

checked=0
pages=$(find . \( -name '*.md' -o -path './configs/*.toml' \) -not -path './build*' -not -path './.git/*' -not -path './docs/config.md' \
  -not -path './runs/*' -not -path './quickstart/*' | sort)
for page in $pages; do
  while read -r first second rest; do
    command=
    for name in "${commands[@]}"; do
      if [ "$name" = "$first $second" ]; then command=$name; elif [ "$name" = "$first" ]; then command=$name; rest="$second $rest"; fi
    done
    if [ -z "$command" ]; then
      case $first in
        --* | help | plan) ;;  # plan is announced
        data | tokenizer | bench) [ "$second" = "train | encode | decode" ] || [[ $second == train* ]] ||
          complain "$page: there is no megalith $first $second" ;;
        *) complain "$page: there is no megalith $first" ;;
      esac
      continue
    fi
    for flag in $(grep -oE -- '(^| )--[A-Za-z0-9_-]+' <<< " $rest"); do
      checked=$((checked + 1))
      known "$command " "$flag" || complain "$page: megalith $command has no $flag"
    done
  done < <(code "$page" | grep -oE '(^|[ ("/])megalith +[a-z-].*' | sed -E 's/^.?megalith +//; s/ [0-9]?>.*//')
  case $page in
    ./docs/train.md | ./docs/data.md | ./docs/tokenizer.md | ./docs/generate.md | ./docs/inspect.md | ./docs/plot.md | \
      ./docs/checkpoints.md | ./docs/model.md | ./docs/exit-codes.md | ./docs/bench.md) ;;
    *) continue ;;
  esac
  # Flags of other programs: --foreground (timeout), --logdir (TensorBoard), --list and --peers (scripts/bench.sh).
  for flag in $(grep -oE -- '(^|[ `(|])--[a-z][a-z0-9_-]*[a-z0-9]' "$page" | grep -oE -- '--.*'); do
    checked=$((checked + 1))
    case $flag in --foreground | --logdir | --list | --peers) continue ;; esac
    known "" "$flag" || [[ $flag == --recompute ]] || complain "$page: no subcommand has $flag"
  done
done
[ $checked -ge 50 ] || complain "only $checked flags were found in the documents"
[ $failed -ne 0 ] || echo "$checked flags exist"
exit $failed
