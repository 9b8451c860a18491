"""Megalith's GPT is GPT-2: weights of its checkpoints in transformers' GPT2LMHeadModel give the same logits, the same greedy
text, and under torch's AdamW, on the samples that `megalith data order` prints, the same losses and weights.

Environment: requirements-transformers.txt

MEGALITH_BINARY is the program; gpt_logits is looked for in tests/ beside it. Also a written-down map from Megatron-Core's names
and interleaved queries, keys and values to GPT-2's.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
import numpy
import torch
import transformers
from safetensors.torch import load_file

SEQUENCE, POSITIONS, SAVED, LAST, BATCH = 24, 32, 4, 12, 6
WORDS = ("the a small great lazy river fox dog house light and or but over under jumps sees 🦊 🏔️ naïve café 日本 runs sleeps "
         "quickly 12 1984 don't we'll").split()

failures = []


def check(name, error, bound):
    good = error <= bound
    print(f"{'PASS' if good else 'FAIL'} {name}: {error:.2e} (at most {bound:.0e})", flush=True)
    if not good:
        failures.append(name)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with status {done.returncode}:\n{done.stderr}")
    return done.stdout


# --- from Megatron-Core's names to GPT-2's ------------------------------------------------------------------------

def gpt2_name(name):
    """Their name of one of our parameters, and whether they store it transposed (their Conv1D keeps [in, out])."""
    outer = {"embedding.word_embeddings.weight": "transformer.wte.weight", "output_layer.weight": "lm_head.weight",
             "embedding.position_embeddings.weight": "transformer.wpe.weight",
             "decoder.final_layernorm.weight": "transformer.ln_f.weight", "decoder.final_layernorm.bias": "transformer.ln_f.bias"}
    if name in outer:
        return outer[name], False
    _, _, layer, *parts, kind = name.split(".")
    inner = {"input_layernorm": "ln_1", "pre_mlp_layernorm": "ln_2", "self_attention.linear_qkv": "attn.c_attn",
             "self_attention.linear_proj": "attn.c_proj", "mlp.linear_fc1": "mlp.c_fc", "mlp.linear_fc2": "mlp.c_proj"}
    part = ".".join(parts)
    return f"transformer.h.{layer}.{inner[part]}.{kind}", kind == "weight" and "linear" in part


def to_gpt2(name, tensor, heads):
    """Our tensor in their layout: rows (head, q/k/v, channel) become (q/k/v, head, channel), then matrices are transposed."""
    theirs, transposed = gpt2_name(name)
    if "linear_qkv" in name:
        width = tensor.shape[0] // (3 * heads)
        tensor = tensor.reshape(heads, 3, width, -1).transpose(0, 1).reshape(tensor.shape)
    return theirs, (tensor.T if transposed else tensor).contiguous()


def checkpoint(folder, iteration):
    """({their name: tensor} of weights, of first moments, of second moments, the model's description)."""
    folder = os.path.join(folder, f"iter_{iteration:07d}")
    with open(os.path.join(folder, "index.json")) as stream:
        index = json.load(stream)
    tensors = {}
    for file in index["files"]:
        tensors.update(load_file(os.path.join(folder, file)))
    model = index["metadata"]["model"]
    groups = {"": {}, "optimizer.exp_avg.": {}, "optimizer.exp_avg_sq.": {}}
    for name, tensor in tensors.items():
        prefix = next(key for key in ("optimizer.exp_avg_sq.", "optimizer.exp_avg.", "") if name.startswith(key))
        theirs, value = to_gpt2(name[len(prefix):], tensor, model["num_attention_heads"])
        groups[prefix][theirs] = value
    return *groups.values(), model


def gpt2(weights, model, eod):
    tied = not model["untie_embeddings_and_output_weights"]
    config = transformers.GPT2Config(
        vocab_size=model["vocab_size"], n_positions=model["max_position_embeddings"], n_embd=model["hidden_size"],
        n_layer=model["num_layers"], n_head=model["num_attention_heads"], n_inner=model["ffn_hidden_size"],
        activation_function={"gelu_tanh": "gelu_new", "gelu_erf": "gelu"}[model["activation"]], tie_word_embeddings=tied,
        layer_norm_epsilon=model["norm_epsilon"], resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=eod,
        eos_token_id=eod, pad_token_id=eod, attn_implementation="eager")
    result = transformers.GPT2LMHeadModel(config).to(next(iter(weights.values())).dtype)
    missing, unexpected = result.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= ({"lm_head.weight"} if tied else set()), (missing, unexpected)
    return result


# --- the comparisons ----------------------------------------------------------------------------------------------

def largest(left, right):
    return ((left - right).abs().max() / right.abs().max()).item()


def compare_logits(case, program, folder, lines, eod):
    weights, _, _, model = checkpoint(folder, LAST)
    logits_program = os.path.join(os.path.dirname(program), "tests", "gpt_logits")
    output = os.path.join(folder, "logits")
    run(logits_program, os.path.join(folder, f"iter_{LAST:07d}"), case["device"], case["type"], output,
        input="\n".join(" ".join(map(str, line)) for line in lines))
    ours = torch.from_numpy(numpy.fromfile(output)).reshape(2, len(lines), len(lines[0]), model["vocab_size"])
    with torch.no_grad():
        theirs = gpt2(weights, model, eod).eval()(torch.tensor(lines)).logits.double()
    check(f"{case['name']}: logits of a whole pass", largest(ours[0], theirs), case["bound"])
    # The cache gives float32 on every device.
    check(f"{case['name']}: logits one token at a time", largest(ours[1], theirs), 1e-5)


def compare_training(case, folder, samples, eod):
    """Their model goes on from iteration SAVED with our moments, and must arrive where we did."""
    weights, first, second, model_description = checkpoint(folder, SAVED)
    with open(os.path.join(folder, "metrics.jsonl")) as stream:
        rows = [json.loads(line) for line in stream]
    model = gpt2(weights, model_description, eod).train()
    named = dict(model.named_parameters())
    decayed = [parameter for parameter in named.values() if parameter.dim() > 1]
    plain = [parameter for parameter in named.values() if parameter.dim() == 1]
    optimizer = torch.optim.AdamW([dict(params=decayed, weight_decay=0.1), dict(params=plain, weight_decay=0.0)],
                                  lr=1.0, betas=(0.9, 0.95), eps=1e-8)
    for name, parameter in named.items():
        optimizer.state[parameter] = dict(step=torch.tensor(float(SAVED)), exp_avg=first[name].clone(),
                                          exp_avg_sq=second[name].clone())
    loss_error = norm_error = 0.0
    for iteration in range(SAVED + 1, LAST + 1):
        batch = torch.tensor(samples[(iteration - 1) * BATCH:iteration * BATCH])
        optimizer.zero_grad()
        logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), case["clip"])
        for group in optimizer.param_groups:
            group["lr"] = rows[iteration - 2]["learning_rate"]  # a line shows the rate of the next step
        optimizer.step()
        loss_error = max(loss_error, abs(loss.item() - rows[iteration - 1]["lm_loss"]) / loss.item())
        norm_error = max(norm_error, abs(norm.item() - rows[iteration - 1]["grad_norm"]) / norm.item())
    check(f"{case['name']}: losses of iterations {SAVED + 1} to {LAST}", loss_error, case["bound"])
    check(f"{case['name']}: gradient norms", norm_error, case["bound"])
    final, _, _, description = checkpoint(folder, LAST)
    hidden = description["hidden_size"]
    moved = worst = 0.0
    for name, parameter in named.items():
        difference = (parameter.detach() - final[name]).abs()
        if name.endswith("attn.c_attn.bias") and case["type"] == "float32":
            # The key bias has no gradient in exact arithmetic; Adam makes steps out of its rounding.
            difference[hidden:2 * hidden] = 0
        worst = max(worst, difference.max().item() / case["lr"])
        moved = max(moved, (parameter.detach() - weights[name]).abs().max().item() / case["lr"])
    assert moved > 1, f"the weights moved by only {moved} learning rates"
    check(f"{case['name']}: weights, in units of the learning rate", worst, case["weight_bound"])


def compare_generation(program, folder, tokenizer, eod):
    newest = max(int(name[5:]) for name in os.listdir(folder) if name.startswith("iter_"))
    weights, _, _, description = checkpoint(folder, newest)
    model = gpt2(weights, description, eod).eval()
    prompts = ["the small fox", "a 🦊 sees", "日本 and", "we'll", "the great river jumps over the"]
    lines = run(program, "generate", "--load", folder, "--greedy", "--json", "--max-new-tokens", 20, "--prompt", *prompts)
    for prompt, line in zip(prompts, lines.splitlines(), strict=True):
        ours = json.loads(line)
        ids = tokenizer(prompt).input_ids
        with torch.no_grad():
            output = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                    do_sample=False, max_new_tokens=min(20, POSITIONS - len(ids) + 1))[0]
        new = output[len(ids):].tolist()
        if eod in new:
            new = new[:new.index(eod)]
        text = tokenizer.decode(new, clean_up_tokenization_spaces=False)
        same = ours["text"] == text and ours["prompt_tokens"] == len(ids) and ours["new_tokens"] == len(new)
        print(f"{'PASS' if same else 'FAIL'} greedy: {prompt!r} + {ours['text']!r}{'' if same else f', there {text!r} {ours}'}")
        if not same:
            failures.append(f"greedy {prompt}")


CASES = [dict(name="tied, tanh, cpu", device="cpu", type="float32", bound=1e-5, weight_bound=2e-3, lr=1e-3, clip=1.0, flags=[]),
         dict(name="untied, erf, cpu", device="cpu", type="float32", bound=1e-5, weight_bound=2e-3, lr=1e-3, clip=0.3,
              flags=["--untie-embeddings-and-output-weights", "--activation", "gelu_erf", "--ffn-hidden-size", "88"]),
         dict(name="tied, tanh, reference float64", device="reference", type="float64", bound=1e-9, weight_bound=1e-7, lr=1e-3,
              clip=1.0, flags=["--fp64"])]


def main():
    program = os.environ.get("MEGALITH_BINARY")
    if not program or not os.path.exists(program):
        print("skipped: MEGALITH_BINARY names no program")
        return 77
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        draw = random.Random(5)
        with open(at("corpus.jsonl"), "w") as stream:
            for _ in range(200):
                text = " ".join(draw.choice(WORDS) for _ in range(draw.randint(3, 60)))
                stream.write(json.dumps(dict(text=text)) + "\n")
        run(program, "tokenizer", "train", "--input", at("corpus.jsonl"), "--vocab-size", 331, "--output", at("tokenizer"))
        with_tokenizer = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", at("tokenizer")]
        run(program, "data", "prepare", "--input", at("corpus.jsonl"), "--output-prefix", at("corpus"), "--append-eod",
            *with_tokenizer)
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(at("tokenizer"), "tokenizer.json"))
        eod = tokenizer.convert_tokens_to_ids("<|endoftext|>")
        data = ["--data-path", at("corpus_text_document"), "--seq-length", SEQUENCE]
        order = run(program, "data", "order", *data, "--train-samples", LAST * BATCH, "--set", "train", "--seed", 7)
        samples = [[int(word) for word in line.split()[1:]] for line in order.splitlines()][:LAST * BATCH]
        model = ["--num-layers", 3, "--hidden-size", 48, "--num-attention-heads", 4, "--max-position-embeddings", POSITIONS,
                 "--hidden-dropout", 0, "--attention-dropout", 0, "--micro-batch-size", 3, "--global-batch-size", BATCH,
                 "--seed", 7, "--weight-decay", 0.1, "--adam-beta2", 0.95, "--log-interval", 1, "--no-progress",
                 "--init-method-std", 0.08, *data, *with_tokenizer]
        for number, case in enumerate(CASES):
            save = at(f"run{number}")
            run(program, "train", *model, "--train-iters", LAST, "--save", save, "--save-interval", SAVED, "--lr", case["lr"],
                "--lr-decay-style", "cosine", "--lr-warmup-iters", 3, "--clip-grad", case["clip"], "--device", case["device"],
                "--num-threads", 2, *case["flags"])
            compare_logits(case, program, save, [line[:SEQUENCE] for line in samples[:5]], eod)
            compare_training(case, save, samples, eod)
        run(program, "train", *model, "--train-iters", 150, "--save", at("longer"), "--lr", 3e-3, "--num-threads", 2)
        compare_generation(program, at("longer"), tokenizer, eod)
    print(f"{len(failures)} failures; torch {torch.__version__}, transformers {transformers.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
