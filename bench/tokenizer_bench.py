"""Tokenizing here and elsewhere, side by side: see tokenizer_bench.sh, which starts this with the peers installed.

encode: one document after another, one core and all cores. The peers' bare encode calls on texts in memory stand against
    `data prepare` whole: its reading of JSON lines and its writing of files count for it, not for them.
prepare: from JSON lines to a file of token numbers. The peers run in the loop of Megatron-LM's preprocess_data.py
    (json.loads, encode, append the end of document, write an array; a pool of processes), timed from start to end.
memory: peak memory of `data prepare` over 1 GB against 100 MB, and the share of the cores that is busy.
train: 32,768 pieces from the whole corpus, and whether the merges are Hugging Face's.

MB are 10^6 bytes of text as UTF-8. Of several rounds the fastest counts, for everyone.
"""

import array
import itertools
import json
import lzma
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "parity"))
CORES = len(os.sched_getaffinity(0))
os.environ["RAYON_NUM_THREADS"] = str(CORES)
os.environ["TOKENIZERS_PARALLELISM"] = "true"

from tokenizer_parity import END, tiktoken_of  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers, trainers  # noqa: E402

BINARY = pathlib.Path(os.environ.get("MEGALITH_BINARY", SOURCE / "build" / "megalith"))
DATA = pathlib.Path(os.environ.get("MEGALITH_TEST_DATA", SOURCE / ".." / "shared" / "data"))
ROUNDS = 3
PIECES = 32768
TEXT_BYTES = 16_000_000      # of English; code is what Python's library has
SLOW_BYTES = 2_000_000       # of each, for Hugging Face's encode, which takes seconds for them
DOCUMENT_CHARACTERS = 20_000
FLOORS = {"tiktoken": 3, "tokenizers": 5}

agreed = True


def row(name, ours, peer, ratio, floor):
    print(f"{name}\t{ours:.4g}\t{peer:.4g}\t{ratio:.3g}\t{floor}", flush=True)


def check(same, name):
    global agreed
    agreed = agreed and same
    print(f"{name}: {'the same' if same else 'DIFFERENT'}", file=sys.stderr, flush=True)


def size_of(texts):
    return sum(len(text.encode()) for text in texts)


def cut(text):
    """Documents of some 20,000 characters, cut at blank lines."""
    begin = 0
    while begin < len(text):
        blank = text.find("\n\n", begin + DOCUMENT_CHARACTERS)
        end = len(text) if blank < 0 else blank + 2
        yield text[begin:end]
        begin = end


def up_to(texts, limit):
    taken, size = [], 0
    for text in texts:
        if size >= limit:
            break
        taken.append(text)
        size += len(text.encode())
    return taken


def english_corpus(work):
    """JSON lines of books."""
    path = work / "corpus.jsonl"
    packed = DATA / "corpus" / "classic-pd-100MB.jsonl.xz"
    if packed.exists():
        with lzma.open(packed) as source, open(path, "wb") as target:
            while block := source.read(1 << 24):
                target.write(block)
        return path
    done = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True)
    verses = [line.split(" ", 1)[-1] for line in done.stdout.splitlines()]
    with open(path, "w", encoding="utf-8") as target:
        for begin in range(0, len(verses), 500):
            target.write(json.dumps({"text": "\n\n".join(verses[begin:begin + 500])}) + "\n")
    return path


def code_texts():
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        try:
            if text := path.read_text(encoding="utf-8"):
                yield text
        except UnicodeDecodeError:
            pass  # files that test Python's handling of other encodings


def write_lines(path, texts):
    with open(path, "w", encoding="utf-8") as target:
        for text in texts:
            target.write(json.dumps({"text": text}) + "\n")
    return path


def peak_until_end(process):
    """Highest resident memory of a running process in KiB. What wait4 says would hold this process's own size, which the
    child has between fork and exec."""
    peak = 0
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        if found := re.search(r"VmHWM:\s+(\d+)", status):
            if os.readlink(f"/proc/{process.pid}/exe") != os.readlink("/proc/self/exe"):
                peak = int(found.group(1))
        time.sleep(0.02)
    return peak


def run_timed(*arguments, cpus=None, watch=False):
    """Wall seconds, processor seconds, with `watch` peak KiB, and what it printed."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as messages:
        before = time.perf_counter()
        process = subprocess.Popen([BINARY, *map(str, arguments)], stdout=printed, stderr=messages,
                                   preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None)
        peak = peak_until_end(process) if watch else 0
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - before
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        messages.seek(0)
        if status != 0:
            raise RuntimeError(f"megalith {arguments}: {messages.read().decode(errors='replace')}")
        return wall, usage.ru_utime + usage.ru_stime, peak, printed.read().decode()


class Prepared:
    """Runs of `data prepare` over one file."""

    def __init__(self, tokenizer, source, prefix):
        self.arguments = ["data", "prepare", "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", tokenizer,
                          "--append-eod", "--input", source, "--output-prefix", prefix]
        self.prefix = prefix

    def run(self, workers, watch=False):
        """Seconds of the work, as the program says, without its start; as for the peers, whose tokenizers are loaded."""
        cpus = set(sorted(os.sched_getaffinity(0))[:workers])
        wall, processor, peak, printed = run_timed(*self.arguments, "--workers", workers, cpus=cpus, watch=watch)
        size, rate = re.search(r"from (\d+) bytes of text .* s: ([0-9.]+) MB/s", printed).groups()
        return {"work": int(size) / float(rate) / 1e6, "wall": wall, "processor": processor, "peak": peak}

    def ids(self):
        return read_ids(f"{self.prefix}_text_document.bin")


def read_ids(path):
    ids = array.array("H")
    ids.frombytes(pathlib.Path(path).read_bytes())
    return ids


class Peers:
    def __init__(self, folder):
        self.tiktoken = tiktoken_of(folder)
        self.tokenizers = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizers.encode_special_tokens = True
        self.eod = self.tokenizers.token_to_id(END)

    def encode(self, name, texts, cores):
        """Fastest public call of each."""
        if name == "tiktoken":
            if cores == 1:
                return [self.tiktoken.encode_ordinary(text) for text in texts]
            return self.tiktoken.encode_ordinary_batch(texts, num_threads=cores)
        return self.tokenizers.encode_batch_fast(texts, add_special_tokens=False)


def on_cores(cores, work):
    """Runs work() in a process of its own on so many cores, since Rayon's pool cannot change its size."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def body():
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
        os.environ["RAYON_NUM_THREADS"] = str(cores)
        os.environ["TOKENIZERS_PARALLELISM"] = "true" if cores > 1 else "false"
        sender.send(work())

    process = multiprocessing.get_context("fork").Process(target=body)
    process.start()
    result = receiver.recv()
    process.join()
    return result


def flat_ids(peers, encoded):
    flat = array.array("H")
    for document in encoded:
        ids = document if isinstance(document, list) else document.ids
        if ids:
            flat.extend(ids)
            flat.append(peers.eod)
    return flat


def bench_encode(folder, inputs, work):
    for kind, texts in inputs.items():
        short = up_to(texts, SLOW_BYTES)
        ours = Prepared(folder, write_lines(work / f"{kind}.jsonl", texts), work / f"{kind}")
        peers = Peers(folder)

        def timed(name, some, cores):
            def body():
                before = time.perf_counter()
                encoded = peers.encode(name, some, cores)
                seconds = time.perf_counter() - before
                return seconds, flat_ids(peers, encoded) if cores > 1 else None
            return on_cores(cores, body)

        for cores in sorted({1, CORES}):
            best = {}
            for _ in range(ROUNDS):
                seconds = {"megalith": ours.run(cores)["work"]}
                for name, some in (("tiktoken", texts), ("tokenizers", short)):
                    seconds[name], ids = timed(name, some, cores)
                    if ids is not None:
                        check(ours.ids()[:len(ids)] == ids, f"{kind}, token numbers of {name}")
                for name, value in seconds.items():
                    best[name] = min(value, best.get(name, value))
            sizes = {"megalith": size_of(texts), "tiktoken": size_of(texts), "tokenizers": size_of(short)}
            rates = {name: sizes[name] / value / 1e6 for name, value in best.items()}
            for name, floor in FLOORS.items():
                row(f"encode {kind}, {cores} core{'s' if cores > 1 else ''}, MB/s, {name}", rates["megalith"],
                    rates[name], rates["megalith"] / rates[name], floor)


worker = {}


def start_worker(name, folder):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    peers = Peers(pathlib.Path(folder))
    worker["eod"] = peers.eod
    if name == "tiktoken":
        worker["encode"] = peers.tiktoken.encode_ordinary
    else:
        worker["encode"] = lambda text: peers.tokenizers.encode(text, add_special_tokens=False).ids


def worker_encode(line):
    ids = worker["encode"](json.loads(line)["text"])
    if ids:
        ids.append(worker["eod"])
    return ids


def preprocess(name, folder, source, target):
    """What Megatron-LM's preprocess_data.py does, without its index."""
    before = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(CORES, start_worker, (name, folder)) as pool:
        with open(source, encoding="utf-8") as lines, open(target, "wb") as out:
            for ids in pool.imap(worker_encode, lines, 32):
                array.array("H", ids).tofile(out)
    return time.perf_counter() - before


def bench_prepare(folder, inputs, work):
    texts = [text for some in inputs.values() for text in some]
    sources = {"tiktoken": texts, "tokenizers": [text for some in inputs.values() for text in up_to(some, SLOW_BYTES)]}
    runs = {name: Prepared(folder, write_lines(work / f"{name}.jsonl", some), work / name) for name, some in sources.items()}
    best = {}
    for _ in range(ROUNDS):
        for name in sources:
            values = {"ours": runs[name].run(CORES)["wall"],
                      "peer": preprocess(name, str(folder), work / f"{name}.jsonl", work / f"{name}.bin")}
            for who, value in values.items():
                best[name, who] = min(value, best.get((name, who), value))
    for name, some in sources.items():
        check(runs[name].ids() == read_ids(work / f"{name}.bin"), f"prepare, the file of {name}")
        size = size_of(some) / 1e6
        row(f"prepare English and code, {CORES} cores, MB/s, loop with {name}", size / best[name, "ours"],
            size / best[name, "peer"], best[name, "peer"] / best[name, "ours"], FLOORS[name])


def bench_memory(folder, corpus, work):
    with open(work / "100MB.jsonl", "wb") as target:
        lines = itertools.cycle(open(corpus, "rb").readlines())
        while target.tell() < 100_000_000:
            target.write(next(lines))
    small = Prepared(folder, work / "100MB.jsonl", work / "memory").run(CORES, watch=True)
    block = (work / "100MB.jsonl").read_bytes()
    with open(work / "1GB.jsonl", "wb") as target:
        for _ in range(10):
            target.write(block)
    large = Prepared(folder, work / "1GB.jsonl", work / "memory").run(CORES, watch=True)
    (work / "1GB.jsonl").unlink()
    row("prepare, peak memory over 1 GB and over 100 MB, MiB", large["peak"] / 1024, small["peak"] / 1024,
        small["peak"] / large["peak"], 0.8)
    busy = large["processor"] / large["wall"]
    row("prepare, busy cores over 1 GB, of those there", busy, CORES, busy / CORES, 0.925)


def bench_train(corpus, work):
    def ours():
        return run_timed("tokenizer", "train", "--input", corpus, "--vocab-size", PIECES, "--output", work / "trained")[0]

    def documents():
        with open(corpus, encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]

    before = time.perf_counter()
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    best = ours()
    middle = time.perf_counter()
    theirs.train_from_iterator(documents(), trainers.BpeTrainer(
        vocab_size=PIECES, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    peer = time.perf_counter() - middle
    for _ in range(ROUNDS - 1):
        best = min(best, ours())
    merges = [m if isinstance(m, str) else " ".join(m) for m in json.loads(theirs.to_str())["model"]["merges"]]
    check((work / "trained" / "merges.txt").read_text(encoding="utf-8").split("\n")[1:-1] == merges,
          f"train, {len(merges)} merges of tokenizers")
    row(f"train {PIECES} pieces on {corpus.stat().st_size / 1e6:.0f} MB, {CORES} cores, s, tokenizers", best, peer,
        peer / best, 2)


def main():
    parts = sys.argv[1:] or ["encode", "prepare", "memory", "train"]
    if unknown := set(parts) - {"encode", "prepare", "memory", "train"}:
        sys.exit(f"tokenizer_bench: no part is called {', '.join(unknown)}")
    if not os.access(BINARY, os.X_OK):
        sys.exit(f"tokenizer_bench: no program at {BINARY}; build it, or set MEGALITH_BINARY")
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        corpus = english_corpus(work)
        with open(corpus, encoding="utf-8") as lines:
            books = (json.loads(line)["text"] for line in lines)
            inputs = {"English": up_to((text for book in books for text in cut(book)), TEXT_BYTES)}
        inputs["code"] = list(code_texts())
        folder = DATA / "tokenizers" / "gpt2"
        if not (folder / "tokenizer.json").exists():
            folder = work / "vocabulary"
            run_timed("tokenizer", "train", "--input", corpus, write_lines(work / "all-code.jsonl", inputs["code"]),
                      "--vocab-size", PIECES, "--output", folder)
        if "encode" in parts:
            bench_encode(folder, inputs, work)
        if "prepare" in parts:
            bench_prepare(folder, inputs, work)
        if "memory" in parts:
            bench_memory(folder, corpus, work)
        if "train" in parts:
            bench_train(corpus, work)
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
