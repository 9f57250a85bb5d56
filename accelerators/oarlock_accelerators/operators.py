"""Which operators a vendor's PaddlePaddle back end has kernels for, as tables with a source and a commit.

An operator that a table lacks runs on the CPU where Paddle has a CPU kernel for it, with a copy each way. A newer
release of a back end may have more: a table is a dated fact, not the truth of every build.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from oarlock_accelerators.model import Kind

EVERYTHING = "everything"
"""The table of the reference devices, NVIDIA GPUs and CPUs."""

_DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "b": "bool", "c64": "complex64", "c128": "complex128",
    "f8e4": "float8_e4m3fn", "f8e5": "float8_e5m2", "p": "pstring",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """The kernels of one back end, by phi kernel name (``conv2d``, ``softmax_grad``)."""

    name: str
    source: str
    commit: str | None
    dtypes: Mapping[str, frozenset[str]]
    """Operator to the data types it is registered for; empty for the reference table."""
    everything: bool = False
    """Every operator counts as supported."""

    def supports(self, operator: str, dtype: str | None = None) -> bool:
        """Whether there is a kernel for ``operator`` (and for ``dtype``, when given)."""
        if self.everything:
            return True
        known = self.dtypes.get(operator)
        return known is not None and (dtype is None or dtype in known)


def supported_ops(kind: Kind) -> OperatorTable | None:
    """The table that applies to ``kind``; ``None`` when nothing is known, which is not "nothing is supported"."""
    return None if kind.operators is None else operator_table(kind.operators)


@cache
def operator_table(name: str) -> OperatorTable:
    """The table called ``name``.

    Raises:
        KeyError: there is no such table.
    """
    if name == EVERYTHING:
        return OperatorTable(name, "the reference: PaddlePaddle's own kernels", None, {}, everything=True)
    resource = files("oarlock_accelerators").joinpath("operator_tables", f"{name}.csv")
    if not name.isidentifier() or not resource.is_file():
        raise KeyError(f"no operator table {name!r}")
    head: dict[str, str] = {}
    dtypes: dict[str, frozenset[str]] = {}
    for line in resource.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            key, _, value = line[1:].partition(":")
            head[key.strip()] = value.strip()
            continue
        operator, _, codes = line.partition(",")
        dtypes[operator] = frozenset(_DTYPES[code] for code in codes.split())
    return OperatorTable(name, head["source"], head.get("commit"), dtypes)
