"""Learning rates, weight decays and batch sizes from Megatron-Core's own classes (the package megatron-core), without PyTorch.

Makes tests/optim/schedule_tables.h (tier a):

    /usr/bin/python3 -m venv VENV
    VENV/bin/pip install --no-deps --require-hashes -r tests/parity/requirements-datasets.txt
    VENV/bin/python tests/parity/megatron_schedules.py > tests/optim/schedule_tables.h
    clang-format-19 -i tests/optim/schedule_tables.h
"""

import types

import megatron_datasets

RATES = dict(init_lr=1e-6, max_lr=6e-4, min_lr=6e-5, lr_warmup_steps=300, lr_decay_steps=2000, wsd_decay_steps=400)
DECAYS = dict(start_wd=0.01, end_wd=0.1, wd_incr_steps=2000)
STYLES = [(style, "exponential") for style in ("constant", "linear", "cosine", "inverse-square-root")]
STYLES += [("WSD", style) for style in ("exponential", "linear", "cosine", "minus_sqrt")]
# rampup_batch_size, global_batch_size, micro_batch_size, data-parallel ranks, samples of the run.
RAMPS = [((16, 8, 500), 64, 4, 1, 1200), ((2, 2, 7), 8, 1, 2, 60), ((32, 32, 1000), 96, 4, 8, 3000),
         ((3, 1, 100), 10, 1, 1, 200)]


def scheduler(**settings):
    """An OptimizerParamScheduler around an optimizer of one parameter group."""
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    everything = dict(init_lr=0.0, min_lr=0.0, start_wd=0.01, end_wd=0.01, wd_incr_steps=1, wd_incr_style="constant",
                      use_checkpoint_opt_param_scheduler=False)
    everything.update(settings)
    return OptimizerParamScheduler(types.SimpleNamespace(param_groups=[{}]), **everything)


def group_after(steps, **settings):
    """The parameter group (lr, weight_decay) after so many samples."""
    made = scheduler(**settings)
    made.step(steps)
    return made.optimizer.param_groups[0]


class BatchSizes:
    """num_microbatches_calculator, made anew; `rampup` is None or (start, increment, samples)."""

    def __init__(self, rampup, global_batch_size, micro_batch_size, data_parallel):
        from megatron.core import num_microbatches_calculator as module

        self.module = module
        module.unset_num_microbatches_calculator()
        module.init_num_microbatches_calculator(1, rampup, global_batch_size, micro_batch_size, data_parallel)

    def at(self, consumed):
        """(global batch size, microbatches) of the step that starts after so many samples."""
        self.module.update_num_microbatches(consumed, consistency_check=True)
        return self.module.get_current_global_batch_size(), self.module.get_num_microbatches()


def tables(version):
    lines = [f"// Made by tests/parity/megatron_schedules.py from megatron-core {version}; its first lines say how.",
             "#pragma once", "", "#include <cstdint>", "#include <vector>", "", "namespace megalith::testing {", "",
             "struct RateRow {", "  const char* style;", "  const char* wsd_style;", "  std::int64_t steps;",
             "  double rate;", "};", "",
             "// lr 6e-4, min_lr 6e-5, lr_warmup_init 1e-6, warm-up 300, decay 2000, WSD's decay 400.",
             "inline const std::vector<RateRow> rate_rows = {"]
    for style, wsd in STYLES:
        for steps in (0, 1, 150, 300, 301, 1000, 1600, 1601, 1900, 2000, 2001, 5000):
            rate = group_after(steps, **RATES, lr_decay_style=style, lr_wsd_decay_style=wsd)["lr"]
            lines.append(f'    {{"{style}", "{wsd}", {steps}, {rate!r}}},')
    lines += ["};", "", "struct DecayRow {", "  const char* style;", "  std::int64_t steps;", "  double decay;", "};", "",
              "// start_weight_decay 0.01, end_weight_decay 0.1 over 2000 steps.",
              "inline const std::vector<DecayRow> decay_rows = {"]
    for style in ("linear", "cosine"):
        for steps in (0, 1, 700, 1999, 2000, 2001):
            group = group_after(steps, **RATES, **DECAYS, lr_decay_style="constant", wd_incr_style=style)
            lines.append(f'    {{"{style}", {steps}, {group["weight_decay"]!r}}},')
    lines += ["};", "", "struct BatchRow {", "  std::int64_t consumed;", "  std::int64_t size;",
              "  std::int64_t microbatches;", "};", "", "struct Ramp {", "  std::vector<std::int64_t> rampup_batch_size;",
              "  std::int64_t global_batch_size;", "  std::int64_t micro_batch_size;", "  std::int64_t data_parallel;",
              "  std::int64_t samples;", "  std::vector<BatchRow> rows;", "};", "",
              "// Every step of some ramps, up to a number of samples.", "inline const std::vector<Ramp> ramps = {"]
    for rampup, size, micro, ranks, samples in RAMPS:
        sizes = BatchSizes(list(rampup), size, micro, ranks)
        consumed, rows = 0, []
        while consumed < samples:
            now, microbatches = sizes.at(consumed)
            rows.append(f"{{{consumed}, {now}, {microbatches}}}")
            consumed += now
        lines.append(f"    {{{{{', '.join(map(str, rampup))}}}, {size}, {micro}, {ranks}, {samples},")
        text = "     {"
        for row in rows:
            if len(text) + len(row) > 105:
                lines.append(text.rstrip())
                text = "      "
            text += row + ", "
        lines.append(text.rstrip(", ") + "}},")
    lines += ["};", "", "}  // namespace megalith::testing"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(tables(megatron_datasets.load()), end="")
