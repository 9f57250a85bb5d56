import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.distributed.fleet.utils import recompute


class Attention(nn.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, s, d = x.shape
        qkv = self.qkv(x).reshape([b, s, 3, self.heads, self.hd]).transpose([2, 0, 3, 1, 4])
        q, k, v = qkv[0], qkv[1], qkv[2]
        att = paddle.matmul(q, k, transpose_y=True) * (self.hd ** -0.5)
        mask = paddle.tensor.triu(paddle.full([s, s], -1e4), 1)
        att = F.softmax(att + mask, axis=-1)
        out = paddle.matmul(att, v).transpose([0, 2, 1, 3]).reshape([b, s, d])
        return self.proj(out)


class Block(nn.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Layer):
    def __init__(self, vocab=8000, dim=384, depth=6, heads=6, ctx=256, use_recompute=True):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(ctx, dim)
        self.blocks = nn.LayerList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias_attr=False)
        self.use_recompute = use_recompute

    def forward(self, ids):
        x = self.tok(ids) + self.pos(paddle.arange(ids.shape[1]))
        for blk in self.blocks:
            x = recompute(blk, x) if self.use_recompute and self.training else blk(x)
        return self.head(self.norm(x))


model = GPT()
opt = paddle.optimizer.AdamW(3e-4, parameters=model.parameters(), weight_decay=0.1)
for it in range(10):
    ids = paddle.randint(0, 8000, [12, 257])
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.reshape([-1, 8000]), ids[:, 1:].reshape([-1]))
    loss.backward()
    opt.step()
    opt.clear_grad()
