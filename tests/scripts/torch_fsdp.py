import functools

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy


def main():
    dist.init_process_group('nccl')
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True), 8)
    bf16 = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=100_000)
    model = FSDP(model, auto_wrap_policy=policy, mixed_precision=bf16, device_id=torch.cuda.current_device())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(10):
        opt.zero_grad()
        out = model(torch.randn(8, 256, 768, device='cuda'))
        out.pow(2).mean().backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
