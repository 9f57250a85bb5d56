import paddle
from paddle import nn
from paddle.distributed import fleet
from paddle.distributed.fleet.meta_parallel import ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {'dp_degree': 1, 'mp_degree': 2, 'pp_degree': 1}
fleet.init(is_collective=True, strategy=strategy)


class ParallelMLP(nn.Layer):
    def __init__(self, vocab, hidden, inner):
        super().__init__()
        self.embedding = VocabParallelEmbedding(vocab, hidden)
        self.up = ColumnParallelLinear(hidden, inner, gather_output=False, has_bias=True)
        self.down = RowParallelLinear(inner, hidden, input_is_parallel=True, has_bias=True)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, ids):
        x = self.embedding(ids)
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


model = ParallelMLP(32000, 1024, 4096)
opt = paddle.optimizer.AdamW(parameters=model.parameters())
model = fleet.distributed_model(model)
opt = fleet.distributed_optimizer(opt)
for _ in range(5):
    out = model(paddle.randint(0, 32000, [4, 128]))
    loss = out.mean()
    loss.backward()
    opt.step()
    opt.clear_grad()
