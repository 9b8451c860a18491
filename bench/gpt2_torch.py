"""GPT-2 in PyTorch, the peer of `megalith train`: prints milliseconds of each step, then the most memory it held.

The same model and work as ours: biases, GELU by its tanh approximation, tied output layer, no dropout, vocabulary rows
padded to a multiple of 128; forward, backward, clipping by the global norm, AdamW. As fast as PyTorch does it: attention
by scaled_dot_product_attention, fused AdamW, and torch.compile or bfloat16 where asked for. Prints lines

    version 2.15.0
    step_ms 5123.4     one for each step; the first pays for first touches of memory, and for compiling
    peak_mib 5308.0    VmHWM of the process

    python bench/gpt2_torch.py --micro-batch-size 4 --seq-length 256 --steps 4 --compile
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.input_norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.proj = nn.Linear(hidden, hidden)
        self.mlp_norm = nn.LayerNorm(hidden)
        self.fc1 = nn.Linear(hidden, 4 * hidden)
        self.fc2 = nn.Linear(4 * hidden, hidden)

    def attention(self, x):
        batch, length, hidden = x.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                             for part in self.qkv(x).split(hidden, dim=2))
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.proj(out.transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        x = x + self.attention(self.input_norm(x))
        return x + self.fc2(functional.gelu(self.fc1(self.mlp_norm(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, positions):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[:tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def peak_mib():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-layers", type=int, default=12)
    parser.add_argument("--hidden-size", type=int, default=768)
    parser.add_argument("--num-attention-heads", type=int, default=12)
    parser.add_argument("--vocab-size", type=int, default=50257)
    parser.add_argument("--micro-batch-size", type=int, default=4)
    parser.add_argument("--seq-length", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0, help="stop after this many, once two steps are done")
    parser.add_argument("--num-threads", type=int, default=0)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--evaluate", action="store_true", help="forward only")
    arguments = parser.parse_args()
    if arguments.num_threads:
        torch.set_num_threads(arguments.num_threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    rows = -(-arguments.vocab_size // 128) * 128
    model = Gpt2(arguments.num_layers, arguments.hidden_size, arguments.num_attention_heads, rows,
                 max(1024, arguments.seq_length))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loss_of = torch.compile(model) if arguments.compile else model
    print(f"version {torch.__version__}", flush=True)

    def step(tokens):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.bf16):
            if arguments.evaluate:
                with torch.no_grad():
                    return loss_of(tokens[:, :-1], tokens[:, 1:])
            loss = loss_of(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    started = time.perf_counter()
    for number in range(arguments.steps):
        tokens = torch.randint(arguments.vocab_size, (arguments.micro_batch_size, arguments.seq_length + 1))
        begin = time.perf_counter()
        step(tokens).item()
        print(f"step_ms {1e3 * (time.perf_counter() - begin):.1f}", flush=True)
        if arguments.seconds and number > 0 and time.perf_counter() - started > arguments.seconds:
            break
    print(f"peak_mib {peak_mib():.1f}", flush=True)


if __name__ == "__main__":
    main()
