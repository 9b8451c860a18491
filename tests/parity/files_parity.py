"""TensorBoard, safetensors and xxhash read what a training run writes, cut and resumed.

Environment: requirements-files.txt

MEGALITH_BINARY is the program. The checks are run_files.py's, the readers the packages'.
"""

import os
import sys
import tempfile

import numpy
import run_files
import safetensors
import safetensors.numpy
import tensorboard
import xxhash
from tensorboard.backend.event_processing import event_accumulator, event_file_loader


def scalars(folder):
    """{tag: [(step, value)]}; nothing is purged or left out, so that a step that stands twice is seen."""
    events = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0},
                                                purge_orphaned_data=False)
    events.Reload()
    found = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    # What TensorBoard itself shows, purging where steps go back, is the same.
    shown = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0})
    shown.Reload()
    assert {tag: [(event.step, event.value) for event in shown.Scalars(tag)] for tag in shown.Tags()["scalars"]} == found
    # And so is what the file loader gives for each file alone, in the order of their names.
    loaded = {}
    for name in sorted(os.listdir(folder)):
        for event in event_file_loader.LegacyEventFileLoader(os.path.join(folder, name)).Load():
            for value in event.summary.value:
                loaded.setdefault(value.tag, []).append((event.step, value.simple_value))
    assert loaded == found, "the file loader reads other values"
    return found


def tensors(path):
    """{name: (type, shape, bytes)} by safetensors; the values must be those of the plain reader."""
    plain = run_files.safetensors(path)
    arrays = safetensors.numpy.load_file(path)
    result = {}
    with safetensors.safe_open(path, framework="numpy") as opened:
        for name in opened.keys():
            array = opened.get_tensor(name)
            assert array.dtype == numpy.float32 and numpy.isfinite(array).all(), name
            assert (arrays[name] == array).all(), name
            result[name] = (opened.get_slice(name).get_dtype(), list(array.shape), array.tobytes())
    assert result == plain, f"{path}: the package reads other values"
    return result


def main():
    program = os.environ.get("MEGALITH_BINARY")
    if not program or not os.path.exists(program):
        print("skipped: MEGALITH_BINARY names no program")
        return 77
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "run")
        run_files.cut_and_resumed_run(program, folder)
        rows = run_files.metrics(folder)
        assert [row["iteration"] for row in rows] == list(range(1, 13)), rows
        found = scalars(os.path.join(folder, "tensorboard"))
        run_files.check_scalars(found, rows)
        checksums = 0
        for iteration in (4, 8, 12):
            checkpoint = os.path.join(folder, f"iter_{iteration:07d}")
            files = {name: tensors(os.path.join(checkpoint, name)) for name in run_files.shards(checkpoint)}
            for part, data in run_files.check_index(checkpoint, files):
                assert xxhash.xxh3_64_hexdigest(data) == part["xxh3"], part
                checksums += 1
            with open(os.path.join(checkpoint, "index.json"), "rb") as index:
                with open(os.path.join(checkpoint, "COMMITTED")) as marker:
                    assert xxhash.xxh3_64_hexdigest(index.read()) == marker.read().strip(), "the commit marker differs"
            if iteration == 12:
                run_files.check_tensors({key: row for content in files.values() for key, row in content.items()})
    points = sum(len(series) for series in found.values())
    print(f"{points} points of {len(found)} tags (tensorboard {tensorboard.__version__}), {checksums} checksums of tensors "
          f"(safetensors {safetensors.__version__}, xxhash {xxhash.VERSION})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
