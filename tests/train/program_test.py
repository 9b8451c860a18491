#!/usr/bin/python3
"""What must not change a run, through `megalith train`: recomputation, the device, its strict mode, the micro-batch size.

    program_test.py MEGALITH [UNITTEST ARGUMENT...]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

MODEL = {"num_layers": 4, "hidden_size": 24, "num_attention_heads": 3, "seq_length": 13, "vocab_size": 67,
         "micro_batch_size": 2, "global_batch_size": 4, "train_iters": 20, "lr": 3e-3, "lr_warmup_iters": 3,
         "lr_decay_style": "cosine", "mock_data": True, "log_interval": 1, "eval_interval": 10, "eval_iters": 2,
         "num_threads": 1, "no_progress": True, "no_tensorboard": True}
program = ""


class Invariance(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def train(self, name, **changes):
        """The rows of metrics.jsonl, without what the clock says."""
        save = os.path.join(self.folder.name, name)
        command = [program, "train", "--save", save]
        for key, value in {**MODEL, **changes}.items():
            command += ["--" + key.replace("_", "-")] + ([] if value is True else str(value).split())
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(save, "metrics.jsonl")) as stream:
            rows = [json.loads(line) for line in stream]
        for row in rows:
            for key in ("elapsed_ms", "tokens_per_second", "tflops_per_device"):
                del row[key]
        return rows

    def weights(self, name, iteration=20):
        path = os.path.join(self.folder.name, name, f"iter_{iteration:07d}", "model-00001-of-00001.safetensors")
        with open(path, "rb") as stream:
            return stream.read()

    def assert_close(self, left, right, bound):
        self.assertEqual(len(left), len(right))
        for mine, other in zip(left, right):
            for key, value in mine.items():
                if isinstance(value, float):
                    self.assertLessEqual(abs(value - other[key]), bound * abs(value), f"{key} {mine} {other}")
                else:
                    self.assertEqual(value, other[key], key)

    def test_recomputation_changes_no_bit(self):
        for number, case in enumerate((dict(), dict(bf16=True), dict(device="reference"))):
            kept = self.train(f"kept{number}", **case)
            for way, flags in enumerate((dict(recompute_granularity="selective"), dict(recompute_granularity="full"),
                                         dict(recompute_granularity="full", recompute_num_layers=3),
                                         dict(recompute_granularity="full", recompute_method="block", recompute_num_layers=2))):
                name = f"recomputed{number}-{way}"
                self.assertEqual(self.train(name, **case, **flags), kept, f"{case} {flags}")
                self.assertEqual(self.weights(name), self.weights(f"kept{number}"), f"{case} {flags}")

    def test_devices_agree(self):
        cpu = self.train("cpu")
        reference = self.train("reference", device="reference")
        self.assert_close(cpu, reference, 1e-5)
        self.assert_close(self.train("exact", device="reference", fp64=True), reference, 1e-5)
        self.assertNotEqual(cpu[-1]["lm_loss"], cpu[0]["lm_loss"])

    def test_strict_mode_changes_no_bit(self):
        for precision in (dict(), dict(fp64=True)):
            name = "plain" + "".join(precision)
            self.assertEqual(self.train(name + "-strict", device="reference", strict=True, **precision),
                             self.train(name, device="reference", **precision))
            self.assertEqual(self.weights(name + "-strict"), self.weights(name))

    def test_the_micro_batch_size_changes_rounding_only(self):
        for case, bound in ((dict(), 1e-5), (dict(device="reference", fp64=True), 1e-12)):
            name = "run" + "".join(case)
            whole = self.train(name, save_interval=8, **case)
            for size in (1, 4):
                self.assert_close(self.train(f"{name}-{size}", micro_batch_size=size, **case), whole, bound)
            # Resumed with another one: up to the checkpoint the same lines, then the same to rounding.
            for size in (1, 4):
                resumed = self.train(name, load=os.path.join(self.folder.name, name), ckpt_step=8, micro_batch_size=size, **case)
                self.assertEqual(resumed[:8], whole[:8])
                self.assert_close(resumed, whole, bound)

    def test_means_of_microbatch_means_are_another_loss_only_where_masks_differ(self):
        # Every token counts in this data, so Megatron-LM's mean of means is the same number.
        self.assert_close(self.train("means", no_calculate_per_token_loss=True), self.train("tokens"), 1e-5)

    def test_what_matters_does_change_a_run(self):
        whole = self.train("whole")
        for number, change in enumerate((dict(seed=1235), dict(hidden_dropout=0.2), dict(attention_dropout=0.2), dict(lr=4e-3),
                                         dict(weight_decay=0.3), dict(clip_grad=0.1), dict(adam_beta2=0.9))):
            self.assertNotEqual([row["lm_loss"] for row in self.train(f"other{number}", **change)],
                                [row["lm_loss"] for row in whole], change)


if __name__ == "__main__":
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
