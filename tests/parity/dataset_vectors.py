"""Writes the stored vectors of tests/data/vectors/ with Megatron-Core's dataset code and numpy:

    /usr/bin/python3 -m venv VENV
    VENV/bin/pip install --no-deps --require-hashes -r tests/parity/requirements-datasets.txt
    VENV/bin/python tests/parity/dataset_vectors.py tests/data/vectors
"""

import json
import os
import shutil
import sys
import tempfile

import numpy

import dataset_cases
import megatron_datasets


def place(value, folder):
    if isinstance(value, list):
        return [place(item, folder) for item in value]
    return value.replace("{P}", folder) if isinstance(value, str) else value


def digest(values, state=0):
    """A hash that the C++ test repeats: state = (state * 6364136223846793005 + value + 1) mod 2^64."""
    for value in values:
        state = (state * 6364136223846793005 + int(value) + 1) % 2**64
    return state


def main(target):
    version = megatron_datasets.load()
    os.makedirs(target, exist_ok=True)
    shuffles = []
    for seed, count in ((0, 1), (0, 2), (1, 10), (1234, 10), (1234, 33), (4294967295, 17), (42, 1000), (1234, 70000)):
        generator = numpy.random.RandomState(seed)
        first = numpy.arange(count, dtype=numpy.int32)
        second = numpy.arange(count, dtype=numpy.uint32)
        generator.shuffle(first)
        generator.shuffle(second)
        shuffles.append(dict(seed=seed, count=count, first=first[:12].tolist(), second=second[:12].tolist(),
                             first_digest=str(digest(first)), second_digest=str(digest(second))))
    sums = []
    generator = numpy.random.RandomState(7)
    for count in (1, 3, 7, 8, 9, 17, 127, 128, 129, 300, 1000):
        values = [float.hex(float(v)) for v in generator.rand(count)]
        sums.append(dict(values=values if count < 130 else None, count=count,
                         sum=float.hex(float(numpy.sum([float.fromhex(v) for v in values])))))
    sums = [entry for entry in sums if entry["values"]]
    with open(os.path.join(target, "numpy.json"), "w") as stream:
        json.dump(dict(command="tests/parity/dataset_vectors.py", numpy=numpy.__version__, shuffles=shuffles, sums=sums),
                  stream, indent=0)

    with tempfile.TemporaryDirectory() as folder:
        corpora = dataset_cases.corpora()
        for name, documents in corpora.items():
            megatron_datasets.write(os.path.join(folder, name), documents)
            if name in ("empty_documents", "many_sequences"):
                for suffix in (".bin", ".idx"):
                    shutil.copy(os.path.join(folder, name + suffix), os.path.join(target, name + suffix))
        results = []
        for case in dataset_cases.cases():
            arguments = {key: place(value, folder) for key, value in case.items()}
            arguments["cache"] = os.path.join(folder, "cache")
            sets = {}
            for split, wanted, dataset in zip(("train", "valid", "test"), case["samples"],
                                              megatron_datasets.splits(arguments)):
                if dataset is None or wanted == 0:
                    continue
                state = 0
                for index in range(len(dataset)):
                    state = digest(megatron_datasets.sample(dataset, index), state)
                sets[split] = dict(size=len(dataset), digest=str(state), first=megatron_datasets.sample(dataset, 0)[:6])
            results.append(dict(case, sets=sets))
        with open(os.path.join(target, "sample_order.json"), "w") as stream:
            json.dump(dict(command="tests/parity/dataset_vectors.py", megatron_core=version, numpy=numpy.__version__,
                           corpora=corpora, cases=results), stream, separators=(",", ":"))
            stream.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
