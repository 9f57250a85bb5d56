import argparse

import paddle
from paddle.vision import models

ARCH = {'mobilenet_v1': models.mobilenet_v1, 'mobilenet_v3': models.mobilenet_v3_small, 'alexnet': models.alexnet}


def parse_args():
    parser = argparse.ArgumentParser(description='train')
    parser.add_argument('--arch', choices=sorted(ARCH), default='mobilenet_v3')
    parser.add_argument('--bs', type=int, default=48)
    parser.add_argument('--optim', default='adam')
    parser.add_argument('--lr', type=float, default=1e-3)
    parser.add_argument('--use-amp', action='store_true')
    return parser.parse_args()


def build_optimizer(name, lr, params):
    if name == 'sgd':
        return paddle.optimizer.SGD(learning_rate=lr, parameters=params)
    elif name == 'adam':
        return paddle.optimizer.Adam(learning_rate=lr, parameters=params)
    raise ValueError(name)


def main():
    args = parse_args()
    net = ARCH[args.arch](num_classes=37)
    opt = build_optimizer(args.optim, args.lr, net.parameters())
    scaler = paddle.amp.GradScaler(enable=args.use_amp)
    for _ in range(10):
        x, y = paddle.rand((args.bs, 3, 224, 224)), paddle.randint(0, 37, (args.bs,))
        with paddle.amp.auto_cast(enable=args.use_amp):
            loss = paddle.nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.clear_grad()


main()
