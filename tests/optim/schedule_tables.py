#!/usr/bin/python3
"""Writes schedule_tables.h: learning rates, weight decays and batch sizes from Megatron-LM's formulas, restated here.

  /usr/bin/python3 tests/optim/schedule_tables.py > tests/optim/schedule_tables.h
"""
import math

MAX, MIN, INIT = 6e-4, 6e-5, 1e-6
WARMUP, DECAY, WSD = 300, 2000, 400


def rate(style, wsd_style, steps, warmup=WARMUP):
    if warmup > 0 and steps <= warmup:
        return INIT + (MAX - INIT) * steps / warmup
    if style == "constant":
        return MAX
    if steps > DECAY:
        return MIN
    if style == "inverse-square-root":
        return max(MIN, MAX * max(warmup, 1) ** 0.5 / max(steps, 1) ** 0.5)
    ratio = (steps - warmup) / (DECAY - warmup)
    if style == "linear":
        factor = 1.0 - ratio
    elif style == "cosine":
        factor = 0.5 * (math.cos(math.pi * ratio) + 1.0)
    else:
        start = DECAY - WSD
        part = (steps - start) / WSD
        factor = 1.0 if steps <= start else {
            "linear": 1.0 - part, "cosine": 0.5 * (math.cos(math.pi * part) + 1.0),
            "exponential": 2.0 * 0.5 ** part - 1.0, "minus_sqrt": 1.0 - math.sqrt(max(part, 0.0))}[wsd_style]
    return MIN + factor * (MAX - MIN)


def decay(style, steps, total=2000, start=0.01, end=0.1):
    if steps > total:
        return end
    ratio = steps / total
    return start + (end - start) * (ratio if style == "linear" else 0.5 * (math.cos(math.pi * (1 - ratio)) + 1.0))


def batches(start, increment, samples, final, train_samples):
    """Consumed samples and batch size of every step."""
    each = samples / ((final - start) // increment)
    consumed, steps = 0, []
    while consumed < train_samples:
        size = final if consumed > samples else start + int(consumed / each) * increment
        steps.append((consumed, size))
        consumed += size
    return steps


def main():
    print("// Made by: /usr/bin/python3 tests/optim/schedule_tables.py > tests/optim/schedule_tables.h")
    print("#pragma once\n\n#include <cstdint>\n#include <vector>\n")
    print("namespace megalith::testing {\n")
    print("struct RateRow {\n  const char* style;\n  const char* wsd_style;\n  std::int64_t steps;\n"
          "  double rate;\n};\n")
    print("// lr 6e-4, min_lr 6e-5, lr_warmup_init 1e-6, warm-up 300, decay 2000, WSD's decay 400.")
    print("inline const std::vector<RateRow> rate_rows = {")
    styles = [(s, "exponential") for s in ("constant", "linear", "cosine", "inverse-square-root")]
    styles += [("WSD", s) for s in ("exponential", "linear", "cosine", "minus_sqrt")]
    for style, wsd in styles:
        for steps in (0, 1, 150, 300, 301, 1000, 1600, 1601, 1900, 2000, 2001, 5000):
            print(f'    {{"{style}", "{wsd}", {steps}, {rate(style, wsd, steps)!r}}},')
    print("};\n")
    print("struct DecayRow {\n  const char* style;\n  std::int64_t steps;\n  double decay;\n};\n")
    print("// start_weight_decay 0.01, end_weight_decay 0.1 over 2000 steps.")
    print("inline const std::vector<DecayRow> decay_rows = {")
    for style in ("linear", "cosine"):
        for steps in (0, 1, 700, 1999, 2000, 2001):
            print(f'    {{"{style}", {steps}, {decay(style, steps)!r}}},')
    print("};\n")
    print("struct BatchRow {\n  std::int64_t consumed;\n  std::int64_t size;\n};\n")
    print("// rampup_batch_size 16 8 500, global_batch_size 64, 1200 samples.")
    print("inline const std::vector<BatchRow> batch_rows = {")
    for consumed, size in batches(16, 8, 500, 64, 1200):
        print(f"    {{{consumed}, {size}}},")
    print("};\n\n}  // namespace megalith::testing")


if __name__ == "__main__":
    main()
