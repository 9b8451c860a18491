#!/bin/bash
# The tests of the documents see what they are there for: a page with mistakes of every kind is refused, each by name.
#   refuses_test.sh MEGALITH FOLDER
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

cp -r "$2/docs" "$2/configs" "$tree/"
cat >> "$tree/docs/train.md" <<'PAGE'
See [that](nowhere.md), [this](data.md#nothing) and `train/nothing.cpp`.

    megalith train --lr 1 \
      --momentum 2

Use `megalith plot runs/a --colour`, `megalith paint`, or the flag `--nothing-like-it`.
PAGE
check() {  # MESSAGE PART..., what was printed on standard input
  local text
  text=$(cat)
  for message in "$@"; do
    grep -qF -- "$message" <<< "$text" || { echo "not refused: $message"; failed=1; }
  done
}
check "the link nowhere.md leads nowhere" "has no heading for #nothing" "there is no train/nothing.cpp" \
  < <("$here/links_test.sh" "$tree")
check "megalith train has no --momentum" "megalith plot has no --colour" "there is no megalith paint" \
  "no subcommand has --nothing-like-it" < <("$here/flags_test.sh" "$1" "$tree")
"$here/links_test.sh" "$tree" > /dev/null && { echo "links_test.sh ended with status 0"; failed=1; }
exit $failed
