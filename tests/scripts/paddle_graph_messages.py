import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

N, E, D, C = 2708, 10556, 1433, 7
rng = np.random.default_rng(0)
feat = paddle.to_tensor((rng.random((N, D)) < 0.01).astype("float32"))
src = paddle.to_tensor(rng.integers(0, N, E))
dst = paddle.to_tensor(rng.integers(0, N, E))
label = paddle.to_tensor(rng.integers(0, C, (N,)))
train_mask = paddle.to_tensor(np.arange(N) < 140)


class GCNConv(nn.Layer):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o, bias_attr=False)
        self.bias = self.create_parameter([o], is_bias=True)

    def forward(self, x, src, dst, norm):
        x = self.lin(x)
        msg = paddle.gather(x, src) * norm.unsqueeze(-1)
        out = paddle.zeros([x.shape[0], x.shape[1]], dtype=x.dtype)
        out = paddle.scatter(out, dst, msg, overwrite=False)
        return out + self.bias


class GAT(nn.Layer):
    def __init__(self, i, o, heads=4):
        super().__init__()
        self.h, self.o = heads, o
        self.w = nn.Linear(i, heads * o, bias_attr=False)
        self.al = self.create_parameter([1, heads, o])
        self.ar = self.create_parameter([1, heads, o])

    def forward(self, x, src, dst):
        z = self.w(x).reshape([-1, self.h, self.o])
        el, er = (z * self.al).sum(-1), (z * self.ar).sum(-1)
        e = F.leaky_relu(paddle.index_select(el, src) + paddle.index_select(er, dst), 0.2).exp()
        den = paddle.geometric.segment_sum(e, paddle.sort(dst)) if False else paddle.scatter_nd_add(paddle.zeros([x.shape[0], self.h]), dst.unsqueeze(-1), e)
        alpha = e / (paddle.gather(den, dst) + 1e-9)
        out = paddle.geometric.send_ue_recv(z.reshape([x.shape[0], -1]), alpha.unsqueeze(-1).expand([-1, -1, self.o]).reshape([E, -1]), src, dst, "mul", "sum")
        return F.elu(out)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.c1 = GCNConv(D, 64)
        self.g = GAT(64, 16)
        self.c2 = GCNConv(64, C)

    def forward(self, x, src, dst, norm):
        x = F.dropout(x, 0.5, training=self.training)
        x = F.relu(self.c1(x, src, dst, norm))
        x = self.g(x, src, dst)
        return self.c2(F.dropout(x, 0.5, training=self.training), src, dst, norm)


deg = paddle.zeros([N]).scatter_(dst, paddle.ones([E]), overwrite=False).clip(min=1)
norm = (deg[src] * deg[dst]) ** -0.5
model = Net()
optim = paddle.optimizer.Adam(0.01, parameters=model.parameters(), weight_decay=5e-4)
for epoch in range(200):
    model.train()
    logits = model(feat, src, dst, norm)
    loss = F.cross_entropy(logits[train_mask], label[train_mask])
    loss.backward()
    optim.step()
    optim.clear_grad()
    model.eval()
    with paddle.no_grad():
        acc = (model(feat, src, dst, norm).argmax(-1) == label).astype("float32")[~train_mask].mean()
    print(f"{epoch} {float(loss):.4f} {float(acc):.4f}")
