"""Compares `megalith tokenizer` with tiktoken and Hugging Face tokenizers: token numbers, merges, round trips.

Environment: requirements-tokenizers.txt

Usage: tokenizer_parity.py [MEGALITH [DATA_FOLDER]]
MEGALITH defaults to $MEGALITH_BINARY, DATA_FOLDER to $MEGALITH_TEST_DATA, else ../shared/data beside the source folder;
GPT-2's own files (tokenizers/gpt2) are used where they are there. One line PASS, FAIL or SKIP a check; exit status 1
where one failed.
"""

import bisect
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# The pattern as tiktoken itself writes it for GPT-2: the same words as the published one, but its engine would run out of
# stack with that one on long white space.
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
END = "<|endoftext|>"

failures = 0


def report(good, name, detail=""):
    global failures
    failures += 0 if good else 1
    print(("PASS " if good else "FAIL ") + name + (": " + detail if detail else ""), flush=True)


def byte_alphabet():
    """Character of the files to byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {chr(byte): byte for byte in printable}
    characters.update({chr(0x100 + i): byte for i, byte in enumerate(others)})
    return characters


def tiktoken_of(folder):
    alphabet = byte_alphabet()
    vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    special = {END: vocab.pop(END)}
    ranks = {bytes(alphabet[c] for c in text): number for text, number in vocab.items()}
    return tiktoken.Encoding("parity", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)


class Megalith:
    def __init__(self, binary, work):
        self.binary = binary
        self.work = work

    def run(self, *arguments, stdin=b""):
        done = subprocess.run([self.binary, "tokenizer", *map(str, arguments)], input=stdin, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"megalith tokenizer {arguments}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def encode(self, folder, data, *flags):
        return list(map(int, self.run("encode", "--tokenizer-model", folder, *flags, stdin=data).split()))


def corpus():
    """Texts that are hard for tokenizers, by name."""
    pick = random.Random(5)
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((SOURCE / "src" / "data").glob("*.cpp")))
    code += pathlib.Path(__file__).read_text(encoding="utf-8")
    emoji = ["😀", "👩\u200d👩\u200d👧\u200d👦", "🏳️\u200d🌈", "🇩🇪", "👍🏽", "☃️", "🦙.cpp", "1️⃣"]
    cjk = "我想在apple工作1314151天～ 日本語のテキスト、カタカナ。 한국어 문장입니다。「引用」　全角スペース １２３"
    scripts = "нещо на Български ελληνικά עברית العربية ٠١٢٣ हिन्दी में देवनागरी ไทย កាន់តែពិសេស ½ Ⅷ ² ₃ ªº ǅ ʰ"
    combining = "e\u0301a\u0308 n\u0303o\u0302\u0323 Z\u0351\u036b\u0343a\u0369 \u0301x कि\u093c"
    contractions = "I've 'told he's 'RE you sure? 'M not I'll 'D you We'Ve a'lL don''t ''s '' 's 't 'ret 'lll it's"
    spaces = "".join(" " * pick.randrange(1, 40) + pick.choice(["x", "\n", "\t", "\r\n", "\u00a0", "\u2003", "9", "."])
                     for _ in range(3000))
    white = "a\u0085b\u2028c\u2029d\u1680e\u202ff\u205fg\u3000h\u180ei\u200bj\ufeffk\x1cl\x1fm\x0bn\x0co"
    mixed = "".join(pick.choice([code[i:i + 50] for i in range(0, 5000, 50)] + emoji + [cjk, scripts, combining, white])
                    for _ in range(2000))
    letters = "".join(pick.choice("abcdefgh") for _ in range(1_000_000))
    return {
        "code": code,
        "emoji": " ".join(pick.choice(emoji) + pick.choice(["", "!", "a"]) for _ in range(3000)),
        "cjk": cjk * 300,
        "scripts": scripts * 300,
        "combining marks": combining * 300,
        "contractions": contractions * 100,
        "runs of spaces": spaces,
        "white space of all kinds": (white + " " + white + "  ") * 100,
        "mixed": mixed,
        "special tokens as text": f"a{END}b <|endoftext {END}{END}",
        "1 MB of letters without a space": letters,
        "1 MB of one letter": "a" * 1_000_000,
        "1 MB of spaces": " " * 1_000_000,
        "1 MB of CJK without a space": "".join(chr(pick.randrange(0x4E00, 0x9FA5)) for _ in range(340_000)),
        "empty": "",
    }


def check_texts(megalith, folder, label):
    oracle = tiktoken_of(folder)
    hugging_face = Tokenizer.from_file(str(folder / "tokenizer.json"))
    hugging_face.encode_special_tokens = True
    for name, text in corpus().items():
        data = text.encode()
        ours = megalith.encode(folder, data)
        theirs = oracle.encode_ordinary(text)
        report(ours == theirs, f"{label}, {name}: as tiktoken", f"{len(ours)} tokens")
        # Hugging Face's merge of one very long word takes quadratic time in some releases; 100 kB shows the same.
        short = text[:100_000]
        ours = megalith.encode(folder, short.encode()) if len(short) < len(text) else ours
        report(ours == hugging_face.encode(short, add_special_tokens=False).ids, f"{label}, {name}: as tokenizers")
    text = f"a{END}b{END}"
    report(megalith.encode(folder, text.encode(), "--parse-special") == oracle.encode(text, allowed_special="all"),
           f"{label}, special tokens on request")


def check_code_points(megalith, folder, label):
    """Every code point in places where its class shows; classes differ only where Unicode versions do."""
    oracle = tiktoken_of(folder)
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000 and p not in (0x0A, 0x0D)]
    # A line starts with a letter, so no white space run crosses the line end.
    lines = [f"x {chr(p)}{chr(p)}'s 1{chr(p)}a  {chr(p)}z".encode() + b"\n" for p in points]
    ours = megalith.encode(folder, b"".join(lines))
    theirs = oracle.encode_ordinary(b"".join(lines).decode())
    sizes = [len(oracle.decode_single_token_bytes(t)) for t in range(oracle.n_vocab)]

    def ends(tokens):
        place, found = 0, set()
        for token in tokens:
            place += sizes[token]
            found.add((place, token))
        return found

    differing = ends(ours) ^ ends(theirs)
    starts, place = [], 0
    for line in lines:
        starts.append(place)
        place += len(line)
    different = sorted({points[bisect.bisect_left(starts, end) - 1] for end, _ in differing})
    version = unicodedata.unidata_version
    both = [p for p in different if unicodedata.category(chr(p)) != "Cn"]
    detail = f"{len(points)} code points, {len(different)} differ"
    if different:
        ranges, first = [], different[0]
        for i, p in enumerate(different):
            if i + 1 == len(different) or different[i + 1] != p + 1:
                ranges.append(f"U+{first:04X}" + (f"-{p:04X}" if p > first else ""))
                first = different[i + 1] if i + 1 < len(different) else p
        detail += f" (newer than Unicode {version}: {len(different) - len(both)}): " + " ".join(ranges)
    report(not both, f"{label}, every code point that Unicode {version} assigns", detail)


def check_round_trips(megalith, folder, label):
    pick = random.Random(9)
    samples = {
        "random bytes": pick.randbytes(200_000),
        "all pairs of bytes": bytes(b for i in range(256) for j in range(256) for b in (i, j)),
        "cut UTF-8": b"".join("日😀é \n".encode()[: pick.randrange(12)] for _ in range(5000)),
    }
    for name, data in samples.items():
        ids = megalith.run("encode", "--tokenizer-model", folder, stdin=data)
        back = megalith.run("decode", "--tokenizer-model", folder, stdin=ids)
        report(back == data, f"{label}, round trip of {name}")


def check_training(megalith, texts, vocab_size, min_frequency, label):
    source = megalith.work / "train.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    outputs = []
    for workers in (1, 3):
        folder = megalith.work / f"{label}-{workers}"
        megalith.run("train", "--input", source, "--vocab-size", vocab_size, "--min-frequency", min_frequency, "--output",
                     folder, "--workers", workers)
        outputs.append([(folder / name).read_bytes() for name in ("vocab.json", "merges.txt", "tokenizer.json")])
    report(outputs[0] == outputs[1], f"training {label}: the same on 1 and 3 threads")
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    merges = [m if isinstance(m, str) else " ".join(m) for m in json.loads(theirs.to_str())["model"]["merges"]]
    ours = outputs[0][1].decode().split("\n")[1:-1]
    same = next((i for i, pair in enumerate(zip(ours, merges)) if pair[0] != pair[1]), min(len(ours), len(merges)))
    report(ours == merges, f"training {label}: merges as tokenizers",
           f"{len(ours)} and {len(merges)} merges, {same} equal ones at the beginning")
    return megalith.work / f"{label}-1"


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MEGALITH_BINARY", SOURCE / "build-dev" / "megalith")
    data = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                        os.environ.get("MEGALITH_TEST_DATA", SOURCE / ".." / "shared" / "data"))
    if not os.access(binary, os.X_OK):
        print(f"SKIP all: no program at {binary}")
        return 77
    with tempfile.TemporaryDirectory() as work:
        megalith = Megalith(binary, pathlib.Path(work))
        texts = corpus()
        usable = [text for name, text in texts.items() if text and not name.startswith("1 MB")]
        check_training(megalith, usable, 600, 0, "600 pieces")
        trained = check_training(megalith, usable, 4000, 2, "4000 pieces")
        check_training(megalith, ["aaaa aaaaaaaa aaa", "abab abababab", "zzz" * 50], 300, 0, "repeats")
        pick = random.Random(3)
        words = ["".join(pick.choice("abcde") for _ in range(pick.randrange(1, 12))) for _ in range(5000)]
        check_training(megalith, [" ".join(words[i:i + 100]) for i in range(0, 5000, 100)], 3000, 0, "many ties")
        folders = {"trained": trained}
        if (data / "tokenizers" / "gpt2" / "tokenizer.json").exists():
            folders["GPT-2"] = data / "tokenizers" / "gpt2"
        else:
            print(f"SKIP GPT-2's files: {data}/tokenizers/gpt2 is not there; set MEGALITH_TEST_DATA")
        for label, folder in folders.items():
            check_texts(megalith, folder, label)
            check_code_points(megalith, folder, label)
            check_round_trips(megalith, folder, label)
    print("tokenizer parity: " + ("all agree" if failures == 0 else f"{failures} checks FAILED"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
