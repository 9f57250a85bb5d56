"""Work over several processes: what one of them holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.engine.trace import Alloc, Trace
from oarlock_profiler.core.reading import Reading

BYTES = 4 * (1024 * 1024 + 1024) * 4
LOOP = """
for _ in range(4):
    loss = model(torch.randn(8, 1024).cuda()).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
NET = "import torch\nmodel = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()\n"


def test_ddp_holds_buckets_of_all_gradients(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        NET
        + "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)\n"
        + "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        + LOOP,
        world_size=2,
    )
    buckets = [e.nbytes for e in reading.trace.events if isinstance(e, Alloc) and e.op == "ddp_bucket"]
    assert sum(buckets) == BYTES
    assert reading.distributed.strategy == "ddp"
    assert reading.distributed.devices == 2
    assert "distributed" in reading.flags


@pytest.mark.parametrize(("stage", "weights", "gradients"), [(1, 1, 1), (2, 1, 4), (3, 4, 4)])
def test_zero_stages(
    read_script: Callable[..., Reading],
    live_bytes: Callable[[Trace, str], int],
    stage: int,
    weights: int,
    gradients: int,
) -> None:
    text = f"""
import deepspeed
config = {{"zero_optimization": {{"stage": {stage}}}, "optimizer": {{"type": "Adam", "params": {{"lr": 1e-3}}}}}}
engine, optimizer, _, _ = deepspeed.initialize(model=model, config=config)
for _ in range(4):
    loss = engine(torch.randn(8, 1024).cuda()).mean()
    engine.backward(loss)
    if _ == 3: break
    engine.step()
    loss = engine(torch.randn(8, 1024).cuda()).mean()
    engine.backward(loss)
"""
    reading = read_script(NET + text, world_size=4)
    assert reading.distributed.strategy == f"zero{stage}"
    assert live_bytes(reading.trace, "parameter") == BYTES // weights
    assert live_bytes(reading.trace, "gradient") == BYTES // gradients
    assert live_bytes(reading.trace, "optimizer") == 2 * BYTES // 4


def test_fsdp_holds_a_share_of_everything(
    read_script: Callable[..., Reading], live_bytes: Callable[[Trace, str], int]
) -> None:
    reading = read_script(
        NET
        + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = FSDP(model)\n"
        + "optimizer = torch.optim.AdamW(model.parameters())\n"
        + LOOP,
        world_size=4,
    )
    assert reading.parameters_total == BYTES // 4
    assert live_bytes(reading.trace, "parameter") == BYTES // 4
    assert live_bytes(reading.trace, "optimizer") == 2 * BYTES // 4


def test_fleet_degrees_shape_the_layers(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        """
        import paddle
        from paddle.distributed import fleet
        from paddle.distributed.fleet.meta_parallel import ColumnParallelLinear, RowParallelLinear
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {'dp_degree': 2, 'mp_degree': 4, 'pp_degree': 1}
        fleet.init(is_collective=True, strategy=strategy)
        hcg = fleet.get_hybrid_communicate_group()
        assert hcg.get_model_parallel_world_size() == 4
        net = paddle.nn.Sequential(ColumnParallelLinear(64, 256, has_bias=True, gather_output=False),
                                   RowParallelLinear(256, 64, input_is_parallel=True))
        optimizer = fleet.distributed_optimizer(paddle.optimizer.AdamW(parameters=net.parameters()))
        net = fleet.distributed_model(net)
        for _ in range(4):
            loss = net(paddle.randn([2, 64])).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        """
    )
    assert reading.parameters_total == 64 * 64 + 64 + 64 * 64 + 64
    assert reading.distributed.strategy == "hybrid"
    assert reading.distributed.devices == 8
    assert not reading.findings.gaps
