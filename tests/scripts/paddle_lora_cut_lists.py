import math
import json
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.io import Dataset, DataLoader
import numpy as np


class LoRALinear(nn.Layer):
    def __init__(self, base: nn.Linear, r=8, alpha=16, p=0.05):
        super().__init__()
        self.base = base
        for q in base.parameters():
            q.stop_gradient = True
        i, o = base.weight.shape
        self.A = self.create_parameter([i, r], default_initializer=nn.initializer.KaimingUniform())
        self.B = self.create_parameter([r, o], default_initializer=nn.initializer.Constant(0.0))
        self.scale = alpha / r
        self.drop = nn.Dropout(p)

    def forward(self, x):
        return self.base(x) + (self.drop(x) @ self.A @ self.B) * self.scale


def inject(model, targets, r):
    for name, sub in list(model.named_sublayers()):
        for child_name, child in list(sub.named_children()):
            if isinstance(child, nn.Linear) and child_name in targets:
                setattr(sub, child_name, LoRALinear(child, r))
    return model


class Classifier(nn.Layer):
    def __init__(self, vocab=21128, d=512, layers=6, heads=8, ffn=2048, n_cls=6):
        super().__init__()
        self.word = nn.Embedding(vocab, d, padding_idx=0)
        self.pos = nn.Embedding(512, d)
        layer = nn.TransformerEncoderLayer(d, heads, ffn, dropout=0.1, activation="gelu", normalize_before=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(d, n_cls)

    def forward(self, ids, mask):
        pos = paddle.arange(ids.shape[1]).unsqueeze(0)
        x = self.word(ids) + self.pos(pos)
        m = (1 - mask.astype("float32")).unsqueeze([1, 2]) * -1e4
        x = self.encoder(x, m)
        return self.head(x[:, 0])


class Jsonl(Dataset):
    def __init__(self, path, max_len=128):
        self.items = [json.loads(l) for l in open(path, encoding="utf-8")]
        self.max_len = max_len

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        it = self.items[i]
        ids = it["ids"][: self.max_len]
        n = len(ids)
        ids = ids + [0] * (self.max_len - n)
        return np.array(ids, "int64"), np.array([1] * n + [0] * (self.max_len - n), "int64"), it["label"]


base = Classifier()
for p in base.parameters():
    p.stop_gradient = True
model = inject(base, {"q_proj", "v_proj"}, r=8)
for p in model.head.parameters():
    p.stop_gradient = False
trainable = [p for p in model.parameters() if not p.stop_gradient]
print("trainable:", sum(p.size for p in trainable), "/", sum(p.size for p in model.parameters()))
loader = DataLoader(Jsonl("train.jsonl"), batch_size=16, shuffle=True, drop_last=True)
opt = paddle.optimizer.AdamW(5e-4, parameters=trainable)
for epoch in range(3):
    for ids, mask, y in loader:
        loss = F.cross_entropy(model(ids, mask), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
