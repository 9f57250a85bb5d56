import paddle
import paddle.nn as nn

vocab_size, emb_size, hidden, seq_len = 5149, 256, 256, 200


class MyRNN(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)
        self.rnn = nn.LSTM(emb_size, hidden, num_layers=2, direction='bidirectional', dropout=0.5)
        self.linear = nn.Linear(hidden * 2, 2)
        self.dropout = nn.Dropout(0.5)

    def forward(self, inputs):
        emb = self.dropout(self.embedding(inputs))
        output, (h, c) = self.rnn(emb)
        x = paddle.concat([h[-2], h[-1]], axis=1)
        return self.linear(self.dropout(x))


class IMDB(paddle.io.Dataset):
    def __init__(self, sents, labels):
        self.sents, self.labels = sents, labels

    def __getitem__(self, i):
        return self.sents[i], self.labels[i]

    def __len__(self):
        return len(self.sents)


sents = paddle.randint(0, vocab_size, [1000, seq_len])
labels = paddle.randint(0, 2, [1000, 1])
loader = paddle.io.DataLoader(IMDB(sents, labels), batch_size=32, shuffle=True)
model = MyRNN()
opt = paddle.optimizer.AdamW(learning_rate=0.002, weight_decay=0.01, parameters=model.parameters())
steps = 0
for epoch in range(2):
    model.train()
    for batch_id, (sent, label) in enumerate(loader):
        logits = model(sent)
        loss = nn.functional.cross_entropy(logits, label)
        loss.backward()
        opt.step()
        opt.clear_gradients()
        steps += 1
