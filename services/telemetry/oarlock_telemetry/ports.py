"""What telemetry needs of the world; ``adapters`` provide it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from oarlock_accelerators import Device, Snapshot
from oarlock_schemas import DeviceState, NodeMetrics, RunRecord, TaskLaunched, TaskPlaced
from oarlock_telemetry.core.follow import State
from oarlock_telemetry.core.runs import Key


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the inventory (this one, or a simulated one)."""

    site: str
    name: str
    cpu_milli: int | None
    memory_bytes: int | None
    devices: tuple[Device, ...]


class Machine(Protocol):
    """The nodes that this telemetry speaks for, and their devices."""

    async def nodes(self) -> Sequence[Node]:
        """The inventory, probed anew."""
        ...

    async def sample(self) -> Sequence[Snapshot]:
        """One reading of every device."""
        ...


class Processes(Protocol):
    """The processes of this machine."""

    def parents(self) -> dict[int, int]:
        """Process id to its parent's."""
        ...

    def watcher(self, pid: int) -> int | None:
        """The process that stands over a run's main process and only over it; None where there is none."""
        ...

    def container_pid(self, container_id: str, pids: Sequence[int]) -> int | None:
        """The first process of a container among ``pids``."""
        ...

    def memory_bytes(self, pids: Sequence[int]) -> int | None:
        """Memory the processes hold together now (shared pages once), and at least the largest's own peak."""
        ...


class Channel(Protocol):
    """The bus."""

    async def metrics(self, metrics: NodeMetrics) -> None: ...

    async def device(self, state: DeviceState, *, cordon: bool) -> None:
        """Write the inventory entry; a cordon set by anyone stays."""
        ...

    async def completed(self, record: RunRecord) -> None: ...

    async def launch_of(self, key: Key, nodes: Collection[str]) -> TaskLaunched | None:
        """The launch of an attempt on one of ``nodes``, as the stream holds it; a gang has one on each of its own."""
        ...

    async def placement_of(self, site: str, key: Key) -> TaskPlaced | None:
        """The placement of an attempt, as the stream holds it."""
        ...


class StateStore(Protocol):
    """Where followed runs are written down; survives this process."""

    def load(self) -> State: ...

    def save(self, state: State) -> None: ...


class Board(Protocol):
    """What Prometheus is shown."""

    def show(self, metrics: Mapping[str, NodeMetrics]) -> None: ...

    def show_run(self, record: RunRecord) -> None: ...
