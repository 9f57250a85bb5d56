"""What the core is told. Every event may arrive twice; a repetition changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Device, Health, Node, NodeShare, Share
from oarlock_matcher.core.policy_settings import PolicySettings


@dataclass(frozen=True, slots=True)
class TaskArrived:
    """A profiled task wants devices (or a later attempt of one that ended)."""

    demand: Demand


@dataclass(frozen=True, slots=True)
class TaskAdopted:
    """A placement made before this core started (restart, or the former leader's): its leases count.
    `placed_at`: when, in seconds since the epoch; `None` when that is not known."""

    demand: Demand
    shares: tuple[Share, ...]
    node_shares: tuple[NodeShare, ...] = ()
    placed_at: float | None = None


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A run ended. `outcome`: `succeeded`, `failed`, `oom`, `cancelled`, `lost`, `preempted`. An older attempt than
    the one that holds the leases is ignored. `final`: no other attempt follows, so what comes `after:` it goes on."""

    task_id: str
    attempt: int
    outcome: str
    final: bool = True


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """How a task ended that this core has not seen end (before its reign, or before it was profiled; or a whole array):
    what comes `after:` it can go on. `outcome` as for `TaskFinished`, or `rejected`."""

    task_id: str
    attempt: int
    outcome: str


@dataclass(frozen=True, slots=True)
class TaskCancelled:
    """Someone no longer wants the task. A waiting task leaves the queue; a placed one keeps its leases until its
    run's end is known (`TaskFinished`)."""

    task_id: str


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node with all its devices, first seen or changed. Devices it no longer lists count as lost."""

    node: Node


@dataclass(frozen=True, slots=True)
class DeviceSeen:
    """One device, first seen or changed; its node must have been seen."""

    device: Device


@dataclass(frozen=True, slots=True)
class DeviceChanged:
    """Health or cordon of a known device changed; `None` leaves a field as it is."""

    device_uid: str
    health: Health | None = None
    cordoned: bool | None = None
    foreign_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """The device's inventory entry expired. It takes no work; leases on it stay until their runs end."""

    device_uid: str


@dataclass(frozen=True, slots=True)
class NodeDrained:
    """An operator starts or stops draining a node: runs there go on, nothing new starts."""

    node: str
    draining: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: time-outs, holds and preemption are looked at."""


@dataclass(frozen=True, slots=True)
class LeaseConflict:
    """A reservation failed and was rolled back: someone else holds `device_uid`.

    `holders` is what the lease document says now, by (task_id, share); the core counts it against the device.
    """

    task_id: str
    attempt: int
    device_uid: str
    holders: tuple[tuple[str, Share], ...] = ()


@dataclass(frozen=True, slots=True)
class LeasesSeen:
    """The lease document of a device as another matcher left it: holders this core does not know count as foreign."""

    device_uid: str
    holders: tuple[tuple[str, Share], ...]


@dataclass(frozen=True, slots=True)
class PolicyUpdated:
    """Operators changed the policy bucket."""

    settings: PolicySettings


@dataclass(frozen=True, slots=True)
class StandingSeen:
    """How the learned policy stood, with the same weights, when the leader before ended: fields of `PolicyStanding`."""

    trusted: bool
    rehearsals: int
    recent: tuple[tuple[float, float], ...] = ()
    experience: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsageSeen:
    """What ended runs of each owner had held of late (devices on average, as of `at`) under the leader before."""

    held: Mapping[str, float]
    at: float


Event = (
    TaskArrived
    | TaskAdopted
    | TaskFinished
    | TaskEnded
    | TaskCancelled
    | NodeSeen
    | DeviceSeen
    | DeviceChanged
    | DeviceLost
    | NodeDrained
    | Tick
    | LeaseConflict
    | LeasesSeen
    | PolicyUpdated
    | StandingSeen
    | UsageSeen
)
