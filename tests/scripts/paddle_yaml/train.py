import argparse
import os

import paddle
import yaml

from network import build_model


def load(path):
    with open(path, 'r', encoding='utf-8') as f:
        return yaml.safe_load(f)


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('-c', '--config', default=os.path.join(os.path.dirname(__file__), 'config.yml'))
    args = ap.parse_args()
    cfg = load(args.config)
    model = build_model(cfg['Architecture'])
    opt_cfg = cfg['Optimizer']
    opt_name = opt_cfg.pop('name')
    opt = getattr(paddle.optimizer, opt_name)(parameters=model.parameters(), **opt_cfg)
    bs, size = cfg['Train']['batch_size'], cfg['Global']['image_shape']
    for epoch in range(cfg['Global']['epochs']):
        for it in range(cfg['Train']['iters']):
            x = paddle.rand([bs] + size)
            y = paddle.randint(0, cfg['Architecture']['class_num'], [bs, 1])
            loss = paddle.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
