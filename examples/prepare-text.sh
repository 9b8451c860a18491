#!/bin/bash
# From text to tokens: learns a tokenizer from your text, turns the text into .bin/.idx files, and verifies them.
usage() {
  cat <<'HELP'
Usage: examples/prepare-text.sh FOLDER TEXT...
       examples/prepare-text.sh --smoke
  FOLDER   gets tokenizer/ and corpus_text_document.bin and .idx
  TEXT     plain text or JSON lines ("text"), also .gz and .zst; plain text is cut into documents at blank lines
  --smoke  a tiny vocabulary and these scripts as text, in ./data where that holds nothing yet, in a second
  VOCAB    (environment) pieces of the vocabulary, 50257 where it is not set
  MEGALITH (environment) the program; build/megalith, else the installed one, where it is not set
HELP
}
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$project/build:$PATH MEGALITH=${MEGALITH:-megalith}
vocab=${VOCAB:-50257}
case ${1:---help} in
  --help | -h) usage; exit 0 ;;
  --smoke)
    [ ! -e data/corpus_text_document.idx ] || exit 0  # never over somebody's data
    vocab=300
    set -- data "$project"/examples/*.sh ;;
  -*) usage >&2; exit 2 ;;
esac
[ $# -ge 2 ] || { usage >&2; exit 2; }
folder=$1
shift

if [ ! -e "$folder/tokenizer/tokenizer.json" ]; then
  "$MEGALITH" tokenizer train --input "$@" --sample-by paragraph --vocab-size "$vocab" --output "$folder/tokenizer"
fi
tokenizer=(--tokenizer-type GPT2BPETokenizer --vocab-file "$folder/tokenizer/vocab.json"
           --merge-file "$folder/tokenizer/merges.txt")
"$MEGALITH" data prepare --input "$@" --sample-by paragraph --output-prefix "$folder/corpus" --append-eod "${tokenizer[@]}"
"$MEGALITH" data inspect "$folder/corpus_text_document" "${tokenizer[@]}"
