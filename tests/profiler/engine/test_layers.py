"""Layers and tensors as scripts use them, through the interpreter."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.oracles import ours

from oarlock_profiler.core.engine.modules import LayerInstance, module_tree


def run(source: str, framework: str = "torch") -> dict[str, Any]:
    head = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" if framework == "torch" else (
        "import paddle\nimport paddle.nn as nn\nimport paddle.nn.functional as F\n"
    )  # fmt: skip
    machine, _, space = ours.prepare(head + source, framework)
    assert machine.internal_errors == []
    return space


def test_buffers_are_no_parameters_and_move_with_the_layer() -> None:
    space = run(
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(10))
        self.fc = nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.ones(3))
net = Net().to("cuda").half()
names = [n for n, _ in net.named_parameters()]
state = sorted(net.state_dict())
count = sum(p.numel() for p in net.parameters())
"""
    )
    net = space["net"]
    assert space["names"] == ["scale", "fc.weight", "fc.bias"]
    assert space["state"] == ["fc.bias", "fc.weight", "scale", "steps"]
    assert space["count"] == 13
    assert net.attrs["steps"].device == "gpu:0" and net.attrs["steps"].dtype == "float16"


def test_a_shared_weight_counts_once() -> None:
    space = run(
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 8)
        self.head = nn.Linear(8, 100, bias=False)
        self.head.weight = self.emb.weight
net = Net()
count = sum(p.numel() for p in net.parameters())
"""
    )
    assert space["count"] == 800
    assert module_tree(space["net"]).parameters == 800


def test_freezing_and_the_model_tree() -> None:
    space = run(
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 2)))
for p in net[0].parameters():
    p.requires_grad = False
out = net(torch.randn(3, 4))
"""
    )
    tree = module_tree(space["net"])
    assert (tree.parameters, tree.trainable) == (58, 18)
    assert [c.path for c in tree.children] == ["0", "1"]
    assert tree.children[1].children[1].output_shapes == [(3, 2)]
    assert tree.children[1].children[1].path == "1.1"


def test_deepcopy_has_memory_of_its_own() -> None:
    space = run("import copy\na = nn.Linear(4, 4)\nb = copy.deepcopy(a)\n")
    a, b = space["a"], space["b"]
    assert isinstance(b, LayerInstance)
    assert a.attrs["weight"].storage is not b.attrs["weight"].storage
    assert b.attrs["weight"].is_parameter


def test_containers() -> None:
    space = run(
        """
blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(4)])
blocks.append(nn.Linear(2, 2))
table = nn.ModuleDict({"a": nn.Linear(2, 3)})
table["b"] = nn.Linear(3, 1)
last = blocks[-1]
some = nn.Sequential(*blocks)[:2]
sizes = [len(blocks), len(table), len(some)]
keys = list(table.keys())
has = "a" in table
x = torch.randn(5, 2)
for block in blocks:
    x = block(x)
"""
    )
    assert space["sizes"] == [5, 2, 2]
    assert space["keys"] == ["a", "b"] and space["has"] is True
    assert space["x"].shape == (5, 2)


def test_paddle_layers_attributes_and_statistics() -> None:
    space = run(
        """
class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.w = self.create_parameter([3, 4], attr=paddle.ParamAttr(trainable=False))
        self.add_sublayer("fc", nn.Linear(4, 5, bias_attr=False))
        self.bn = nn.BatchNorm1D(5)
    def forward(self, x):
        return self.bn(self.fc(paddle.matmul(x, self.w)))
net = Net()
out = net(paddle.randn([7, 3]))
count = sum(p.size for p in net.parameters())
free = [n for n, p in net.named_parameters() if p.stop_gradient]
""",
        "paddle",
    )
    assert space["count"] == 12 + 20 + 20
    assert space["free"] == ["w", "bn._mean", "bn._variance"]
    assert space["out"].shape == (7, 5)


def test_hooks_and_modes() -> None:
    space = run(
        """
seen = []
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
handle = net[0].register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))
net(torch.randn(2, 4))
handle.remove()
net.eval()
y = net(torch.randn(2, 4))
modes = [m.training for m in net.modules()]
"""
    )
    assert space["seen"] == [(2, 4)]
    assert space["modes"] == [False, False, False]


def test_no_grad_as_context_and_as_decorator() -> None:
    space = run(
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    @torch.no_grad()
    def predict(self, x):
        return self.fc(x)
net = Net()
a = net.predict(torch.randn(2, 4)).requires_grad
with torch.no_grad():
    b = net.fc(torch.randn(2, 4)).requires_grad
c = net.fc(torch.randn(2, 4)).requires_grad
"""
    )
    assert (space["a"], space["b"], space["c"]) == (False, False, True)


def test_a_custom_function_runs_its_own_backward() -> None:
    space = run(
        """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2
x = torch.randn(3, 4, requires_grad=True)
y = Double.apply(x)
y.sum().backward()
shape = tuple(x.grad.shape)
"""
    )
    assert space["shape"] == (3, 4)


@pytest.mark.parametrize(
    ("framework", "expression", "shape", "dtype"),
    [
        ("torch", "torch.arange(6).view(2, 3)[:, None, -1]", (2, 1), "int64"),
        ("torch", "torch.randn(4, 5)[..., 1:3]", (4, 2), "float32"),
        ("torch", "torch.randn(4, 5, 6)[[0, 1], :, [2, 3]]", (2, 5), "float32"),
        ("torch", "torch.einsum('b i, b j -> i j', torch.randn(7, 2), torch.randn(7, 3))", (2, 3), "float32"),
        ("torch", "F.one_hot(torch.zeros(3, dtype=torch.long), 5)", (3, 5), "int64"),
        ("torch", "F.interpolate(torch.randn(1, 3, 8, 8), scale_factor=2)", (1, 3, 16, 16), "float32"),
        ("torch", "torch.stack([torch.tensor(1.0)] * 4)", (4,), "float32"),
        ("torch", "torch.randn(2, 3).expand(5, -1, -1).reshape(-1)", (30,), "float32"),
        ("torch", "torch.ones(3, dtype=torch.int64) / 2", (3,), "float32"),
        ("torch", "torch.randn(3).half() * 2.5", (3,), "float16"),
        ("torch", "torch.topk(torch.randn(4, 10), 3).indices", (4, 3), "int64"),
        ("torch", "torch.cat([torch.zeros(2, 3), torch.ones(2, 5)], -1)", (2, 8), "float32"),
        ("torch", "torch.bucketize(torch.randn(4), torch.arange(3.0))", (4,), "int64"),
        ("paddle", "paddle.reshape(paddle.randn([2, 3, 4]), [0, -1])", (2, 12), "float32"),
        ("paddle", "paddle.to_tensor([1.5, 2.5]).astype('int32')", (2,), "int32"),
        ("paddle", "paddle.concat([paddle.ones([1, 2]), paddle.zeros([3, 2])])", (4, 2), "float32"),
        ("paddle", "paddle.split(paddle.randn([6, 4]), 3)[0]", (2, 4), "float32"),
        ("paddle", "paddle.gather(paddle.randn([5, 4]), paddle.to_tensor([0, 2]))", (2, 4), "float32"),
        ("paddle", "F.one_hot(paddle.to_tensor([1, 2]), 4)", (2, 4), "float32"),
        ("paddle", "paddle.shape(paddle.randn([2, 3]))", (2,), "int32"),
        ("paddle", "F.pad(paddle.randn([1, 3, 4, 4]), [1, 1, 2, 2])", (1, 3, 8, 6), "float32"),
        ("paddle", "paddle.max(paddle.randn([3, 4]), axis=1)", (3,), "float32"),
        ("paddle", "paddle.expand(paddle.randn([1, 4]), [3, 4])", (3, 4), "float32"),
    ],
)
def test_operators(framework: str, expression: str, shape: tuple[int, ...], dtype: str) -> None:
    out = run(f"out = {expression}\n", framework)["out"]
    assert (out.shape, out.dtype) == (shape, dtype)


def test_small_known_contents_are_followed() -> None:
    space = run(
        """
rates = [x.item() for x in torch.linspace(0, 0.2, 3)]
size = int(torch.tensor(3.7).floor().item())
widths = torch.unique((torch.arange(4) * 0.5).floor()).int().tolist()
"""
    )
    assert space["rates"] == [0.0, 0.1, 0.2]
    assert space["size"] == 3
    assert space["widths"] == [0, 1]


def test_shapes_that_do_not_fit_are_a_gap_not_a_crash() -> None:
    machine, _, space = ours.prepare(
        "import torch\ny = torch.randn(2, 3) @ torch.randn(4, 5)\nz = torch.relu(y)\n", "torch"
    )
    assert space["z"].shape is None
    assert any("matmul" in gap.why for gap in machine.findings.gaps.values())
    assert machine.internal_errors == []


def test_a_model_that_the_script_dropped_gives_its_memory_back() -> None:
    machine, engine, _ = ours.prepare(
        """
import torch
import torch.nn as nn
for fold in range(3):
    model = nn.Linear(1000, 1000)
    loss = model(torch.randn(2, 1000)).sum()
    loss.backward()
""",
        "torch",
    )
    assert machine.internal_errors == []
    assert ours.current_of(engine.trace) < 2.5 * 4 * 1001 * 1000
    assert [root.attrs["weight"].shape for root in engine.roots] == [(1000, 1000)] * 3


def test_hooks_see_inputs() -> None:
    space = run(
        """
seen = []
net = nn.Linear(4, 3)
net.register_forward_hook(lambda m, i, o: seen.append((tuple(i[0].shape), tuple(o.shape))))
net(torch.randn(2, 4))
"""
    )
    assert space["seen"] == [((2, 4), (2, 3))]
