import paddle
import paddle.nn as nn


class PatchEmbedding(nn.Layer):
    def __init__(self, image_size=224, patch_size=16, in_channels=3, embed_dim=384, dropout=0.):
        super().__init__()
        n = (image_size // patch_size) ** 2
        self.patch = nn.Conv2D(in_channels, embed_dim, patch_size, patch_size)
        self.class_token = paddle.create_parameter([1, 1, embed_dim], 'float32', default_initializer=nn.initializer.Constant(0.))
        self.pos = self.create_parameter([1, n + 1, embed_dim], default_initializer=nn.initializer.TruncatedNormal(std=.02))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        cls = self.class_token.expand((x.shape[0], -1, -1))
        x = self.patch(x).flatten(2).transpose([0, 2, 1])
        return self.drop(paddle.concat([cls, x], axis=1) + self.pos)


class Mlp(nn.Layer):
    def __init__(self, dim, ratio=4.0):
        super().__init__()
        self.fc1, self.fc2, self.act = nn.Linear(dim, int(dim * ratio)), nn.Linear(int(dim * ratio), dim), nn.GELU()

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class EncoderLayer(nn.Layer):
    def __init__(self, dim=384, heads=6):
        super().__init__()
        self.attn_norm, self.mlp_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiHeadAttention(dim, heads)
        self.mlp = Mlp(dim)

    def forward(self, x):
        h = x
        x = self.attn_norm(x)
        x = self.attn(x, x, x) + h
        return x + self.mlp(self.mlp_norm(x))


class ViT(nn.Layer):
    def __init__(self, depth=12, dim=384, classes=1000):
        super().__init__()
        self.embed = PatchEmbedding(embed_dim=dim)
        self.blocks = nn.LayerList([EncoderLayer(dim) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.embed(x)
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x)[:, 0])


vit = ViT()
opt = paddle.optimizer.AdamW(learning_rate=paddle.optimizer.lr.LinearWarmup(1e-3, 100, 0., 1e-3), parameters=vit.parameters(), weight_decay=0.05)
for step in range(20):
    img, lab = paddle.randn([32, 3, 224, 224]), paddle.randint(0, 1000, [32])
    loss = nn.functional.cross_entropy(vit(img), lab)
    loss.backward()
    opt.step()
    opt.clear_grad()
