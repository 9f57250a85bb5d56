import paddle
from paddle import nn


class Encoder(nn.Layer):
    def __init__(self, dim=128):
        super().__init__()
        trunk = paddle.vision.models.resnet34(num_classes=0)
        self.trunk = trunk
        self.proj = nn.Linear(512, dim)

    def forward(self, x):
        x = self.trunk(x).flatten(1)
        return nn.functional.normalize(self.proj(x), axis=1)


enc = Encoder()
opt = paddle.optimizer.Lamb(0.002, parameters=enc.parameters())
triplet = nn.TripletMarginLoss(margin=0.3)
for _ in range(5):
    a, p, n = (paddle.rand([16, 3, 112, 112]) for _ in range(3))
    loss = triplet(enc(a), enc(p), enc(n))
    loss.backward()
    opt.step()
    opt.clear_grad()
