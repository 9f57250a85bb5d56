import paddle
import paddle.nn as nn


class CRNN(nn.Layer):
    def __init__(self, n_class):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2D(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(64, 128, (8, 1)), nn.BatchNorm2D(128), nn.ReLU())
        self.rnn = nn.GRU(128, 96, direction='bidirect')
        self.fc = nn.Linear(192, n_class)

    def forward(self, x):
        x = self.cnn(x)
        x = paddle.squeeze(x, 2)
        x = paddle.transpose(x, [0, 2, 1])
        x, _ = self.rnn(x)
        return paddle.transpose(self.fc(x), [1, 0, 2])


net = CRNN(37)
opt = paddle.optimizer.Adadelta(learning_rate=1.0, parameters=net.parameters())
ctc = nn.CTCLoss(blank=36)
for i in range(10):
    img = paddle.rand([20, 1, 32, 128])
    label = paddle.randint(0, 36, [20, 6]).astype('int32')
    logits = net(img)
    input_len = paddle.full([20], logits.shape[0], dtype='int64')
    label_len = paddle.full([20], 6, dtype='int64')
    loss = ctc(logits, label, input_len, label_len)
    loss.backward()
    opt.step()
    opt.clear_grad()
