import argparse
import importlib

import torch
import yaml


def instantiate(config):
    module, cls = config['target'].rsplit('.', 1)
    return getattr(importlib.import_module(module), cls)(**config.get('params', dict()))


parser = argparse.ArgumentParser()
parser.add_argument('--config', default='configs/base.yaml')
opt = parser.parse_args()
with open(opt.config) as f:
    cfg = yaml.load(f, Loader=yaml.FullLoader)
model = instantiate(cfg['model']).cuda()
optim = torch.optim.AdamW(model.parameters(), **cfg['optimizer'])
b = cfg['data']['batch_size']
for step in range(cfg['max_steps']):
    x = torch.randn(b, cfg['model']['params']['in_dim'], device='cuda')
    loss = model.loss(x)
    optim.zero_grad()
    loss.backward()
    optim.step()
