#!/bin/bash
# Every relative link in the documents leads to a file, every anchor to a heading, and every source file that is named in
# backticks exists.
#   links_test.sh FOLDER
set -uo pipefail
cd "$1" || exit 1
failed=0
complain() { echo "$1"; failed=1; }

# The text outside of fenced and indented code.
prose() { awk '/^ *```/ { fenced = !fenced; next } !fenced && !/^    / { print }' "$1"; }
# GitHub's anchors of the headings of a page.
anchors() {
  prose "$1" | sed -n 's/^##* //p' | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

pages=$(find . -name '*.md' -not -path './build*' -not -path './.git/*' -not -path './runs/*' -not -path './quickstart/*' | sort)
[ -n "$pages" ] || complain "no page under $1"
links=0
for page in $pages; do
  folder=$(dirname "$page")
  while read -r target; do
    case $target in http://* | https://* | mailto:* | "") continue ;; esac
    links=$((links + 1))
    file=${target%%#*}
    path=$folder/$file
    [ -n "$file" ] || path=$page
    if [ ! -e "$path" ]; then
      complain "$page: the link $target leads nowhere"
    elif [[ $target == *#* && $path == *.md ]]; then
      grep -qxF -- "${target#*#}" <(anchors "$path") || complain "$page: $path has no heading for #${target#*#}"
    fi
  done < <(prose "$page" | grep -oE '\]\([^)]*\)' | sed 's/^](//; s/)$//')
  # `model/linear.cpp`, `tests/train/kill_test.sh`; names in capitals or with wildcards are patterns.
  while read -r name; do
    [ -e "$name" ] || [ -e "src/$name" ] || [ -e "$folder/$name" ] || complain "$page: there is no $name"
  done < <(prose "$page" | grep -oE '`[a-z_.]+/[a-z0-9_./-]+\.(cpp|h|cmake|sh|py|toml|md|txt)`' | tr -d '`' |
    grep -E '^(\.ci|bench|cmake|configs|docs|examples|scripts|src|tests|cli|core|device|comm|parallel|model|optim|data|checkpoint|generate|train)/')
done
[ $failed -ne 0 ] || echo "$links links lead somewhere"
exit $failed
