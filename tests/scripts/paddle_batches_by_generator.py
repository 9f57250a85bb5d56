import paddle, numpy as np
import paddle.nn as nn
import paddle.nn.functional as F

import random
def load(n): return [([random.randint(1, 999) for _ in range(12)], random.randint(0, 4)) for _ in range(n)]
def batch_reader(rows, bs):
    def reader():
        random.shuffle(rows); xs, ys = [], []
        for x, y in rows:
            xs.append(x); ys.append(y)
            if len(xs) == bs:
                yield np.array(xs, dtype='int64'), np.array(ys, dtype='int64'); xs, ys = [], []
        if len(xs) > 0: yield np.array(xs, dtype='int64'), np.array(ys, dtype='int64')
    return reader
class TextCNN(nn.Layer):
    def __init__(self, V=1000, d=64, ks=(2, 3, 4), n=32, C=5):
        super().__init__()
        self.emb = nn.Embedding(V, d); self.convs = nn.LayerList([nn.Conv2D(1, n, (k, d)) for k in ks]); self.fc = nn.Linear(n * len(ks), C); self.dp = nn.Dropout(.5)
    def forward(self, x):
        e = self.emb(x).unsqueeze(1)
        hs = [F.relu(c(e)).squeeze(3) for c in self.convs]
        return self.fc(self.dp(paddle.concat([F.max_pool1d(h, h.shape[2]).squeeze(2) for h in hs], 1)))
net = TextCNN(); opt = paddle.optimizer.Adagrad(0.01, parameters=net.parameters())
reader = batch_reader(load(330), 64)
for e in range(3):
    for x, y in reader():
        loss = F.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(y)); loss.backward(); opt.step(); opt.clear_grad()
