"""The values a site's runs are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

Key = tuple[str, int]
"""(task id, attempt): one run."""

Phase = Literal["accepted", "running", "stopping", "ended", "reported"]
"""``accepted``: recorded, not known to have started. ``stopping``: an end was asked for. ``ended``: the outcome is
known and not yet told. ``reported``: told; kept so that a redelivered placement starts nothing."""

StopReason = Literal["cancelled", "preempted", "timeout", "lost", "stopped"]
"""``stopped``: another member of its gang has failed."""

ACTIVE: frozenset[str] = frozenset({"accepted", "running", "stopping"})


@dataclass(frozen=True, slots=True)
class DeviceGrant:
    """One device of a run, with the fence of its booking."""

    uid: str
    kind: str
    vendor: str
    node: str
    fence: int
    index: int | None = None
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of how a run ended; ``None`` where it could not be seen."""

    exit_code: int | None = None
    signal: int | None = None
    memory_killed: bool = False
    """The kernel or the container engine killed it for memory."""
    ended_at_seconds: float | None = None
    peak_process_bytes: int | None = None
    """Largest resident size of any of its processes, as the kernel counted it."""
    log_tail: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Gang:
    """What a run is a part of, when its task was placed on several nodes. Ranks go by node, then by device."""

    node: str
    """The node whose part this run is."""
    nodes: tuple[str, ...]
    counts: tuple[int, ...]
    """Devices on each of ``nodes``."""
    device_uids: tuple[str, ...]
    """All devices of the task."""

    @property
    def node_rank(self) -> int:
        return self.nodes.index(self.node)


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Where the members of a gang meet: by node, its address and a port for each of its devices."""

    addresses: tuple[str, ...]
    ports: tuple[tuple[int, ...], ...]
    master_port: int
    """A port of the first address."""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt of one task on this site; of a gang, this node's part. Times are seconds since the epoch."""

    task_id: str
    attempt: int
    devices: tuple[DeviceGrant, ...]
    exclusive: bool
    accepted_at_seconds: float
    timeout_seconds: float | None = None
    predicted_bytes: int | None = None
    predicted_step_seconds: float | None = None
    simulated: bool = False
    final_if_failed: bool = True
    """Whether a failure of this attempt is the task's end, because nothing allows another attempt."""
    retry_on_oom: bool = True
    """Whether an out-of-memory end may be followed by another attempt on a larger device."""
    phase: Phase = "accepted"
    run_id: str | None = None
    pid: int | None = None
    command: tuple[str, ...] = ()
    docker_command: str = ""
    started_at_seconds: float | None = None
    launch_told: bool = False
    """Whether ``tasks.launched`` is known to have reached the bus."""
    stop_reason: StopReason | None = None
    stop_note: str | None = None
    outcome: str | None = None
    message: str | None = None
    ending: Ending | None = None
    gang: Gang | None = None
    """None: the run is the whole of its task."""
    rendezvous: Rendezvous | None = None
    """Set once every member is ready; a member of a gang does not start before."""

    @property
    def all_device_uids(self) -> list[str]:
        """The devices of the task, on whatever node."""
        return [device.uid for device in self.devices] if self.gang is None else list(self.gang.device_uids)

    @property
    def waits_for_others(self) -> bool:
        """Whether nothing of it was begun, because its gang is not complete."""
        return self.phase == "accepted" and self.gang is not None and self.rendezvous is None

    @property
    def key(self) -> Key:
        return (self.task_id, self.attempt)

    @property
    def active(self) -> bool:
        """Whether it runs or may yet run."""
        return self.phase in ACTIVE

    def to(self, phase: Phase, **changes: object) -> Run:
        """The run in ``phase`` with the given fields replaced."""
        return replace(self, phase=phase, **changes)  # type: ignore[arg-type]


_NO_RUNS: Mapping[Key, Run] = MappingProxyType({})
_NO_TIMES: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SiteState:
    """Every run this site knows of, and the tasks that were cancelled before a placement came."""

    runs: Mapping[Key, Run] = field(default_factory=lambda: _NO_RUNS)
    cancelled: Mapping[str, float] = field(default_factory=lambda: _NO_TIMES)

    def with_run(self, run: Run) -> SiteState:
        return replace(self, runs=MappingProxyType({**self.runs, run.key: run}))

    def without(self, key: Key) -> SiteState:
        return replace(self, runs=MappingProxyType({k: v for k, v in self.runs.items() if k != key}))

    def of_task(self, task_id: str) -> list[Run]:
        """The runs of a task, oldest attempt first."""
        return sorted((run for run in self.runs.values() if run.task_id == task_id), key=lambda run: run.attempt)
