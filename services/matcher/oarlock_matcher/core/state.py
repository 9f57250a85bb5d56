"""All that the matcher remembers between two events."""

from __future__ import annotations

from dataclasses import dataclass, field

from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.glance import Bounds
from oarlock_matcher.core.holds import Hold
from oarlock_matcher.core.matching import EverRows, ViewCache
from oarlock_matcher.core.policies.base import PlacementPolicy
from oarlock_matcher.core.policies.registry import build, resolve
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.queue import Turn, WaitingQueue
from oarlock_matcher.core.rehearsal import Trial
from oarlock_matcher.core.shapes import ShapeTable
from oarlock_matcher.core.tasks import Outcomes, Phase, TaskRecord, Usage
from oarlock_matcher.core.windows import Calendar


@dataclass(slots=True)
class MatcherState:
    """Owned by whoever calls `decide`, and used up by it: the state that comes back is the one to go on with.

    It is updated in place, because copying the arrays of a large fleet for each event would cost more than deciding;
    nothing else may hold on to it or change it. `policies` may be filled beforehand to use a policy with its own
    learning or random generator under a name; otherwise they are built on first use.
    """

    settings: PolicySettings = field(default_factory=PolicySettings)
    fleet: FleetTable = field(default_factory=FleetTable)
    shapes: ShapeTable = field(default_factory=ShapeTable)
    views: ViewCache = field(default_factory=ViewCache)
    ever: EverRows = field(default_factory=EverRows)
    bounds: Bounds = field(default_factory=Bounds)
    policies: dict[str, PlacementPolicy] = field(default_factory=dict)
    tasks: dict[str, TaskRecord] = field(default_factory=dict)
    queue: WaitingQueue = field(default_factory=WaitingQueue)
    outcomes: Outcomes = field(default_factory=Outcomes)
    usage: dict[str, Usage] = field(default_factory=dict)
    arrays: dict[str, int] = field(default_factory=dict)
    dependents: dict[str, set[str]] = field(default_factory=dict)
    timeouts: list[tuple[float, str, int]] = field(default_factory=list)
    calendar: Calendar = field(default_factory=Calendar)
    hold: Hold | None = None
    sequence: int = 0
    trial: Trial = field(default_factory=Trial)
    retold: Turn | None = None

    def policy(self, name: str) -> PlacementPolicy:
        found = self.policies.get(name)
        if found is None:
            found = self.policies[name] = build(name, self.settings)
            self.trial.tell(found, self)
        return found

    def answering(self, name: str | None) -> tuple[str, str | None]:
        """The policy that answers for `name` now, and a note when it is not the one that was asked for."""
        return resolve(name, self.settings, self.trial.trusted)

    def usage_of(self, owner: str) -> Usage:
        found = self.usage.get(owner)
        if found is None:
            found = self.usage[owner] = Usage()
        return found

    def faults(self) -> list[str]:
        """Broken invariants, for tests and for a suspicious operator; empty when all is well."""
        found: list[str] = []
        for uid, held in self.fleet.holders.items():
            if len(held) > 1 and any(share.exclusive for share in held.values()):
                found.append(f"{uid} is held exclusively and by others: {sorted(held)}")
            if sum(share.milli for share in held.values()) > 1000:
                found.append(f"{uid}: more than its whole compute is leased")
            device = self.fleet.devices.get(uid)
            if device is not None:
                usable = device.model.memory_bytes if device.usable_bytes is None else device.usable_bytes
                if sum(share.bytes for share in held.values()) > usable:
                    found.append(f"{uid}: more bytes are leased than it has")
        for number, entry in enumerate(self.fleet.nodes):
            shares = self.fleet.node_holders.get(entry.node.name, {}).values()
            if sum(s.cpu_milli for s in shares) > int(self.fleet.cpu_total[number]):
                found.append(f"{entry.node.name}: more processors are leased than it has")
            if sum(s.memory_bytes for s in shares) > int(self.fleet.memory_total[number]):
                found.append(f"{entry.node.name}: more main memory is leased than it has")
        for task_id, record in self.tasks.items():
            if (record.phase is Phase.WAITING) != (task_id in self.queue):
                found.append(f"{task_id} is {record.phase.value} but the queue disagrees")
            if record.phase is Phase.PLACED:
                for share in record.shares:
                    if record.holder not in self.fleet.holders.get(share.device_uid, {}):
                        found.append(f"{task_id}: its lease on {share.device_uid} is lost")
            elif record.shares or record.node_shares:
                found.append(f"{task_id} waits but holds leases")
        running: dict[str, int] = {}
        for record in self.tasks.values():
            if record.phase is Phase.PLACED and record.demand.array is not None:
                running[record.demand.array] = running.get(record.demand.array, 0) + 1
        if running != self.arrays:
            found.append(f"arrays run {running}, but {self.arrays} is noted")
        for uid, held in self.fleet.holders.items():
            for task_id, attempt in held:
                known = self.tasks.get(task_id)
                if attempt >= 0 and (known is None or known.phase is not Phase.PLACED):
                    found.append(f"{uid} is leased to {task_id}, which is not placed")
        return found
