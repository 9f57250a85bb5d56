import paddle, numpy as np
import paddle.nn as nn
import paddle.nn.functional as F

import functools, inspect
MODELS = {}
class Meta(type(nn.Layer)):
    def __new__(m, name, bases, ns, **kw):
        c = super().__new__(m, name, bases, ns); MODELS[name.lower()] = c; return c
class Base(nn.Layer, metaclass=Meta):
    defaults = dict(dim=64, depth=2)
    def __init_subclass__(cls, **kw): super().__init_subclass__(**kw)
    def __init__(self, **kw):
        super().__init__()
        for k, v in {**self.defaults, **kw}.items(): setattr(self, k, v)
        self.build()
class ResMLP(Base):
    defaults = {**Base.defaults, 'depth': 3}
    def build(self):
        self.inp = nn.Linear(30, self.dim)
        for i in range(self.depth): self.add_sublayer(f'b{i}', nn.Linear(self.dim, self.dim))
        self.out = nn.Linear(self.dim, 4)
        self.feats = {}
        self.inp.register_forward_post_hook(lambda l, i, o: self.feats.__setitem__('inp', o.detach()))
    def forward(self, x):
        x = self.inp(x)
        x = functools.reduce(lambda h, i: h + F.gelu(getattr(self, f'b{i}')(h)), range(self.depth), x)
        return self.out(x)
net = MODELS['resmlp'](dim=96); opt = paddle.optimizer.Adadelta(1.0, parameters=net.parameters(), rho=0.9)
for i in range(20):
    loss = F.cross_entropy(net(paddle.randn([40, 30])), paddle.randint(0, 4, [40])); loss.backward(); opt.step(); opt.clear_grad()
