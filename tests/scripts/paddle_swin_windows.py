import paddle, numpy as np
import paddle.nn as nn
import paddle.nn.functional as F

def window(x, w):
    B, H, W, C = x.shape
    return x.reshape([B, H // w, w, W // w, w, C]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, w, w, C])
def unwindow(x, w, H, W):
    B = int(x.shape[0] / (H * W / w / w))
    return x.reshape([B, H // w, W // w, w, w, -1]).transpose([0, 1, 3, 2, 4, 5]).reshape([B, H, W, -1])
class WinAttn(nn.Layer):
    def __init__(self, d, w, h):
        super().__init__()
        self.h, self.w = h, w; self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.table = self.create_parameter([(2 * w - 1) ** 2, h]); self.add_parameter('table', self.table)
        c = paddle.stack(paddle.meshgrid([paddle.arange(w), paddle.arange(w)])).flatten(1); rel = (c.unsqueeze(-1) - c.unsqueeze(1)).transpose([1, 2, 0]) + (w - 1)
        self.register_buffer('idx', rel[:, :, 0] * (2 * w - 1) + rel[:, :, 1])
    def forward(self, x, mask=None):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape([B, N, 3, self.h, C // self.h]).transpose([2, 0, 3, 1, 4]).unbind(0)
        a = (q * (C // self.h) ** -0.5) @ k.transpose([0, 1, 3, 2])
        bias = paddle.index_select(self.table, self.idx.flatten(), axis=0).reshape([N, N, -1]).transpose([2, 0, 1])
        a = a + bias.unsqueeze(0)
        if mask is not None:
            nW = mask.shape[0]; a = a.reshape([-1, nW, self.h, N, N]) + mask.unsqueeze(1).unsqueeze(0); a = a.reshape([-1, self.h, N, N])
        return self.proj((F.softmax(a, -1) @ v).transpose([0, 2, 1, 3]).reshape([B, N, C]))
class Blk(nn.Layer):
    def __init__(self, d, res, h, w=4, shift=0):
        super().__init__()
        self.n1, self.n2, self.attn, self.w, self.shift, self.res = nn.LayerNorm(d), nn.LayerNorm(d), WinAttn(d, w, h), w, shift, res
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)); mask = None
        if shift:
            img = np.zeros((1, res, res, 1), 'float32'); cnt = 0
            for hs in (slice(0, -w), slice(-w, -shift), slice(-shift, None)):
                for ws in (slice(0, -w), slice(-w, -shift), slice(-shift, None)): img[:, hs, ws, :] = cnt; cnt += 1
            mw = window(paddle.to_tensor(img), w).reshape([-1, w * w]); m = mw.unsqueeze(1) - mw.unsqueeze(2)
            mask = paddle.where(m != 0, paddle.full_like(m, -100.), paddle.zeros_like(m))
        self.register_buffer('mask', mask)
    def forward(self, x):
        B, L, C = x.shape; H = self.res; y = self.n1(x).reshape([B, H, H, C])
        if self.shift: y = paddle.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.attn(window(y, self.w).reshape([-1, self.w * self.w, C]), self.mask); y = unwindow(y.reshape([-1, self.w, self.w, C]), self.w, H, H)
        if self.shift: y = paddle.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y.reshape([B, L, C])
        return x + self.mlp(self.n2(x))
class Swin(nn.Layer):
    def __init__(self, d=48, res=16):
        super().__init__()
        self.pe = nn.Conv2D(3, d, 4, 4); self.b = nn.Sequential(*[Blk(d, res, 3, shift=0 if i % 2 == 0 else 2) for i in range(2)])
        self.red = nn.Linear(4 * d, 2 * d, bias_attr=False); self.head = nn.Linear(2 * d, 10)
    def forward(self, x):
        x = self.pe(x); B, C, H, W = x.shape; x = self.b(x.flatten(2).transpose([0, 2, 1])).reshape([B, H, W, C])
        x = paddle.concat([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], -1)
        return self.head(self.red(x).mean([1, 2]))
net = Swin(); opt = paddle.optimizer.AdamW(parameters=net.parameters(), learning_rate=1e-3)
for i in range(10):
    loss = F.cross_entropy(net(paddle.rand([8, 3, 64, 64])), paddle.randint(0, 10, [8])); loss.backward(); opt.step(); opt.clear_grad()
