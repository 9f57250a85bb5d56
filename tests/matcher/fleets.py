"""Small fleets and a driver that plays the service's part, for the matcher's tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Device, DeviceModel, Node
from oarlock_matcher.core.effects import Effect, Placed, Queued, Rejected, Reserve
from oarlock_matcher.core.events import Event, NodeSeen, TaskArrived, TaskFinished
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.state import MatcherState

GIB = 2**30
A100 = DeviceModel("A100-SXM4-40GB", "nvidia", 40 * GIB, 19.5e12, 312e12, 312e12, link="nvlink", price_per_hour=3.0)
V100 = DeviceModel("V100-PCIE-32GB", "nvidia", 32 * GIB, 14e12, 112e12, None, price_per_hour=2.0)
RTX_3090 = DeviceModel("RTX 3090", "nvidia", 24 * GIB, 35.6e12, 71e12, 71e12, price_per_hour=1.0)
ASCEND_910 = DeviceModel(
    "Ascend 910",
    "ascend",
    32 * GIB,
    None,
    256e12,
    None,
    price_per_hour=2.0,
    domestic=True,
    precisions=frozenset({"fp32", "fp16"}),
    unsupported_kernels=frozenset({"grid_sample"}),
)


def node(name: str, model: DeviceModel, count: int, site: str = "lab", cpus: int = 64, groups: int = 0) -> Node:
    devices = tuple(
        Device(f"{name}-{i}", name, model, link_group=f"g{i * groups // count}" if groups else None)
        for i in range(count)
    )
    return Node(name, site, cpus * 1000, 256 * GIB, devices)


SEED_FLEET = (
    node("a", A100, 4, groups=2),
    node("v", V100, 2),
    node("r", RTX_3090, 2),
    node("d", ASCEND_910, 2),
)


def need(task_id: str, gib: float | None = 8.0, **more: object) -> Demand:
    wanted = None if gib is None else int(gib * GIB)
    fields: dict[str, object] = {"device_bytes": wanted, "reserve_bytes": wanted, **more}
    return Demand(task_id, **fields)  # type: ignore[arg-type]


@dataclass
class Driver:
    """Feeds a state with events at a clock of its own and keeps every effect."""

    settings: PolicySettings = field(default_factory=PolicySettings)
    now: float = 1000.0
    effects: list[Effect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = MatcherState(settings=self.settings)

    def fleet(self, *nodes: Node) -> Driver:
        for one in nodes:
            self.tell(NodeSeen(one))
        return self

    def tell(self, event: Event, after: float = 0.0) -> tuple[Effect, ...]:
        self.now += after
        self.state, effects = decide(self.state, event, self.now)
        self.effects += effects
        assert self.state.faults() == []
        return effects

    def arrive(self, demand: Demand, after: float = 0.0) -> Effect:
        effects = self.tell(TaskArrived(demand), after)
        assert len(effects) == 1, effects
        return effects[0]

    def place(self, demand: Demand) -> Placed:
        effect = self.arrive(demand)
        assert isinstance(effect, Reserve), effect
        return effect.placed

    def queue(self, demand: Demand, after: float = 0.0) -> Queued:
        effect = self.arrive(demand, after)
        assert isinstance(effect, Queued), effect
        return effect

    def reject(self, demand: Demand) -> Rejected:
        effect = self.arrive(demand)
        assert isinstance(effect, Rejected), effect
        return effect

    def finish(self, task_id: str, outcome: str = "succeeded", after: float = 0.0) -> list[str]:
        """Ends a run; the tasks that were placed in consequence."""
        attempt = self.state.tasks[task_id].demand.attempt
        effects = self.tell(TaskFinished(task_id, attempt, outcome), after)
        return [e.task_id for e in effects if isinstance(e, Reserve)]
