import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Seqs(Dataset):
    def __init__(self, n=640, vocab=3000, length=80):
        self.items = [torch.randint(1, vocab, (length,)) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return {'tokens': self.items[i], 'label': i % 4}


def collate(batch):
    tokens = pad_sequence([b['tokens'] for b in batch], batch_first=True, padding_value=0)
    lengths = torch.tensor([len(b['tokens']) for b in batch])
    labels = torch.tensor([b['label'] for b in batch], dtype=torch.long)
    return tokens, lengths, labels


class GRUClassifier(nn.Module):
    def __init__(self, vocab=3000, dim=128, hidden=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.attn = nn.Linear(2 * hidden, 1)
        self.fc = nn.Linear(2 * hidden, 4)

    def forward(self, x):
        out, _ = self.gru(self.emb(x))
        w = torch.softmax(self.attn(out), dim=1)
        return self.fc((w * out).sum(dim=1))


loader = DataLoader(Seqs(), batch_size=20, shuffle=True, collate_fn=collate)
model = GRUClassifier()
if torch.cuda.is_available():
    model.cuda()
opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
for epoch in range(4):
    for tokens, lengths, labels in loader:
        if torch.cuda.is_available():
            tokens, labels = tokens.cuda(), labels.cuda()
        loss = nn.CrossEntropyLoss()(model(tokens), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
