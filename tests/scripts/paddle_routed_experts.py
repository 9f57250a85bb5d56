import paddle
import paddle.nn as nn
import paddle.nn.functional as F
import math


class Expert(nn.Layer):
    def __init__(self, d, h):
        super().__init__()
        self.w1, self.w2 = nn.Linear(d, h), nn.Linear(h, d)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)))


class MoE(nn.Layer):
    """top-2 routed experts with a load-balancing loss"""

    def __init__(self, d, h, n=8, k=2):
        super().__init__()
        self.n, self.k = n, k
        self.gate = nn.Linear(d, n, bias_attr=False)
        self.experts = nn.LayerList([Expert(d, h) for _ in range(n)])
        self.aux = 0.0

    def forward(self, x):
        shape = x.shape
        x = x.reshape([-1, shape[-1]])
        probs = F.softmax(self.gate(x), axis=-1)
        w, idx = paddle.topk(probs, self.k, axis=-1)
        w = w / w.sum(-1, keepdim=True)
        out = paddle.zeros_like(x)
        for e in range(self.n):
            hit = paddle.nonzero(idx == e)
            if hit.shape[0] == 0:
                continue
            rows, slot = hit[:, 0], hit[:, 1]
            y = self.experts[e](paddle.gather(x, rows))
            y = y * w[rows, slot].unsqueeze(-1)
            out = paddle.scatter_nd_add(out, rows.unsqueeze(-1), y)
        frac = F.one_hot(idx[:, 0], self.n).mean(0)
        self.aux = (frac * probs.mean(0)).sum() * self.n
        return out.reshape(shape)


class Block(nn.Layer):
    def __init__(self, d, heads, moe):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiHeadAttention(d, heads, dropout=0.0)
        self.ff = MoE(d, 4 * d) if moe else Expert(d, 4 * d)

    def forward(self, x, mask):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, mask)
        return x + self.ff(self.ln2(x))


class LM(nn.Layer):
    def __init__(self, vocab=8000, d=256, layers=4, heads=4, ctx=128):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.LayerList([Block(d, heads, moe=i % 2 == 1) for i in range(layers)])
        self.ln = nn.LayerNorm(d)
        self.ctx = ctx

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tok(ids) + self.pos(paddle.arange(n))
        mask = paddle.tensor.triu(paddle.full([n, n], float("-inf")), 1)
        aux = 0
        for b in self.blocks:
            x = b(x, mask)
            if isinstance(b.ff, MoE):
                aux = aux + b.ff.aux
        return paddle.matmul(self.ln(x), self.tok.weight, transpose_y=True), aux


def get_batch(bs=32, n=128, vocab=8000):
    t = paddle.randint(0, vocab, [bs, n + 1])
    return t[:, :-1], t[:, 1:]


model = LM()
optimizer = paddle.optimizer.AdamW(learning_rate=3e-4, parameters=model.parameters())
for step in range(5000):
    x, y = get_batch()
    logits, aux = model(x)
    loss = F.cross_entropy(logits.reshape([-1, 8000]), y.reshape([-1])) + 0.01 * aux
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    if step % 50 == 0:
        print(step, loss.item())
