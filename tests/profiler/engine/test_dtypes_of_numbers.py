"""A Python number never widens a tensor of its own kind, whatever the tensor's rank."""

import pytest
from benchmarks.oracles.ours import prepare


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("torch.where(mask, torch.zeros(()), -1e9)", "float32"),
        ("torch.where(mask, torch.zeros((), dtype=torch.float16), -1e9)", "float16"),
        ("torch.where(mask, torch.tensor(0), 1.5)", "float32"),
        ("torch.where(mask, torch.tensor(0), 1)", "int64"),
        ("torch.where(mask, 1.0, 0.0)", "float32"),
    ],
)
def test_result_type(expression: str, dtype: str) -> None:
    source = f"import torch\nmask = torch.ones(4, 4, dtype=torch.bool)\nmodel = None\ninputs = {expression}\n"
    _, _, space = prepare(source, "torch")
    assert space["inputs"].dtype == dtype
