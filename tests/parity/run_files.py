#!/usr/bin/python3
"""Reads what a training run writes (metrics.jsonl, TensorBoard event files, safetensors shards, index.json) with readers written
here from the formats' definitions, on Python's standard library alone. files_parity.py gives the same checks the real readers.

    run_files.py MEGALITH
"""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile

VOCABULARY, HIDDEN, LAYERS, FFN, POSITIONS = 61, 16, 2, 40, 8
MODEL = ["--num-layers", str(LAYERS), "--hidden-size", str(HIDDEN), "--ffn-hidden-size", str(FFN), "--num-attention-heads", "2",
         "--seq-length", str(POSITIONS), "--vocab-size", str(VOCABULARY), "--micro-batch-size", "2", "--global-batch-size", "4",
         "--train-iters", "12", "--lr", "1e-3", "--lr-warmup-iters", "3", "--mock-data", "--log-interval", "1",
         "--eval-interval", "4", "--eval-iters", "2", "--num-threads", "1", "--no-progress"]
# TensorBoard's tag and the key of metrics.jsonl whose value it shows.
TAGS = {"lm loss": ("lm_loss", lambda x: x), "lm loss validation": ("validation_loss", lambda x: x),
        "lm loss validation ppl": ("validation_loss", lambda x: math.exp(min(20.0, x))), "grad-norm": ("grad_norm", lambda x: x),
        "learning-rate": ("learning_rate", lambda x: x), "batch-size": ("global_batch_size", lambda x: x),
        "iteration-time": ("elapsed_ms", lambda x: x * 1e-3), "tokens-per-second": ("tokens_per_second", lambda x: x),
        "throughput": ("tflops_per_device", lambda x: x)}


def train(program, folder, *flags):
    done = subprocess.run([program, "train", *MODEL, "--save", folder, *flags], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"megalith train {' '.join(flags)}: status {done.returncode}\n{done.stderr}")


def cut_and_resumed_run(program, folder):
    """Cut after 5 iterations, finished, then finished again from iteration 4's and 8's checkpoints: four event files."""
    train(program, folder, "--exit-interval", "5", "--save-interval", "4")
    train(program, folder, "--load", folder, "--save-interval", "4")
    train(program, folder, "--load", folder, "--ckpt-step", "4", "--save-interval", "4")
    train(program, folder, "--load", folder, "--ckpt-step", "8", "--save-interval", "4")


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def metrics(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as stream:
        return [json.loads(line) for line in stream]


# --- TensorBoard: TFRecord frames, Event and Summary messages ------------------------------------------------------

def crc32c(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82f63b78 if value & 1 else 0)
    return value ^ 0xffffffff


def masked_crc32c(data):
    value = crc32c(data)
    return (((value >> 15) | (value << 17)) + 0xa282ead8) & 0xffffffff


def records(path):
    with open(path, "rb") as stream:
        while head := stream.read(12):
            length, check = struct.unpack("<QI", head)
            assert masked_crc32c(head[:8]) == check, f"{path}: the length's checksum differs"
            data, (check,) = stream.read(length), struct.unpack("<I", stream.read(4))
            assert len(data) == length and masked_crc32c(data) == check, f"{path}: the record's checksum differs"
            yield data


def fields(message):
    """(number, value) of each field of a protocol-buffer message; fixed and length-delimited values as bytes."""
    place = 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}[tag & 7] if tag & 7 != 2 else varint()
        yield tag >> 3, message[place:place + size]
        place += size


def scalars(folder):
    """{tag: [(step, value)]} over all event files in the order of their names, as TensorBoard reads them."""
    found = {}
    for name in sorted(os.listdir(folder)):
        for number, record in enumerate(records(os.path.join(folder, name))):
            event = dict(fields(record))
            if number == 0:
                assert event[3] == b"brain.Event:2", f"{name}: no version in front"
                continue
            for _, value in fields(event[5]):
                parts = dict(fields(value))
                found.setdefault(parts[1].decode(), []).append((event.get(2, 0), struct.unpack("<f", parts[2])[0]))
    return found


def check_scalars(found, rows):
    """Every value of metrics.jsonl stands in the event files once, in order, as float32, and nothing else does."""
    for tag, (key, value_of) in TAGS.items():
        expected = [(row["iteration"], float32(value_of(row[key]))) for row in rows
                    if row[key] is not None and (tag in ("lm loss validation", "lm loss validation ppl") or row["lm_loss"])]
        mine = found.get(tag, [])
        assert [step for step, _ in mine] == [step for step, _ in expected], f"{tag}: steps {mine}, expected {expected}"
        for (step, value), (_, right) in zip(mine, expected):
            # exp() may differ in its last bit.
            assert abs(value - right) <= (2e-7 * right if "ppl" in tag else 0), f"{tag}: {value} at {step}, expected {right}"
    assert set(found) - set(TAGS) <= {"lm loss test"}, f"tags that no metric explains: {set(found) - set(TAGS)}"


# --- safetensors ---------------------------------------------------------------------------------------------------

def safetensors(path):
    """{name: (type, shape, bytes)}; the data must fill the file without gaps."""
    with open(path, "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
        data = stream.read()
    header.pop("__metadata__", None)
    end = 0
    for name, row in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert row["data_offsets"][0] == end, f"{path}: a gap before {name}"
        end = row["data_offsets"][1]
    assert end == len(data), f"{path}: {len(data) - end} bytes after the last tensor"
    return {name: (row["dtype"], row["shape"], data[slice(*row["data_offsets"])]) for name, row in header.items()}


def expected_shapes():
    shapes = {"embedding.word_embeddings.weight": [VOCABULARY, HIDDEN], "embedding.position_embeddings.weight": [POSITIONS, HIDDEN],
              "decoder.final_layernorm.weight": [HIDDEN], "decoder.final_layernorm.bias": [HIDDEN]}
    for layer in range(LAYERS):
        for name, rows, columns in (("self_attention.linear_qkv", 3 * HIDDEN, HIDDEN),
                                    ("self_attention.linear_proj", HIDDEN, HIDDEN), ("mlp.linear_fc1", FFN, HIDDEN),
                                    ("mlp.linear_fc2", HIDDEN, FFN)):
            shapes[f"decoder.layers.{layer}.{name}.weight"] = [rows, columns]
            shapes[f"decoder.layers.{layer}.{name}.bias"] = [rows]
        for norm in ("input_layernorm", "pre_mlp_layernorm"):
            shapes[f"decoder.layers.{layer}.{norm}.weight"] = [HIDDEN]
            shapes[f"decoder.layers.{layer}.{norm}.bias"] = [HIDDEN]
    return shapes


def check_tensors(found):
    """Names and shapes of weights and both moments, and values that such a short run can have."""
    shapes = expected_shapes()
    expected = {prefix + name: shape for prefix in ("", "optimizer.exp_avg.", "optimizer.exp_avg_sq.")
                for name, shape in shapes.items()}
    assert {name: shape for name, (_, shape, _) in found.items()} == expected, "names or shapes differ"
    for name, (kind, shape, data) in found.items():
        assert kind == "F32", f"{name}: {kind}"
        values = struct.unpack(f"<{math.prod(shape)}f", data)
        if name.startswith("optimizer.exp_avg_sq."):
            assert all(value >= 0 for value in values) and any(values), name
        elif name.startswith("optimizer."):
            assert all(abs(value) < 1 for value in values) and any(values), name
        elif len(shape) == 1:  # started at 1 or 0, then moved at most 12 times by about the learning rate
            start = 1.0 if name.endswith("layernorm.weight") else 0.0
            assert all(abs(value - start) < 0.02 for value in values), name
            assert any(value != start for value in values), name
        else:
            deviation = 0.02 / (2 if "linear_proj" in name or "linear_fc2" in name else 1)
            measured = math.sqrt(sum(value * value for value in values) / len(values))
            assert abs(measured / deviation - 1) < 0.25, f"{name}: deviation {measured}, expected about {deviation}"


def check_index(folder, files):
    """index.json agrees with the shards: `files` is {file: {key: (type, shape, bytes)}}. Returns the slices' rows and bytes."""
    with open(os.path.join(folder, "index.json")) as stream:
        index = json.load(stream)
    assert index["format"] == "megalith-checkpoint" and index["version"] == 1
    assert index["files"] == {name: os.path.getsize(os.path.join(folder, name)) for name in files}
    slices, seen = [], set()
    for name, row in index["tensors"].items():
        assert row["dtype"] == "float32", name
        assert sum(math.prod(part["extent"]) for part in row["slices"]) == math.prod(row["shape"]), f"{name} is not covered"
        for part in row["slices"]:
            _, shape, data = files[part["file"]][part["key"]]
            assert shape == part["extent"], name
            seen.add((part["file"], part["key"]))
            slices.append((part, data))
    assert seen == {(file, key) for file, tensors in files.items() for key in tensors}, "the index does not name every tensor"
    return slices


def shards(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))


def main():
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "run")
        cut_and_resumed_run(os.path.abspath(sys.argv[1]), folder)
        rows = metrics(folder)
        assert [row["iteration"] for row in rows] == list(range(1, 13)), rows
        check_scalars(scalars(os.path.join(folder, "tensorboard")), rows)
        for iteration in (4, 8, 12):
            checkpoint = os.path.join(folder, f"iter_{iteration:07d}")
            files = {name: safetensors(os.path.join(checkpoint, name)) for name in shards(checkpoint)}
            check_index(checkpoint, files)
            if iteration == 12:
                check_tensors({key: row for tensors in files.values() for key, row in tensors.items()})
    print(f"{len(TAGS)} tags over {len(rows)} steps, {3 * len(expected_shapes())} tensors: as written")


if __name__ == "__main__":
    main()
