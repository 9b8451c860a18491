"""One GPT-2 124M training step in PyTorch: the peer of `megalith train`. Prints milliseconds of each step.

The same work as ours: float32, forward, backward, clipping by the global norm, AdamW. Attention as PyTorch offers it:
scaled_dot_product_attention where it exists (2.0 and later), else matrix products with a stored score matrix.

    python3 bench/gpt2_step_torch.py --micro-batch-size 4 --seq-length 256 --steps 4
"""
import argparse
import math
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
        if hasattr(functional, "scaled_dot_product_attention"):
            out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(2, 3) / math.sqrt(query.size(-1))
            mask = torch.triu(torch.full((length, length), -math.inf), 1)
            out = torch.softmax(scores + mask, -1) @ value
        return self.proj(out.transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        x = x + self.attention(self.input_norm(x))
        return x + self.fc2(functional.gelu(self.fc1(self.mlp_norm(x))))


class Gpt2(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, positions):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro-batch-size", type=int, default=4)
    parser.add_argument("--seq-length", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = Gpt2(12, 768, 12, 50304, 1024)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
    for _ in range(arguments.steps):
        tokens = torch.randint(50257, (arguments.micro_batch_size, arguments.seq_length + 1))
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"step_ms {1e3 * (time.perf_counter() - begin):.1f}", flush=True)


if __name__ == "__main__":
    main()
