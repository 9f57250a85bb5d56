"""A transformer encoder over 1024 tokens."""
import math

import paddle
from paddle import nn


class PositionalEncoding(nn.Layer):
    def __init__(self, d_model, max_len=2048):
        super().__init__()
        pe = paddle.zeros([max_len, d_model])
        position = paddle.arange(0, max_len, dtype='float32').unsqueeze(1)
        div = paddle.exp(paddle.arange(0, d_model, 2, dtype='float32') * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = paddle.sin(position * div)
        pe[:, 1::2] = paddle.cos(position * div)
        self.register_buffer('pe', pe.unsqueeze(0))

    def forward(self, x):
        return x + self.pe[:, :x.shape[1]]


class Classifier(nn.Layer):
    def __init__(self, vocab=10000, d_model=512, heads=8, layers=6, classes=5):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.pos = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, heads, 4 * d_model, dropout=0.1, activation='gelu')
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.fc = nn.Linear(d_model, classes)

    def forward(self, ids):
        x = self.encoder(self.pos(self.embed(ids)))
        return self.fc(x.mean(axis=1))


model = Classifier()
clip = nn.ClipGradByGlobalNorm(1.0)
opt = paddle.optimizer.AdamW(1e-4, parameters=model.parameters(), grad_clip=clip)
loss_fn = nn.CrossEntropyLoss()
for step in range(1000):
    ids = paddle.randint(0, 10000, [8, 1024])
    labels = paddle.randint(0, 5, [8])
    loss = loss_fn(model(ids), labels)
    loss.backward()
    opt.step()
    opt.clear_grad()
