from paddle import nn

__all__ = ['build_model']


class Block(nn.Layer):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.dw = nn.Sequential(
            ('conv', nn.Conv2D(cin, cin, 3, stride, 1, groups=cin, bias_attr=False)), ('bn', nn.BatchNorm2D(cin)), ('act', nn.Hardswish()))
        self.pw = nn.Sequential(('conv', nn.Conv2D(cin, cout, 1, bias_attr=False)), ('bn', nn.BatchNorm2D(cout)), ('act', nn.Hardswish()))

    def forward(self, x):
        return self.pw(self.dw(x))


class LiteNet(nn.Layer):
    def __init__(self, channels, class_num, dropout=0.0):
        super().__init__()
        self.stem = nn.Conv2D(3, channels[0], 3, 2, 1)
        self.blocks = nn.Sequential(*[Block(i, o, 2) for i, o in zip(channels[:-1], channels[1:])])
        self.pool = nn.AdaptiveAvgPool2D(1)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(channels[-1], class_num)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x))).flatten(1)
        return self.fc(self.drop(x))


MODELS = {'LiteNet': LiteNet}


def build_model(config):
    config = dict(config)
    name = config.pop('name')
    return MODELS[name](**config)
