"""Compares the learning rates and batch sizes of whole runs with Megatron-Core's scheduler and microbatch calculator, live, and
the stored tables of tests/optim/schedule_tables.h with what the package gives today.

Environment: requirements-datasets.txt

MEGALITH_BINARY is the program. A run's metrics.jsonl says the rate and the batch size of every iteration. How flags become the
scheduler's settings is Megatron-LM's training loop, which the package does not hold; that part is restated in expected().
"""

import json
import os
import subprocess
import sys
import tempfile

import megatron_datasets
import megatron_schedules

MODEL = ["--num-layers", "1", "--hidden-size", "4", "--num-attention-heads", "1", "--seq-length", "2", "--vocab-size", "9",
         "--mock-data", "--device", "reference", "--num-threads", "1", "--log-interval", "1", "--no-tensorboard",
         "--micro-batch-size", "1", "--hidden-dropout", "0", "--attention-dropout", "0"]
STYLES = megatron_schedules.STYLES
CASES = [dict(global_batch_size=4, train_iters=40, lr=6e-4, min_lr=6e-5, lr_warmup_iters=7, lr_warmup_init=1e-6,
              lr_decay_iters=33, lr_decay_style=style, lr_wsd_decay_style=wsd,
              **(dict(lr_wsd_decay_iters=11) if style == "WSD" else {})) for style, wsd in STYLES]
CASES += [dict(global_batch_size=3, train_iters=30, lr=1e-3, lr_warmup_fraction=0.137, lr_decay_style="cosine"),
          dict(global_batch_size=1, train_iters=12, lr=0.1, lr_decay_style="linear"),
          dict(global_batch_size=8, train_samples=300, lr=3e-4, lr_warmup_samples=41, lr_decay_samples=211, min_lr=1e-5,
               lr_decay_style="cosine", rampup_batch_size=(2, 2, 90)),
          dict(global_batch_size=6, train_samples=200, lr=3e-4, lr_warmup_fraction=0.1, lr_decay_style="WSD",
               lr_wsd_decay_style="minus_sqrt", lr_wsd_decay_samples=77, rampup_batch_size=(1, 1, 60))]


def expected(case):
    """[(consumed samples, learning rate, batch size)] of every iteration, by Megatron-Core."""
    size = case["global_batch_size"]
    if "train_iters" in case:
        steps = case.get("lr_decay_iters", case["train_iters"]) * size
        warmup, wsd, total = case.get("lr_warmup_iters", 0) * size, case.get("lr_wsd_decay_iters", 0) * size, None
    else:
        total = case["train_samples"]
        steps = case.get("lr_decay_samples", total)
        warmup, wsd = case.get("lr_warmup_samples", 0), case.get("lr_wsd_decay_samples", 0)
    if "lr_warmup_fraction" in case:
        warmup = case["lr_warmup_fraction"] * steps
    scheduler = megatron_schedules.scheduler(
        init_lr=case.get("lr_warmup_init", 0.0), max_lr=case["lr"], min_lr=case.get("min_lr", 0.0), lr_warmup_steps=warmup,
        lr_decay_steps=steps, lr_decay_style=case["lr_decay_style"], wsd_decay_steps=wsd,
        lr_wsd_decay_style=case.get("lr_wsd_decay_style"))
    ramp = case.get("rampup_batch_size")
    sizes = megatron_schedules.BatchSizes(list(ramp) if ramp else None, size, 1, 1)
    rows, consumed = [], 0
    while (len(rows) < case["train_iters"]) if total is None else (consumed < total):
        now, microbatches = sizes.at(consumed)
        assert microbatches == now
        if total is not None and consumed + now > total:
            break
        scheduler.step(now)
        consumed += now
        rows.append((consumed, scheduler.optimizer.param_groups[0]["lr"], now))
    return rows


def ours(program, case, folder):
    command = [program, "train", *MODEL, "--save", folder]
    for key, value in case.items():
        command += ["--" + key.replace("_", "-"), *map(str, value if isinstance(value, tuple) else (value,))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1:]
    with open(os.path.join(folder, "metrics.jsonl")) as stream:
        rows = [json.loads(line) for line in stream]
    return [(row["consumed_samples"], row["learning_rate"], row["global_batch_size"]) for row in rows]


def difference(theirs, mine):
    """Says where two lists differ; rates may differ in the last bits, since pow() and cos() are other libraries'."""
    for number, (left, right) in enumerate(zip(theirs, mine)):
        if len(right) != 3 or left[0] != right[0] or left[2] != right[2] or abs(left[1] - right[1]) > 1e-14 * left[1] + 1e-19:
            return f"iteration {number + 1}: Megatron-Core {left}, here {right}"
    return "" if len(theirs) == len(mine) else f"{len(theirs)} iterations there, {len(mine)} here"


def unformatted(text):
    """Without the first line (a comment) and without what clang-format changes."""
    return "".join(text.split("\n", 1)[1].split())


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MEGALITH_BINARY")
    if not program or not os.path.exists(program):
        print("skipped: MEGALITH_BINARY names no program")
        return 77
    version = megatron_datasets.load()
    failures, compared = 0, 0
    stored = os.path.join(os.path.dirname(__file__), "..", "optim", "schedule_tables.h")
    with open(stored) as stream:
        if unformatted(stream.read()) != unformatted(megatron_schedules.tables(version)):
            failures += 1
            print(f"FAIL {os.path.normpath(stored)} is not what megatron_schedules.py makes")
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            theirs = expected(case)
            message = difference(theirs, ours(program, case, os.path.join(folder, str(number))))
            compared += len(theirs)
            failures += 1 if message else 0
            print(f"{'FAIL' if message else 'PASS'} {case}{': ' + message if message else ''}")
    print(f"{len(CASES)} schedules, {compared} iterations, {failures} failures, megatron-core {version}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
