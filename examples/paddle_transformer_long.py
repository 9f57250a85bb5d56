"""A text classifier on long documents (1024 tokens): nn.TransformerEncoder in PaddlePaddle, AdamW."""

import numpy as np
import paddle
from paddle import nn
from paddle.io import DataLoader, Dataset

VOCABULARY, CLASSES = 30522, 14
SEQUENCE, HIDDEN, HEADS, LAYERS = 1024, 768, 12, 12
BATCH = 16


class Documents(Dataset):
    """Tokenised documents, padded to one length."""

    def __init__(self, count=20000):
        super().__init__()
        self.count = count

    def __getitem__(self, index):
        tokens = np.random.randint(0, VOCABULARY, (SEQUENCE,)).astype("int64")
        return tokens, np.int64(index % CLASSES)

    def __len__(self):
        return self.count


class Classifier(nn.Layer):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.positions = nn.Embedding(SEQUENCE, HIDDEN)
        layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, 4 * HIDDEN, dropout=0.1, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, ids):
        positions = paddle.arange(ids.shape[1]).unsqueeze(0)
        hidden = self.tokens(ids) + self.positions(positions)
        return self.head(self.encoder(hidden).mean(axis=1))


model = Classifier()
loader = DataLoader(Documents(), batch_size=BATCH, shuffle=True, num_workers=2)
optimizer = paddle.optimizer.AdamW(
    2e-5, parameters=model.parameters(), weight_decay=0.01, grad_clip=nn.ClipGradByGlobalNorm(1.0)
)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(3):
    for ids, labels in loader:
        loss = loss_fn(model(ids), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
