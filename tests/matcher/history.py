"""A recorded history: some hundreds of decisions of a small mixed fleet, kept so that no change alters one unnoticed.

    python -m tests.matcher.history        records it anew, after a change of decisions that is meant

The history has gangs (over several nodes too), `auto`, sharing with interference, processors only, quotas, arrays,
dependencies, time-outs, preemption, cordons, drains, lost devices, windows, lease conflicts and changes of the policy.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from pathlib import Path

from oarlock_matcher.adapters.decision_log import DecisionLog
from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Health, NodeShare, Share
from oarlock_matcher.core.effects import Cancelled, Effect, Preempt, Rejected, Release, Reserve
from oarlock_matcher.core.events import (
    DeviceChanged,
    DeviceLost,
    DeviceSeen,
    Event,
    LeaseConflict,
    LeasesSeen,
    NodeDrained,
    NodeSeen,
    PolicyUpdated,
    TaskAdopted,
    TaskArrived,
    TaskCancelled,
    TaskFinished,
    Tick,
)
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PolicySettings, Quota, Window
from oarlock_matcher.core.state import MatcherState

from .fleets import A100, ASCEND_910, GIB, RTX_3090, V100, node

FILE = Path(__file__).with_name("history.jsonl")
BEGINS = 1_000_000.0
ARRIVALS = 240
FLEET = (
    node("a1", A100, 4, cpus=48, groups=2),
    node("a2", A100, 4, cpus=48, groups=2),
    node("v", V100, 4, cpus=32),
    node("r", RTX_3090, 4, site="south", cpus=32),
    node("d", ASCEND_910, 2, cpus=32),
)
SETTINGS = PolicySettings(
    quotas={"ann": Quota(devices=5), "bob": Quota(tasks=6, device_bytes=120 * GIB)},
    windows=(
        Window("upgrade", BEGINS + 900.0, BEGINS + 1500.0, nodes=frozenset({"v"}), reason="driver"),
        Window("demo", BEGINS + 2000.0, BEGINS + 2600.0, owner="eve", kinds=frozenset({A100.kind})),
    ),
    ageing_seconds=300.0,
    hold_after_seconds=60.0,
    fair_share_seconds=20.0,
    preemption=True,
    preemption_grace_seconds=20.0,
    shadow_policy="rl_based",
)
STEPS = {A100.kind: 0.10, V100.kind: 0.18, RTX_3090.kind: 0.16, ASCEND_910.kind: 0.13}


@dataclass
class Recorder:
    """Plays the service, the launcher and the operators, by the seed."""

    log: DecisionLog
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    state: MatcherState = field(default_factory=lambda: MatcherState(settings=SETTINGS))
    now: float = BEGINS
    running: dict[str, int] = field(default_factory=dict)
    demands: dict[str, Demand] = field(default_factory=dict)
    arrived_at: dict[str, float] = field(default_factory=dict)

    def tell(self, event: Event) -> None:
        self.state, effects = decide(self.state, event, self.now)
        self.log.write(event, self.now, effects)
        for effect in effects:
            self.obey(effect)

    def obey(self, effect: Effect) -> None:
        if isinstance(effect, Reserve):
            if self.rng.random() < 0.04:
                uid = effect.shares[0].device_uid if effect.shares else ""
                if uid:
                    other = Share(uid, effect.shares[0].node, GIB, 100, False)
                    self.tell(LeaseConflict(effect.task_id, effect.attempt, uid, ((f"other-{uid}", other),)))
                    return
            self.running[effect.task_id] = effect.attempt
        elif isinstance(effect, Release):
            self.running.pop(effect.task_id, None)
        elif isinstance(effect, Preempt):
            self.end(effect.task_id, "preempted")
            again = replace(
                self.demands[effect.task_id], attempt=effect.attempt + 1, arrived_at=self.arrived_at[effect.task_id]
            )
            self.arrive(again)
        elif isinstance(effect, Rejected | Cancelled):
            self.running.pop(effect.task_id, None)

    def arrive(self, demand: Demand) -> None:
        self.demands[demand.task_id] = demand
        self.arrived_at.setdefault(demand.task_id, self.now)
        self.tell(TaskArrived(demand))

    def end(self, task_id: str, outcome: str) -> None:
        attempt = self.running.pop(task_id, None)
        if attempt is not None:
            self.tell(TaskFinished(task_id, attempt, outcome, final=outcome != "preempted"))

    def record(self) -> None:
        self.log.begin(SETTINGS)
        for found in FLEET:
            self.tell(NodeSeen(found))
        held = (Share("v-0", "v", 8 * GIB, 1000, False),)
        self.tell(TaskAdopted(need_of("adopted", "old"), held, (NodeShare("v", 4000, 8 * GIB),)))
        self.running["adopted"] = 1
        for number in range(ARRIVALS):
            self.now += round(self.rng.expovariate(1 / 12.0), 3)
            self.arrive(self.demand(number))
            if self.running and self.rng.random() < 0.6:
                self.end(self.rng.choice(sorted(self.running)), self.rng.choice(("succeeded",) * 4 + ("failed", "oom")))
            if self.rng.random() < 0.25:
                self.tell(Tick())
            self.disturb(number)
        while self.running:
            self.now += 5.0
            self.end(min(self.running), "succeeded")
            self.tell(Tick())

    def demand(self, number: int) -> Demand:
        rng = self.rng
        task, owner = f"t{number}", rng.choice(("ann", "bob", "cid", "eve"))
        base = need_of(task, owner, rng.choice((2, 6, 10, 18)))
        fields: dict[str, object] = {
            "priority": rng.choice((0, 0, 0, 1, 2)),
            "expected_seconds": float(rng.choice((60, 300, 1200))),
            "timeout_seconds": rng.choice((None, None, None, 400.0)),
        }
        pick = rng.random()
        if pick < 0.35:
            fields |= {"compute_milli": rng.choice((250, 500)), "busy_milli": rng.choice((None, 300, 700))}
        elif pick < 0.5:
            fields |= {"device_count": rng.choice((2, 2, 4)), "strategy": "data"}
        elif pick < 0.56:
            fields |= {"device_count": 6, "span_nodes": True, "strategy": "data"}
        elif pick < 0.64:
            by_count = {n: int(28 * GIB / n) + GIB for n in (1, 2, 4)}
            speed = {1: 1.0, 2: 1.9, 4: 3.3}
            fields |= {"device_count": "auto", "device_bytes_by_count": by_count, "speedup_by_count": speed}
        elif pick < 0.7:
            fields |= {"device_count": 0, "device_bytes": None, "reserve_bytes": None}
        if rng.random() < 0.15:
            fields["required_kinds"] = frozenset({rng.choice((A100.kind, V100.kind, ASCEND_910.kind))})
        if rng.random() < 0.1:
            fields["preferred_kinds"] = (RTX_3090.kind, V100.kind)
        if rng.random() < 0.1:
            fields |= {"precision": "bf16", "kernels": frozenset({"grid_sample"})}
        if rng.random() < 0.05:
            fields["site"] = "south"
        if number and rng.random() < 0.08:
            fields["after"] = (f"t{number - 1}",)
        if rng.random() < 0.1:
            fields |= {"array": f"array-{number // 40}", "array_at_once": 2}
        if rng.random() < 0.1:
            fields["run_timeout_seconds"] = 200.0
        if rng.random() < 0.03:
            fields["device_bytes"] = fields["reserve_bytes"] = 200 * GIB
        return replace(base, **fields)  # type: ignore[arg-type]

    def disturb(self, number: int) -> None:
        devices = [device for found in FLEET for device in found.devices]
        device = self.rng.choice(devices)
        what: dict[int, Event] = {
            11: DeviceChanged(device.uid, cordoned=True),
            23: DeviceChanged(device.uid, foreign_bytes=4 * GIB),
            31: NodeDrained("r", True),
            47: NodeDrained("r", False),
            59: DeviceChanged(device.uid, health=Health.FAILED),
            71: DeviceLost("a2-3"),
            83: DeviceSeen(FLEET[1].devices[3]),
            97: PolicyUpdated(SETTINGS.with_preset("domestic")),
            113: PolicyUpdated(SETTINGS.with_preset("throughput")),
            131: PolicyUpdated(replace(SETTINGS, policy="rl_based", shadow_policy="")),
            149: PolicyUpdated(replace(SETTINGS, policy="fgd")),
            163: PolicyUpdated(SETTINGS),
            179: LeasesSeen(device.uid, ()),
            191: TaskCancelled(f"t{number}"),
        }
        if number in what:
            self.tell(what[number])
        if number % 60 == 59:
            for back in FLEET:
                for known in back.devices:
                    self.tell(DeviceChanged(known.uid, Health.OK, False, 0))


def need_of(task_id: str, owner: str, gib: int = 8) -> Demand:
    return Demand(
        task_id,
        owner=owner,
        device_bytes=gib * GIB,
        reserve_bytes=gib * GIB,
        cpu_milli=4000,
        memory_bytes=8 * GIB,
        precision="fp16",
        step_seconds=STEPS,
    )


def write(path: Path) -> None:
    """Record the history into `path`."""
    path.unlink(missing_ok=True)
    Recorder(DecisionLog(path)).record()


if __name__ == "__main__":
    write(FILE)
    lines = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    print(f"{FILE}: {len(lines) - 1} decisions, {FILE.stat().st_size} bytes")
