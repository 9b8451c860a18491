"""Compares Megalith's token files and sample order with Megatron-Core's dataset code, live.

    dataset_parity.py [MEGALITH [FOLDER]]

Environment: requirements-datasets.txt

MEGALITH is the program (by default the variable MEGALITH_BINARY), FOLDER where the corpora are made (by default a temporary
one). Prints a line PASS, FAIL or SKIP for each check. The status is 1 where one failed, 77 where nothing could be checked.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

import dataset_cases
import megatron_datasets

failures = 0
checks = 0


def check(name, good, detail=""):
    global failures, checks
    checks += 1
    failures += 0 if good else 1
    print(f"{'PASS' if good else 'FAIL'} {name}{': ' + detail if detail and not good else ''}", flush=True)


def place(value, folder):
    if isinstance(value, list):
        return [place(item, folder) for item in value]
    return value.replace("{P}", folder) if isinstance(value, str) else value


def our_order(program, arguments):
    command = [program, "data", "order", "--seq-length", str(arguments["seq_length"]), "--seed", str(arguments["seed"])]
    if arguments["split"] is not None:
        command += ["--split", arguments["split"]]
    for key in ("data_path", "train_data_path", "valid_data_path", "test_data_path"):
        if arguments.get(key):
            command += ["--" + key.replace("_", "-")] + arguments[key]
    for split, samples in zip(("train", "valid", "test"), arguments["samples"]):
        command += [f"--{split}-samples", str(samples)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return None, done.stderr
    sets = {}
    for line in done.stdout.splitlines():
        words = line.split()
        sets.setdefault(words[0], []).append([int(word) for word in words[1:]])
    return sets, ""


def compare_order(program, case, folder):
    arguments = {key: place(value, folder) for key, value in case.items()}
    arguments["cache"] = os.path.join(folder, "cache")
    ours, message = our_order(program, arguments)
    if ours is None:
        return False, message
    theirs = {}
    for split, wanted, dataset in zip(("train", "valid", "test"), case["samples"], megatron_datasets.splits(arguments)):
        if dataset is not None and wanted > 0:
            theirs[split] = [megatron_datasets.sample(dataset, index) for index in range(len(dataset))]
    for split in theirs:
        if ours.get(split) != theirs[split]:
            mine = ours.get(split, [])
            first = next((i for i, (a, b) in enumerate(zip(mine, theirs[split])) if a != b), min(len(mine), len(theirs[split])))
            return False, f"{split}: {len(mine)} and {len(theirs[split])} samples, first difference at {first}"
    return ours.keys() == theirs.keys(), "other sets"


def random_cases(corpora):
    """Fifty random settings that leave every needed set at least one sample."""
    generator = random.Random(20260801)
    names = sorted(corpora)
    lengths = {name: sum(len(s) for d in corpora[name] for s in d) for name in names}
    result = []
    for number in range(50):
        chosen = generator.sample(names, generator.randrange(1, 5))
        seq_length = generator.randrange(1, 40)
        weights = [generator.choice([generator.random() + 0.01, generator.randrange(1, 100), 1e-3]) for _ in chosen]
        paths = ["{P}/" + chosen[0]] if len(chosen) == 1 else [
            value for weight, name in zip(weights, chosen) for value in (repr(weight), "{P}/" + name)]
        samples = generator.randrange(1, 5 * min(lengths[name] for name in chosen) // seq_length + 2)
        result.append(dict(name=f"random {number}", data_path=paths, split="1,0,0", seq_length=seq_length,
                           seed=generator.randrange(2**32), samples=[samples, 0, 0]))
    return result


def compare_files(program, folder):
    """data prepare against Megatron's builder on the same tokens: a NullTokenizer's text is its token numbers."""
    import numpy

    generator = random.Random(3)
    for vocabulary, dtype in ((60000, numpy.uint16), (70000, numpy.int32)):
        documents = [[[generator.randrange(vocabulary) for _ in range(generator.randrange(1, 50))]
                      for _ in range(generator.choice([0, 1, 1, 1, 3]))] for _ in range(200)]
        source = os.path.join(folder, f"null-{vocabulary}.jsonl")
        with open(source, "w") as stream:
            for document in documents:
                texts = [" ".join(map(str, sequence)) for sequence in document]
                stream.write(json.dumps({"text": texts[0] if len(texts) == 1 else texts}) + "\n")
        theirs = os.path.join(folder, f"theirs-{vocabulary}")
        megatron_datasets.write(theirs, documents, dtype)
        ours = os.path.join(folder, f"ours-{vocabulary}")
        done = subprocess.run([program, "data", "prepare", "--input", source, "--output-prefix", ours, "--tokenizer-type",
                               "NullTokenizer", "--vocab-size", str(vocabulary)], capture_output=True, text=True, timeout=300)
        for suffix in (".bin", ".idx"):
            good = done.returncode == 0
            detail = done.stderr
            if good:
                with open(theirs + suffix, "rb") as one, open(ours + "_text_document" + suffix, "rb") as two:
                    good = one.read() == two.read()
                    detail = "bytes differ"
            check(f"data prepare writes megatron-core's {suffix} for a vocabulary of {vocabulary}", good, detail)


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.environ["MEGALITH_BINARY"])
    try:
        version = megatron_datasets.load()
        import numpy
    except ImportError as error:
        print(f"SKIP all dataset checks: {error}")
        return 77
    print(f"megatron-core {version}, numpy {numpy.__version__}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else temporary
        os.makedirs(folder, exist_ok=True)
        corpora = dataset_cases.corpora()
        for name, documents in corpora.items():
            megatron_datasets.write(os.path.join(folder, name), documents)
        compare_files(program, folder)
        for case in dataset_cases.cases() + random_cases(corpora):
            try:
                good, detail = compare_order(program, case, folder)
            except (AssertionError, IndexError) as error:
                good, detail = False, f"megatron-core refuses this case: {error!r}"
            check("sample order: " + case["name"], good, detail)
    print(f"{checks - failures} of {checks} checks agree with megatron-core {version}.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
