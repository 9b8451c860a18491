#!/bin/bash
# Prints the folder of a Python environment that holds exactly the packages of a lock file, made where it is missing.
# Usage: scripts/environment.sh LOCK_FILE
set -euo pipefail
lock=${1:?usage: scripts/environment.sh LOCK_FILE}
key=$(sha256sum "$lock" | cut -c1-12)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/megalith/environments/$(basename "$lock" .txt)-$key
if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  { /usr/bin/python3 -m venv "$folder" &&
    "$folder/bin/pip" --quiet --disable-pip-version-check install --require-hashes --no-deps -r "$lock" &&
    touch "$folder/complete"; } > "$log" 2>&1 || { tail -n 5 "$log" >&2; exit 1; }
fi
echo "$folder"
