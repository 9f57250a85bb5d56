"""Operators without a kernel, by the public tables of each back end."""

from __future__ import annotations

import pytest

from oarlock_accelerators import operator_table
from oarlock_matcher.adapters.kernel_support import OLDER_NAMES, remark, without_kernel

TABLES = tuple(operator_table(name) for name in ("npu", "mlu", "gcu", "sdaa", "intel_hpu", "xpu_kl2", "xpu_kl3"))
TRANSFORMER = (
    *(
        "adamw",
        "add",
        "add_grad",
        "cross_entropy_with_softmax",
        "cross_entropy_with_softmax_grad",
        "dropout",
        "embedding",
    ),
    *("embedding_grad", "gelu", "gelu_grad", "layer_norm", "layer_norm_grad", "matmul", "matmul_grad", "mean_all"),
    *("reshape", "reshape_grad", "scale", "scale_grad", "softmax", "softmax_grad", "transpose_grad", "cast_grad"),
)


@pytest.mark.parametrize("name", sorted(OLDER_NAMES))
def test_each_pair_of_names_is_one_that_back_ends_use(name: str) -> None:
    """Some table lists the older name, and some the newer: a slip of the pen would be in neither."""
    assert any(table.supports(OLDER_NAMES[name]) for table in TABLES), OLDER_NAMES[name]
    assert any(table.supports(name) for table in TABLES), name


def test_a_transformers_operators_are_known_by_either_name() -> None:
    assert without_kernel("Ascend 910A", "ascend", "paddlepaddle", TRANSFORMER) == ()
    assert without_kernel("Kunlun P800", "kunlunxin", "paddlepaddle", TRANSFORMER) == ()


def test_what_is_missing_is_said_and_nothing_is_said_where_nothing_is_known() -> None:
    operators = (*TRANSFORMER, "a_new_operator")
    told = remark("Ascend 910A", "ascend", "paddlepaddle", operators)
    assert told is not None and told.startswith(f"1 of {len(operators)} operators have no kernel on Ascend 910A")
    assert "a_new_operator" in told
    assert remark("Ascend 910A", "ascend", "pytorch", operators) is None, "the tables are PaddlePaddle's"
    assert remark("A100-SXM4-40GB", "nvidia", "paddlepaddle", operators) is None
    assert remark("of no known kind", "acme", "paddlepaddle", operators) is None
