#!/usr/bin/python3
"""An outside GPT-2, optimizer and random generator, to compare Megalith's with.

  gpt_oracle.py check GPT_DUMP        run the program in every scenario, on every device, and compare all numbers
  gpt_oracle.py expected FILE         write the small stored values that tests/optim/gpt_parity_test.cpp reads

The model is written with PyTorch's float64 operations and its autograd; AdamW, SGD and clipping are torch.optim's.
Philox, the initial weights, the tokens and the dropout masks are computed here from their definitions. Exit status 77
says that PyTorch is missing.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"skipped: {error} (Debian: apt install python3-torch python3-numpy)")
    sys.exit(77)

DEFAULTS = dict(layers=2, hidden=20, ffn=36, heads=3, head_size=8, sequence=10, max_positions=12, vocabulary=37,
                padded_vocabulary=64, init_std=0.3, hidden_dropout=0.0, attention_dropout=0.0, tied=1,
                activation="gelu_tanh", micro_batch=2, global_batch=4, steps=10, optimizer="adamw", momentum=0.0,
                clip_grad=1.0, epsilon=1e-8, beta2=0.999, lr=0.01, weight_decay=0.01)
SEED = 11
TEST_SEED = 99

SCENARIOS = {
    "sgd": dict(optimizer="sgd", momentum=0.9, lr=0.1, weight_decay=0.02),
    "sgd_untied_erf": dict(optimizer="sgd", tied=0, activation="gelu_erf", clip_grad=0, lr=0.05),
    "adamw": dict(optimizer="adamw"),
    "adamw_untied_erf": dict(optimizer="adamw", tied=0, activation="gelu_erf", clip_grad=0.25, beta2=0.95),
    "adamw_dropout": dict(optimizer="adamw", hidden_dropout=0.15, attention_dropout=0.2),
}
# One more for the live comparison: larger, with awkward sizes, several microbatches.
LIVE_SCENARIOS = dict(SCENARIOS, larger=dict(layers=4, hidden=48, ffn=200, heads=4, head_size=12, sequence=65,
                                             max_positions=65, vocabulary=301, padded_vocabulary=384, init_std=0.1,
                                             micro_batch=3, global_batch=6, steps=3, hidden_dropout=0.1,
                                             attention_dropout=0.1))


# --- the counter-based generator (Salmon et al. 2011) -------------------------------------------------------------

def philox_key(seed, name):
    mask = (1 << 64) - 1
    value = 0xcbf29ce484222325
    for letter in name.encode():
        value = ((value ^ letter) * 0x100000001b3) & mask
    mixed = (value + 0x9e3779b97f4a7c15 * (seed + 1)) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94d049bb133111eb) & mask
    mixed ^= mixed >> 31
    return mixed & 0xffffffff, mixed >> 32


def philox(counter, key):
    """Four arrays of counters (any integer type) to four uint64 arrays of 32-bit words."""
    low = np.uint64(0xffffffff)
    c = [np.asarray(x, dtype=np.uint64) for x in counter]
    k0, k1 = key
    for _ in range(10):
        p0 = c[0] * np.uint64(0xD2511F53)
        p1 = c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
             p0 & low]
        k0 = (k0 + 0x9E3779B9) & 0xffffffff
        k1 = (k1 + 0xBB67AE85) & 0xffffffff
    return c


def normals(first, second):
    radius = np.sqrt(-2.0 * np.log((first.astype(np.float64) + 0.5) * 2.0 ** -32))
    angle = 2.0 * math.pi * second.astype(np.float64) * 2.0 ** -32
    return radius * np.cos(angle), radius * np.sin(angle)


def initial_normal(name, shape, deviation):
    count = int(np.prod(shape))
    blocks = np.arange((count + 3) // 4)
    zero = np.zeros_like(blocks)
    words = philox((blocks & 0xffffffff, blocks >> 32, zero, zero), philox_key(SEED, "init:" + name))
    values = np.stack([*normals(words[0], words[1]), *normals(words[2], words[3])], axis=1).reshape(-1)[:count]
    return (values * deviation).reshape(shape)


def keep_mask(key, sample, heads, rows, columns, probability):
    """[heads, rows, columns] of 0 or 1/(1-p)."""
    head, row, column = np.meshgrid(np.arange(heads), np.arange(rows), np.arange(columns), indexing="ij")
    words = philox((column // 4, row, head | ((sample >> 32) << 16), np.full_like(head, sample & 0xffffffff)), key)
    word = np.choose(column % 4, words)
    return torch.from_numpy((word >= np.uint64(int(probability * 4294967296.0))) / (1.0 - probability))


# --- the model ----------------------------------------------------------------------------------------------------

def initial_weights(s):
    std, h, f, q = s["init_std"], s["hidden"], s["ffn"], s["heads"] * s["head_size"]
    output_std = std / math.sqrt(2.0 * s["layers"])
    weights = {}

    def matrix(name, rows, columns, deviation):
        weights[name] = initial_normal(name, (rows, columns), deviation)

    def vector(name, size, value):
        numbers = np.arange(size)
        zero = np.zeros_like(numbers)
        words = philox((numbers, zero, zero, zero), philox_key(TEST_SEED, name))
        weights[name] = value + 0.2 * normals(words[0], words[1])[0]

    matrix("embedding.word_embeddings.weight", s["vocabulary"], h, std)
    matrix("embedding.position_embeddings.weight", s["max_positions"], h, std)
    for layer in range(s["layers"]):
        prefix = f"decoder.layers.{layer}."
        for norm in ("input_layernorm", "pre_mlp_layernorm"):
            vector(prefix + norm + ".weight", h, 1.0)
            vector(prefix + norm + ".bias", h, 0.0)
        for name, rows, columns, deviation in (("self_attention.linear_qkv", 3 * q, h, std),
                                               ("self_attention.linear_proj", h, q, output_std),
                                               ("mlp.linear_fc1", f, h, std), ("mlp.linear_fc2", h, f, output_std)):
            matrix(prefix + name + ".weight", rows, columns, deviation)
            vector(prefix + name + ".bias", rows, 0.0)
    vector("decoder.final_layernorm.weight", h, 1.0)
    vector("decoder.final_layernorm.bias", h, 0.0)
    if not s["tied"]:
        matrix("output_layer.weight", s["vocabulary"], h, std)
    return weights


def test_words(name, numbers):
    numbers = np.asarray(numbers)
    zero = np.zeros_like(numbers)
    return philox((numbers, zero + 1, zero, zero), philox_key(TEST_SEED, name))[0]


def batch_of(s, sample):
    tokens = test_words("tokens", sample * 1000 + np.arange(s["sequence"] + 1)) % np.uint64(s["vocabulary"])
    mask = test_words("mask", sample * 1000 + np.arange(s["sequence"])) % np.uint64(5) != 0
    return tokens.astype(np.int64), mask.astype(np.float64)


def dropout(x, site, sample, probability):
    """x is [rows, columns] or [heads, rows, columns] of one sequence."""
    if probability == 0.0:
        return x
    shape = (1, *x.shape) if x.dim() == 2 else x.shape
    return x * keep_mask(philox_key(SEED, "dropout:" + site), sample, *shape, probability).reshape(x.shape)


def forward(s, w, head, tokens, sample):
    """Logits [S, V] of one sequence."""
    length, n, d, h = s["sequence"], s["heads"], s["head_size"], s["hidden"]
    hidden_p, attention_p = s["hidden_dropout"], s["attention_dropout"]
    x = w["embedding.word_embeddings.weight"][tokens] + w["embedding.position_embeddings.weight"][:length]
    x = dropout(x, "embedding", sample, hidden_p)
    future = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
    for layer in range(s["layers"]):
        prefix = f"decoder.layers.{layer}."

        def norm(name, value):
            return F.layer_norm(value, (h,), w[prefix + name + ".weight"], w[prefix + name + ".bias"], 1e-5)

        def linear(name, value):
            return F.linear(value, w[prefix + name + ".weight"], w[prefix + name + ".bias"])

        qkv = linear("self_attention.linear_qkv", norm("input_layernorm", x)).reshape(length, n, 3, d)
        query, key, value = (qkv[:, :, i].transpose(0, 1) for i in range(3))
        scores = (query @ key.transpose(1, 2) / math.sqrt(d)).masked_fill(future, -math.inf)
        weights = dropout(torch.softmax(scores, -1), prefix + "self_attention.core_attention", sample, attention_p)
        attended = (weights @ value).transpose(0, 1).reshape(length, n * d)
        x = x + dropout(linear("self_attention.linear_proj", attended), prefix + "self_attention.linear_proj", sample,
                        hidden_p)
        inner = linear("mlp.linear_fc1", norm("pre_mlp_layernorm", x))
        inner = F.gelu(inner, approximate="tanh" if s["activation"] == "gelu_tanh" else "none")
        x = x + dropout(linear("mlp.linear_fc2", inner), prefix + "mlp.linear_fc2", sample, hidden_p)
    x = F.layer_norm(x, (h,), w["decoder.final_layernorm.weight"], w["decoder.final_layernorm.bias"], 1e-5)
    return x @ head.t()


def run(settings, start=None):
    """All numbers of a run, under gpt_run.h's names. `start`: initial weights to use instead of our own."""
    s = dict(DEFAULTS, **settings)
    initial = start or initial_weights(s)
    w = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in initial.items()}
    matrices = [p for p in w.values() if p.dim() > 1]
    vectors = [p for p in w.values() if p.dim() == 1]
    groups = [dict(params=matrices, weight_decay=s["weight_decay"]), dict(params=vectors, weight_decay=0.0)]
    if s["optimizer"] == "sgd":
        optimizer = torch.optim.SGD(groups, lr=s["lr"], momentum=s["momentum"])
    else:
        optimizer = torch.optim.AdamW(groups, lr=s["lr"], betas=(0.9, s["beta2"]), eps=s["epsilon"])
    record = {"initial/" + name: value.detach().numpy().copy() for name, value in w.items()}
    batches = [batch_of(s, sample) for sample in range(s["steps"] * s["global_batch"])]
    record["tokens"] = np.stack([b[0] for b in batches]).astype(np.float64)
    record["mask"] = np.stack([b[1] for b in batches])
    losses, norms = [], []
    for step in range(s["steps"]):
        optimizer.zero_grad()
        words = w["embedding.word_embeddings.weight"]
        head = words.clone() if s["tied"] else w["output_layer.weight"]
        head.retain_grad()
        total, count, all_logits, all_losses = 0.0, 0.0, [], []
        for sample in range(step * s["global_batch"], (step + 1) * s["global_batch"]):
            tokens, mask = batches[sample]
            logits = forward(s, w, head, torch.from_numpy(tokens[:-1]), sample)
            token_losses = F.cross_entropy(logits, torch.from_numpy(tokens[1:]), reduction="none")
            total = total + (token_losses * torch.from_numpy(mask)).sum()
            count += mask.sum()
            all_logits.append(logits.detach().numpy())
            all_losses.append(token_losses.detach().numpy())
        loss = total / count
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            record["logits"] = np.concatenate(all_logits[:s["micro_batch"]])
            record["losses"] = np.concatenate(all_losses[:s["micro_batch"]])
            for name, value in w.items():
                record["gradient/" + name] = value.grad.numpy().copy()
            if s["tied"]:
                record["gradient/output_layer.weight"] = head.grad.numpy().copy()
                record["gradient/embedding.word_embeddings.weight"] -= head.grad.numpy()
        limit = s["clip_grad"] if s["clip_grad"] > 0 else math.inf
        norms.append(float(torch.nn.utils.clip_grad_norm_(list(w.values()), limit)))
        optimizer.step()
    record["loss"], record["norm"] = np.array(losses), np.array(norms)
    for name, value in w.items():
        record["final/" + name] = value.detach().numpy().copy()
        for kind in ("exp_avg", "exp_avg_sq", "momentum_buffer"):
            state = optimizer.state[value].get(kind)
            if state is not None:
                record[f"optimizer.{kind}.{name}"] = state.numpy().copy()
    return record


# --- comparison ---------------------------------------------------------------------------------------------------

def layer_of(name):
    parts = name.split(".")
    return ".".join(parts[:3]) if name.startswith("decoder.layers.") else name


def difference(ours, theirs, prefix):
    """max|a-b| / max(max|b|, 1e-3 of the layer's largest), the worst over all tensors whose name starts so."""
    names = [name[len(prefix):] for name in theirs if name.startswith(prefix)]
    most = {}
    for name in names:
        most[layer_of(name)] = max(most.get(layer_of(name), 0.0), np.abs(theirs[prefix + name]).max())
    worst = (0.0, "")
    for name in names:
        b = theirs[prefix + name]
        scale = max(np.abs(b).max(), 1e-3 * most[layer_of(name)])
        if scale > 0.0:
            worst = max(worst, (float(np.abs(ours[prefix + name] - b).max() / scale), prefix + name))
    return worst


def chosen_weights(s, name, values):
    """Without the keys' biases: their gradient is zero in exact arithmetic (softmax ignores a constant), so AdamW
    divides rounding noise by epsilon. Their gradients and moments are compared like all others."""
    if not name.endswith("linear_qkv.bias"):
        return values
    return values.reshape(s["heads"], 3, s["head_size"])[:, [0, 2]]


def compare(s, ours, theirs):
    """Yields (what, measure, worst tensor)."""
    missing = set(theirs) ^ set(ours)
    assert not missing, f"only one side has {sorted(missing)}"
    for prefix in ("logits", "losses", "gradient/", "loss", "norm", "optimizer."):
        if any(name.startswith(prefix) for name in theirs):
            yield (prefix, *difference(ours, theirs, prefix))
    if s["optimizer"] == "sgd":
        yield ("weights", *difference(ours, theirs, "final/"))
    else:
        worst = max((float(np.abs(chosen_weights(s, name, ours[name] - theirs[name])).max() / s["lr"]), name)
                    for name in theirs if name.startswith("final/"))
        yield ("weights in learning rates", *worst)


def read_dump(path):
    data = open(path, "rb").read()
    record, at = {}, 0
    while at < len(data):
        length = int(np.frombuffer(data, "<u4", 1, at)[0])
        name = data[at + 4:at + 4 + length].decode()
        at += 4 + length
        rank = int(np.frombuffer(data, "<u4", 1, at)[0])
        shape = tuple(int(x) for x in np.frombuffer(data, "<i8", rank, at + 4))
        at += 4 + 8 * rank
        count = int(np.prod(shape))
        record[name] = np.frombuffer(data, "<f8", count, at).reshape(shape)
        at += 8 * count
    return record


def dump(program, path, settings):
    command = [program, path] + [f"{name}={value}" for name, value in settings.items()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return read_dump(path)


def check(program):
    devices = subprocess.run([program, "--devices"], capture_output=True, text=True, timeout=60).stdout.split()
    places = [("reference", "float64", 1e-10), ("reference", "float32", 1e-5)]
    places += [(name, "float32", 1e-5) for name in devices if name != "reference"]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for title, settings in LIVE_SCENARIOS.items():
            for device, compute, bound in places:
                chosen = dict(settings)
                if compute == "float32" and "sgd" not in title:
                    # Where a gradient is rounding noise (a key's bias), AdamW with a tiny epsilon turns the noise's sign
                    # into a whole step. An epsilon above the noise lets float32 be compared at all; so does a learning
                    # rate well above the rounding of the weights themselves.
                    chosen["epsilon"] = 0.05
                    chosen["lr"] = 0.1
                s = dict(DEFAULTS, **chosen)
                ours = dump(program, os.path.join(folder, "dump"), dict(chosen, device=device, compute=compute))
                own = initial_weights(s)
                start = max(float(np.abs(ours["initial/" + name] - value).max()) for name, value in own.items())
                theirs = run(chosen, {name: ours["initial/" + name] for name in own})
                results = [("initial weights", start, "")] + list(compare(s, ours, theirs))
                for what, measure, name in results:
                    limit = 1e-6 if what == "initial weights" and compute == "float32" else bound
                    good = measure < limit
                    failures += not good
                    print(f"{'ok  ' if good else 'FAIL'} {title:18} {device:10} {compute:8} {what:26} "
                          f"{measure:.1e} {name}")
    print(f"{failures} failed")
    return 1 if failures else 0


def summary(record):
    """A few numbers of every tensor: enough to notice any error, small enough to store."""
    stored = {"loss": record["loss"].tolist(), "norm": record["norm"].tolist(),
              "logits": record["logits"][-1].tolist(), "losses": record["losses"].tolist(), "tensors": {}}
    for name, value in record.items():
        if name.startswith(("gradient/", "final/", "optimizer.")):
            flat = value.reshape(-1)
            # largest, Euclidean norm, first, middle and last element
            stored["tensors"][name] = [float(x) for x in (np.abs(flat).max(), np.linalg.norm(flat), flat[0],
                                                          flat[flat.size // 2], flat[-1])]
    return stored


def write_expected(path):
    stored = {"command": "/usr/bin/python3 tests/parity/gpt_oracle.py expected tests/parity/gpt_expected.json",
              "torch": torch.__version__, "scenarios": {}}
    for title, settings in SCENARIOS.items():
        stored["scenarios"][title] = {"settings": {k: str(v) for k, v in settings.items()},
                                      "lr": dict(DEFAULTS, **settings)["lr"], **summary(run(settings))}
    with open(path, "w") as file:
        file.write(json.dumps(stored).replace('], "', '],\n"') + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) == 3 and sys.argv[1] == "check":
        sys.exit(check(sys.argv[2]))
    if len(sys.argv) == 3 and sys.argv[1] == "expected":
        write_expected(sys.argv[2])
        sys.exit(0)
    print(__doc__)
    sys.exit(2)
