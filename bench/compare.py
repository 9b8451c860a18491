"""The parts of scripts/bench.sh: runs megalith and its peers in turns and prints a row for each figure.

A row is: what, ours, peer or limit, ratio (higher is better), floor of bench/floors.tsv. Each round runs every side once,
one after another, so that all meet the same machine; figures are medians over rounds. Needs only Python's own library;
PyTorch runs in the interpreter of --torch (bench/gpt2_torch.py).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("MEGALITH_BINARY", str(ROOT / "build" / "megalith"))

GPT2_124M = {"num-layers": 12, "hidden-size": 768, "num-attention-heads": 12, "vocab-size": 50257}
GPT2_350M = {"num-layers": 24, "hidden-size": 1024, "num-attention-heads": 16, "vocab-size": 50257}
SMALL = {"num-layers": 6, "hidden-size": 384, "num-attention-heads": 6, "vocab-size": 8192}

# Ways to start PyTorch; the fastest counts. Its tensors are allocated and freed in each step: with the first, freed memory
# is kept and huge pages are used.
TORCH_WAYS = {
    "eager, huge pages": ({"THP_MEM_ALLOC_ENABLE": "1",
                           "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=17179869184:"
                                             "glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"}, []),
    "compiled, huge pages": ({"THP_MEM_ALLOC_ENABLE": "1",
                              "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=17179869184:"
                                                "glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"},
                             ["--compile"]),
    "eager": ({}, []),
}


def shape(model, sequences, length, **more):
    return {**model, "micro-batch-size": sequences, "seq-length": length, **more}


def flags(settings):
    words = []
    for key, value in settings.items():
        if value is True:
            words.append(f"--{key}")
        else:
            words += [f"--{key}", str(value)]
    return words


def training_flops(settings):
    """Model FLOPs of a step: 6 a parameter and token, causal attention counted half, the true vocabulary."""
    h, s = settings["hidden-size"], settings["seq-length"]
    layer = 4 * h * h + 8 * h * h + h * s
    return 6 * settings["micro-batch-size"] * s * (settings["num-layers"] * layer + h * settings["vocab-size"])


def run(command, environment=None):
    """Runs a command to its end; returns its output and the most memory it held, in MiB."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env={**os.environ, **(environment or {})})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"bench: {' '.join(command)}\nended with status {process.returncode}:\n{text[-2000:]}")
    return text, usage.ru_maxrss / 1024


class Run:
    """One training run: milliseconds of its steps without the first, memory in MiB, seconds before the first step."""

    def __init__(self, steps, memory, start=0.0):
        self.step = statistics.median(steps)
        self.memory = memory
        self.start = start


def megalith_train(settings, steps=4):
    with tempfile.TemporaryDirectory(prefix="megalith-bench-") as folder:
        begin = time.monotonic()
        _, memory = run([PROGRAM, "train", *flags({"max-position-embeddings": max(1024, settings["seq-length"])}),
                         *flags(settings), "--hidden-dropout", "0", "--attention-dropout", "0", "--mock-data", "--lr",
                         "1e-4", "--train-iters", str(steps), "--log-interval", "1", "--eval-iters", "0",
                         "--no-tensorboard", "--no-save-optim", "--no-progress", "--save", f"{folder}/run"])
        whole = time.monotonic() - begin
        lines = pathlib.Path(folder, "run", "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        times = [json.loads(line)["elapsed_ms"] for line in lines]
    return Run(times[1:] or times, memory, whole - sum(times) / 1e3)


def megalith_bench(settings, pass_name="training", rounds=1):
    text, _ = run([PROGRAM, "bench", "kernels", "--pass", pass_name, "--json", "--filter", "^$", "--rounds",
                   str(rounds), *flags(settings)])
    return json.loads(text[text.index("{"):])


def torch_train(python, settings, way, steps=5):
    environment, words = TORCH_WAYS[way]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "megalith", "inductor")
    threads = str(settings.get("num-threads", os.cpu_count()))
    text, memory = run([python, str(ROOT / "bench" / "gpt2_torch.py"), *words, *flags(settings), "--steps", str(steps)],
                       {"TORCHINDUCTOR_CACHE_DIR": str(cache), "OMP_NUM_THREADS": threads, **environment})
    times = [float(line.split()[1]) for line in text.splitlines() if line.startswith("step_ms ")]
    # Memory is first touched, and huge pages made, in the first three steps.
    return Run(times[3:] or times[-1:], memory)


class Bench:
    def __init__(self, options):
        self.rounds = options.rounds
        self.torch = options.torch
        self.peers = options.peers
        self.failed = []
        self.floors = {}
        for line in (ROOT / "bench" / "floors.tsv").read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, floor = line.split("\t")[:2]
                self.floors[name] = float(floor)

    def row(self, name, ours, other, ratio=None, floor=None):
        floor = self.floors.get(name, floor)
        ratio_text = "" if ratio is None else f"{ratio:.3f}"
        floor_text = "" if floor is None else f"{floor:.3g}"
        bad = ratio is not None and floor is not None and ratio < floor
        if bad:
            self.failed.append(name)
        print(f"{name:<34} {ours:>18} {other:>34} {ratio_text:>7} {floor_text:>6}{'  BELOW' if bad else ''}", flush=True)

    def in_turns(self, **sides):
        """Runs each side once a round; returns the results of each, by its name."""
        results = {name: [] for name in sides}
        for _ in range(self.rounds):
            for name, side in sides.items():
                results[name].append(side())
        return results

    def step(self, name, settings, steps=4, with_torch=True):
        """A training step beside the multiply-add peak of the same moments, and beside PyTorch."""
        sides = {"ours": lambda: megalith_train(settings, steps), "peak": peak}
        if self.torch and with_torch:
            ways = TORCH_WAYS
            if self.rounds > 1:  # one run each finds the fastest, which alone is then repeated
                trial = {way: torch_train(self.torch, settings, way).step for way in TORCH_WAYS}
                ways = [min(trial, key=trial.get)]
            for way in ways:
                sides[way] = lambda way=way: torch_train(self.torch, settings, way)
        results = self.in_turns(**sides)
        ours = statistics.median(run.step for run in results["ours"])
        memory = statistics.median(run.memory for run in results["ours"])
        peak_rate = statistics.median(results["peak"])
        rate = training_flops(settings) / ours * 1e3
        self.row(f"{name} share of peak", f"{ours:.0f} ms", f"peak {peak_rate * 1e-9:.0f} GFLOP/s", rate / peak_rate)
        torch = {way: results[way] for way in results if way in TORCH_WAYS}
        if torch:
            times = {way: statistics.median(run.step for run in runs) for way, runs in torch.items()}
            best = min(times, key=times.get)
            self.row(f"{name} PyTorch", f"{ours:.0f} ms", f"{best} {times[best]:.0f} ms", times[best] / ours)
            least = min(run.memory for runs in torch.values() for run in runs)
            self.row(f"{name} memory PyTorch", f"{memory:.0f} MiB", f"{least:.0f} MiB", least / memory)

    def passed(self, name, settings, pass_name):
        """A pass of `megalith bench kernels` beside its own limit."""
        measured = [megalith_bench(settings, pass_name) for _ in range(self.rounds)]
        seconds = statistics.median(m["pass_seconds"] for m in measured)
        limit = statistics.median(m["pass_limit_seconds"] for m in measured)
        share = statistics.median(m["pass_percent"] for m in measured) / 100
        self.row(name, f"{seconds * 1e3:.1f} ms", f"limit {limit * 1e3:.1f} ms", share)

    def ratio(self, name, base_name, base, other_name, other, steps=4):
        """How much of a base run's speed another one keeps."""
        results = self.in_turns(base=lambda: megalith_train(base, steps), other=lambda: megalith_train(other, steps))
        first, second = (statistics.median(run.step for run in results[side]) for side in ("base", "other"))
        self.row(name, f"{other_name} {second:.0f} ms", f"{base_name} {first:.0f} ms", first / second)
        return results

    def lines_of(self, command):
        """Rows of a script that prints NAME, ours, peer's, ratio and floor, separated by tabs."""
        text, _ = run(command)
        for line in text.splitlines():
            fields = line.split("\t")
            if len(fields) == 5:
                self.row(fields[0], fields[1], fields[2], float(fields[3]), float(fields[4]) if fields[4] else None)


def peak():
    tiny = {"num-layers": 1, "hidden-size": 16, "num-attention-heads": 1, "vocab-size": 16, "micro-batch-size": 1,
            "seq-length": 8}
    return megalith_bench(tiny)["multiply_add_flops"]


def part_yardsticks(bench):
    """multiply-add peak and memory bandwidth of this machine"""
    tiny = {"num-layers": 1, "hidden-size": 16, "num-attention-heads": 1, "vocab-size": 16}
    measured = [megalith_bench(tiny) for _ in range(bench.rounds)]
    rate = statistics.median(m["multiply_add_flops"] for m in measured)
    bench.row("float32 multiply-adds", f"{rate * 1e-9:.0f} GFLOP/s", f"{measured[0]['threads']} threads")
    for way, text in (("copy", "copying"), ("update", "changing in place"), ("read", "reading")):
        rate = statistics.median(m["bandwidths"][-1][way] for m in measured)
        bench.row(f"memory, {text}", f"{rate * 1e-9:.1f} GB/s", "512 MiB")


def part_step(bench):
    """a training step of GPT-2 124M, float32, 4 x 256 tokens"""
    bench.step("124M 4x256", shape(GPT2_124M, 4, 256))


def part_step1024(bench):
    """the same with 4 x 1,024 tokens"""
    bench.step("124M 4x1024", shape(GPT2_124M, 4, 1024), steps=3)


def part_small(bench):
    """6 layers, hidden 384, 6 heads, vocabulary 8,192, 16 x 256 tokens"""
    bench.step("small 16x256", shape(SMALL, 16, 256), steps=8)


def part_medium(bench):
    """GPT-2 350M, 4 x 512 tokens; alone"""
    bench.step("350M 4x512", shape(GPT2_350M, 4, 512), steps=3, with_torch=False)


def part_bfloat16(bench):
    """bfloat16 against float32, and against PyTorch's"""
    base = shape(GPT2_124M, 4, 256)
    results = bench.ratio("124M bfloat16", "float32", base, "bfloat16", {**base, "bf16": True})
    if bench.torch:
        ours = statistics.median(run.step for run in results["other"])
        theirs = statistics.median(torch_train(bench.torch, {**base, "bf16": True}, "eager, huge pages").step
                                   for _ in range(bench.rounds))
        bench.row("124M bfloat16 PyTorch", f"{ours:.0f} ms", f"{theirs:.0f} ms", theirs / ours)


def part_recompute(bench):
    """full and selective recomputation against none"""
    base = shape(GPT2_124M, 4, 256)
    for kind, words in (("full", {"recompute-granularity": "full", "recompute-method": "uniform",
                                  "recompute-num-layers": 1}),
                        ("selective", {"recompute-granularity": "selective"})):
        bench.ratio(f"124M recompute {kind}", "none", base, kind, {**base, **words})


def part_threads(bench):
    """one thread against two"""
    if os.cpu_count() < 2:
        return
    base = shape(GPT2_124M, 4, 256)
    results = bench.in_turns(one=lambda: megalith_train({**base, "num-threads": 1}, 3),
                             two=lambda: megalith_train({**base, "num-threads": 2}, 3))
    one, two = (statistics.median(run.step for run in results[side]) for side in ("one", "two"))
    bench.row("124M 2 threads over 1", f"{two:.0f} ms", f"1 thread {one:.0f} ms", one / two)


def part_evaluation(bench):
    """the forward pass and loss, share of peak"""
    bench.passed("124M 4x256 evaluation", shape(GPT2_124M, 4, 256), "evaluation")


def part_generation(bench):
    """16 tokens one by one at position 1,024, share of the rate of reading"""
    bench.passed("124M generation, 16 tokens", shape(GPT2_124M, 1, 1024), "generation")


def part_prompt(bench):
    """a prompt of 1,024 tokens, share of peak"""
    bench.passed("124M prompt, 1,024 tokens", shape(GPT2_124M, 1, 1024), "prompt")


def part_start(bench):
    """from the command to the first step, all but that step and the checkpoint; the bar is one second"""
    seconds = []
    for _ in range(bench.rounds):
        with tempfile.TemporaryDirectory(prefix="megalith-bench-") as folder:
            process = subprocess.Popen(
                [PROGRAM, "train", *flags(shape(GPT2_124M, 4, 256)), "--mock-data", "--lr", "1e-4", "--train-iters",
                 "1", "--log-interval", "1", "--no-tensorboard", "--no-progress", "--save", f"{folder}/run"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            begin = time.monotonic()
            metrics = pathlib.Path(folder, "run", "metrics.jsonl")
            while process.poll() is None and not (metrics.exists() and metrics.read_text(encoding="utf-8").strip()):
                time.sleep(0.005)
            whole = time.monotonic() - begin
            process.kill()
            process.wait()
            step = json.loads(metrics.read_text(encoding="utf-8").splitlines()[0])["elapsed_ms"] / 1e3
        seconds.append(whole - step)
    bench.row("124M start to first step", f"{statistics.median(seconds):.2f} s", "bar 1 s",
              1.0 / statistics.median(seconds))


def part_tokenizer(bench):
    """tokenizing, data prepare and tokenizer train, beside tiktoken and Hugging Face tokenizers"""
    script = ROOT / "bench" / "tokenizer_bench.sh"
    if bench.peers and script.exists():
        bench.lines_of([str(script)])


def part_disk(bench):
    """checkpoints against the disk of this folder"""
    text, _ = run([PROGRAM, "bench", "disk", str(ROOT)])
    best = {}
    for line in text.splitlines():
        words = line.split()
        if line.startswith(("write", "read")):
            kind = words[0]
        elif "MB/s" in line:
            rate = float(words[words.index("MB/s") - 1])
            if words[0] == "checkpoint":
                bench.row(f"checkpoint {kind}", f"{rate:.0f} MB/s", f"disk {best[kind]:.0f} MB/s", rate / best[kind])
            else:
                best[kind] = max(rate, best.get(kind, 0.0))


PARTS = {name[5:]: function for name, function in globals().items() if name.startswith("part_")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch", help="an interpreter with PyTorch")
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    if options.list:
        for name, part in PARTS.items():
            print(f"{name:<12} {part.__doc__}")
        return 0
    unknown = [name for name in options.names if name not in PARTS]
    if unknown or options.rounds < 1:
        print(f"bench.sh: there is no part {', '.join(unknown)}; --list shows all" if unknown
              else "bench.sh: --rounds must be at least 1", file=sys.stderr)
        return 2
    bench = Bench(options)
    print(f"{'what':<34} {'ours':>18} {'peer or limit':>34} {'ratio':>7} {'floor':>6}")
    for name in options.names or PARTS:
        PARTS[name](bench)
    if bench.failed:
        print(f"\nbelow the floor: {', '.join(bench.failed)}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
