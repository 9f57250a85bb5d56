"""The trace: every allocation, free and operator of the steps that were read, in order.

Storages are freed by Python's own reference counting: a :class:`Storage` that loses its last reference (a
local variable is rebound, a frame returns, autograd releases what it saved) writes the free into the trace,
exactly where CPython would have released the framework's tensor. The memory model replays these events
through an allocator.

Events are never changed. They are not declared frozen, because a frozen one takes four times as long to make and a
trace holds up to millions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from oarlock_profiler.core.engine.shapes import MAX_COUNT, ShapeError
from oarlock_profiler.core.findings import Where

StorageKind = Literal[
    "parameter", "buffer", "gradient", "optimizer", "input", "activation", "saved", "workspace", "temporary", "other"
]
Phase = Literal["setup", "forward", "backward", "optimizer", "evaluation"]


@dataclass(slots=True, unsafe_hash=True)
class Alloc:
    """``nbytes`` were requested on ``device`` for storage ``id``."""

    id: int
    nbytes: int
    kind: StorageKind
    device: str
    phase: Phase
    op: str
    where: Where | None


@dataclass(slots=True, unsafe_hash=True)
class Free:
    """Storage ``id`` was released."""

    id: int


@dataclass(slots=True, unsafe_hash=True)
class Retag:
    """Storage ``id`` turned out to be of another kind (an activation that autograd keeps becomes ``saved``)."""

    id: int
    kind: StorageKind


class Filters(NamedTuple):
    """A convolution: its channels, positions of one filter, groups, and positions of one sample's output."""

    in_channels: int
    out_channels: int
    area: int
    groups: int
    positions: int


@dataclass(slots=True, unsafe_hash=True)
class Op:
    """One kernel launch: ``flops`` floating-point operations over ``bytes_moved`` bytes of device memory.

    ``workspace_bytes`` is scratch that lives only while the kernel runs. ``module`` is the dotted path of the
    layer. ``kernel`` is the framework's kernel name (phi for PaddlePaddle), for operator support. ``filters`` when it
    is a convolution.
    """

    name: str
    kernel: str
    dtype: str
    phase: Phase
    flops: int
    bytes_moved: int
    workspace_bytes: int
    module: str
    where: Where | None
    matmul: bool = False
    filters: Filters | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A boundary: ``step_begin``, ``step_end`` (optimiser stepped), ``epoch_begin``, ``evaluation_begin``…"""

    name: str
    index: int


Event = Alloc | Free | Retag | Op | Mark


@dataclass(slots=True)
class Trace:
    """An append-only list of events.

    ``limit`` bounds it; past it, ``truncated`` is set and nothing is added.
    """

    events: list[Event] = field(default_factory=list)
    phase: Phase = "setup"
    steps: int = 0
    limit: int = 4_000_000
    truncated: bool = False
    _next: int = 0

    def add(self, event: Event) -> None:
        """Append ``event``."""
        if len(self.events) >= self.limit:
            self.truncated = True
            return
        self.events.append(event)

    def allocate(self, nbytes: int, kind: StorageKind, *, device: str, op: str, where: Where | None) -> Storage:
        """Write an allocation of ``nbytes`` and return its storage.

        Dropping the last reference writes the free.

        Raises:
            ShapeError: less than nothing, or more than frameworks can count.
        """
        if not 0 <= nbytes <= MAX_COUNT:
            raise ShapeError(f"a tensor of {'negative size' if nbytes < 0 else '2^63 bytes or more'} cannot exist")
        self._next += 1
        self.add(Alloc(self._next, nbytes, kind, device, self.phase, op, where))
        return Storage(self, self._next, nbytes, kind, device)

    def mark(self, name: str, index: int = 0) -> None:
        """Write a boundary."""
        self.add(Mark(name, index))

    def step_end(self) -> None:
        """Write that the optimiser has stepped; ``steps`` counts them."""
        self.steps += 1
        self.mark("step_end", self.steps)


class Storage:
    """Device (or host) memory behind one or more tensors (views share it)."""

    __slots__ = ("__weakref__", "device", "id", "kind", "nbytes", "trace")

    def __init__(self, trace: Trace, id: int, nbytes: int, kind: StorageKind, device: str) -> None:
        self.trace = trace
        self.id = id
        self.nbytes = nbytes
        self.kind: StorageKind = kind
        self.device = device

    def retag(self, kind: StorageKind) -> None:
        """Say that this storage serves as ``kind`` from now on."""
        if kind != self.kind:
            self.kind = kind
            self.trace.add(Retag(self.id, kind))

    def __del__(self) -> None:
        self.trace.add(Free(self.id))
