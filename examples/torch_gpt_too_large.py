"""A 13-billion-parameter language model trained in float32 with Adam: no card of the demo's fleet holds it."""

import torch
from torch import nn

VOCABULARY, SEQUENCE, HIDDEN, HEADS, LAYERS = 50257, 2048, 5120, 40, 40
BATCH = 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(HIDDEN)
        self.attention = nn.MultiheadAttention(HIDDEN, HEADS, batch_first=True)
        self.norm2 = nn.LayerNorm(HIDDEN)
        self.mlp = nn.Sequential(nn.Linear(HIDDEN, 4 * HIDDEN), nn.GELU(), nn.Linear(4 * HIDDEN, HIDDEN))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.positions = nn.Embedding(SEQUENCE, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


model = GPT().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(10000):
    ids = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE), device="cuda")
    logits = model(ids)
    loss = nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
