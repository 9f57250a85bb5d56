import paddle
from paddle import nn
from paddle.distributed import fleet
from paddle.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {'dp_degree': 1, 'mp_degree': 1, 'pp_degree': 2}
strategy.pipeline_configs = {'accumulate_steps': 4, 'micro_batch_size': 2}
fleet.init(is_collective=True, strategy=strategy)


class Pipe(PipelineLayer):
    def __init__(self, width=512, depth=8, **kwargs):
        decs = [LayerDesc(nn.Linear, 64, width)]
        for _ in range(depth - 2):
            decs.append(LayerDesc(nn.Linear, width, width))
        decs.append(LayerDesc(nn.Linear, width, 10))
        super().__init__(layers=decs, loss_fn=nn.CrossEntropyLoss(), **kwargs)


model = Pipe(num_stages=2, topology=None)
opt = paddle.optimizer.SGD(0.01, parameters=model.parameters())
model = fleet.distributed_model(model)
opt = fleet.distributed_optimizer(opt)
for i in range(4):
    loss = model.train_batch([paddle.rand([8, 64]), paddle.randint(0, 10, [8])], opt)
