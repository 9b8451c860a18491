#!/bin/bash
# Times tokenizing, `data prepare` and `tokenizer train` beside tiktoken and Hugging Face tokenizers, in turns within one
# run. One line a result: NAME, ours, peer's, ratio, floor, separated by tabs; the status is 0 even where a ratio is below
# its floor, 1 where token numbers or merges differ.
# Usage: bench/tokenizer_bench.sh [encode] [prepare] [memory] [train]     (all of them where none is named)
# MEGALITH_BINARY: the program (build/megalith). MEGALITH_TEST_DATA: a folder with corpus/ and tokenizers/gpt2; without it
# the text is the King James Bible (Debian's bible-kjv) and Python's own library, with a vocabulary trained on both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(scripts/environment.sh tests/parity/requirements-tokenizers.txt)/bin/python
exec "$python" bench/tokenizer_bench.py "$@"
