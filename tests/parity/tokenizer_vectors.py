"""Prints the stored vectors of tests/data/tokenizer_trainer_test.cpp: merges and tokens of Hugging Face tokenizers.

Needs the packages of requirements-tokenizers.txt. Usage: tokenizer_vectors.py merges|tokens > tests/data/FILE.inc
"""

import json
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

END = "<|endoftext|>"
text = ""
for i in range(1, 41):
    text += f"The tortoise isn't as quick as the hare, but in race {i} the tortoise wins; the hare's asleep.\n"
    if i % 3 == 0:
        text += "La tortue était là — 亀は兎に勝った!  \n\n"

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.train_from_iterator([text], trainers.BpeTrainer(
    vocab_size=320, special_tokens=[END], show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))

printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
byte_of = {chr(byte): byte for byte in printable}
byte_of.update({chr(0x100 + i): byte for i, byte in enumerate(b for b in range(256) if b not in printable)})


def literal(piece):
    # Octal escapes end after three digits, whatever follows.
    return "".join(chr(b) if 0x20 <= b < 0x7F and chr(b) not in '"\\' else f"\\{b:03o}" for b in map(byte_of.get, piece))


if sys.argv[1] == "merges":
    for merge in json.loads(tokenizer.to_str())["model"]["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        print(f'"{literal(left)}|{literal(right)}",')
else:
    # There the special token has number 0, here the last one.
    ids = tokenizer.encode("The hare's race: 亀 wins,  the tortue isn't là.").ids
    print(",\n".join(str(i - 1) for i in ids) + ",")
