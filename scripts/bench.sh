#!/bin/bash
# Measures megalith against what the machine can do and, with --peers, against other programs.
usage() {
  cat <<'END'
Usage: scripts/bench.sh [--peers] [--rounds N] [--no-build] [--list] [NAME...]
  NAME        parts to run; all without one. --list shows them
  --peers     also run PyTorch, tiktoken and Hugging Face tokenizers beside, each in an environment of its own under
              ~/.cache/megalith, made from a lock file with exact versions and hashes on the first use; PyTorch's takes
              6 GB and is installed only where 12 GB are free
  --rounds N  how often each side of a comparison runs, in turns (3)
  --no-build  use the build/megalith that is there
Prints a table: what, ours, peer or limit, ratio, floor. The status is 1 where a ratio is below its floor (bench/floors.tsv;
ratios only, so that machines of one kind can share them), 2 for a wrong argument. Let nothing else run beside it.
END
}
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

peers=no
build=yes
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --peers) peers=yes ;;
    --no-build) build=no ;;
    --rounds) [ $# -ge 2 ] || { usage >&2; exit 2; }; arguments+=("$1" "$2"); shift ;;
    --list) exec /usr/bin/python3 bench/compare.py --list ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "bench.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    *) arguments+=("$1") ;;
  esac
  shift
done

if [ $build = yes ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  { cmake --preset release && cmake --build --preset release --target megalith --parallel "$(nproc)"; } > "$log" 2>&1 ||
    { tail -n 30 "$log"; exit 1; }
fi
if [ $peers = yes ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}
  mkdir -p "$cache"
  lock=tests/parity/requirements-transformers.txt
  free=$(df -Pk "$cache" | awk 'NR == 2 { print int($4 / 1048576) }')
  if [ ! -e "$cache/megalith/environments/requirements-transformers-$(sha256sum $lock | cut -c1-12)/complete" ] && [ "$free" -lt 12 ]; then
    echo "bench.sh: PyTorch wants 12 GB in $cache, $free GB are free: its parts run without it" >&2
  else
    arguments+=(--torch "$(scripts/environment.sh $lock)/bin/python")
  fi
  arguments+=(--peers)
fi
exec /usr/bin/python3 bench/compare.py "${arguments[@]}"
