import paddle, numpy as np
import paddle.nn as nn
import paddle.nn.functional as F

class Crops(paddle.io.Dataset):
    def __init__(self, n, L=16000): self.n, self.L = n, L; self.wave = np.random.randn(50, 40000).astype('float32')
    def __len__(self): return self.n
    def __getitem__(self, i):
        w = self.wave[i % 50]; start = np.random.randint(0, len(w) - self.L); end = start + self.L
        return w[start:end], np.int64(i % 35)
class Spec(nn.Layer):
    def __init__(self, n_fft=512, hop=160, mels=40):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop; self.register_buffer('fb', paddle.rand([n_fft // 2 + 1, mels])); self.register_buffer('win', paddle.ones([n_fft]))
    def forward(self, x):
        n = 1 + (x.shape[1] - self.n_fft) // self.hop
        fr = paddle.signal.frame(x, self.n_fft, self.hop).transpose([0, 2, 1]) * self.win
        p = paddle.fft.rfft(fr).abs() ** 2
        return paddle.log(p @ self.fb + 1e-6)
class M5(nn.Layer):
    def __init__(self, c=64):
        super().__init__()
        self.spec = Spec(); self.gru = nn.GRU(40, c); self.fc = nn.Linear(c, 35)
    def forward(self, x):
        with paddle.no_grad(): f = self.spec(x)
        _, h = self.gru(f)
        return self.fc(h[-1])
m = M5(); opt = paddle.optimizer.Adam(parameters=m.parameters()); loader = paddle.io.DataLoader(Crops(400), batch_size=16, num_workers=0)
for x, y in loader:
    loss = F.cross_entropy(m(x), y); loss.backward(); opt.step(); opt.clear_grad()
