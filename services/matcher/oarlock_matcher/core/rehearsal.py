"""Is the learned policy still as good as the rules, here and now? Both rehearse it.

A rehearsal is the published fill-up experiment in small: some nodes of this very fleet, emptied, and the demands that
arrived last, in a shuffled order, until more has been asked for than the nodes have. Each policy decides on its own
copy, through the same `decide` that serves. What a policy placed less than the better of the two is its regret. Nothing
of this touches the real fleet; a few steps are done at each tick, so that no event waits for it.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import WHOLE_MILLI, Health, Node
from oarlock_matcher.core.effects import PolicyStanding, Reserve
from oarlock_matcher.core.events import NodeSeen, TaskArrived
from oarlock_matcher.core.policies.base import PlacementPolicy
from oarlock_matcher.core.policies.learned import LearnedPolicy
from oarlock_matcher.core.policies.registry import LEARNED, RULES
from oarlock_matcher.core.policy_settings import PolicySettings, Quota

if TYPE_CHECKING:
    from oarlock_matcher.core.state import MatcherState

REMEMBERED_DEMANDS = 512
FEWEST_DEMANDS = 64
"""Arrivals before the first rehearsal, and new ones before each further one."""
NODES_AT_MOST = 64
DEVICES_AT_MOST = 128
STEPS_PER_TICK = 8
COUNTED_FROM, FILL_TO = 0.7, 1.2
"""What is placed counts while between these shares of the nodes' devices have been asked for: where policies differ."""
WINDOW = 16
"""Rehearsals that the verdict looks back on."""
FEWEST_TO_SET_ASIDE = 6
LARGEST_REGRET_PERCENT = 0.25
"""How much more regret than the rules the learned policy may have, in percent of the rehearsed devices."""
CHANCE = 3.0
"""Standard errors by which it must be more, so that luck does not decide: between equally good weights one rehearsal's
difference has a standard deviation of about one point (see `benchmarks/placement`)."""

Decide = Callable[["MatcherState", Any, float], tuple["MatcherState", tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Regret:
    """Of one rehearsal, in percent of its devices."""

    learned: float
    rules: float


class Rehearsal:
    """One fill-up in progress, by both policies."""

    def __init__(self, nodes: Sequence[Node], demands: Sequence[Demand], settings: PolicySettings) -> None:
        self._nodes = nodes
        self._demands = demands
        quiet = replace(
            settings,
            quotas={},
            default_quota=Quota(),
            windows=(),
            fair_share_seconds=0.0,
            explain_limit=0,
            reject_impossible=False,
            preemption=False,
            shadow_policy="",
        )
        self._settings = {name: replace(quiet, policy=name) for name in (LEARNED, RULES)}
        self._states: dict[str, MatcherState] = {}
        self._allocated = dict.fromkeys(self._settings, 0)
        self._sums = dict.fromkeys(self._settings, 0.0)
        self._capacity = WHOLE_MILLI * sum(len(node.devices) for node in nodes)
        self._asked = 0
        self._counted = 0
        self._next = 0

    def step(self, fresh: Callable[[PolicySettings], MatcherState], decide: Decide) -> Regret | None:
        """Let both policies place the next demand; the result once enough has been asked for."""
        if not self._states:
            self._begin(fresh, decide)
        demand = self._demands[self._next % len(self._demands)]
        demand = replace(demand, task_id=str(self._next))
        self._next += 1
        self._asked += _fewest_devices(demand) * demand.compute_milli
        for name, state in self._states.items():
            self._states[name], effects = decide(state, TaskArrived(demand), float(self._next))
            if effects and isinstance(effects[0], Reserve):
                self._allocated[name] += sum(share.milli for share in effects[0].shares)
        if self._asked >= COUNTED_FROM * self._capacity:
            self._counted += 1
            for name, allocated in self._allocated.items():
                self._sums[name] += allocated
        # Demands that ask for no device must not rehearse for ever.
        if self._asked < FILL_TO * self._capacity and self._next < 8 * REMEMBERED_DEMANDS:
            return None
        return self._result()

    def _begin(self, fresh: Callable[[PolicySettings], MatcherState], decide: Decide) -> None:
        for name, settings in self._settings.items():
            state = fresh(settings)
            for node in self._nodes:
                state, _ = decide(state, NodeSeen(node), 0.0)
            # The policies that serve have seen this demand; those that rehearse may know it as well.
            _tell(state.policy(name), self._demands, state)
            self._states[name] = state

    def _result(self) -> Regret:
        if not self._counted or not self._capacity:
            return Regret(0.0, 0.0)
        placed = {name: 100.0 * total / self._counted / self._capacity for name, total in self._sums.items()}
        best = max(placed.values())
        return Regret(best - placed[LEARNED], best - placed[RULES])


class Trial:
    """The learned policy's standing: trusted until rehearsals speak against it, and again once they no longer do."""

    def __init__(self) -> None:
        self.trusted = True
        self.rehearsed = 0
        self._regrets: deque[Regret] = deque(maxlen=WINDOW)
        self._last = (0.0, 0.0)
        self._demands: deque[Demand] = deque(maxlen=REMEMBERED_DEMANDS)
        self._arrived = 0
        self._begun_at = 0
        self._asked_for_at: int | None = None
        self._rehearsal: Rehearsal | None = None

    def note(self, demand: Demand) -> None:
        """A demand has arrived."""
        self._arrived += 1
        self._demands.append(demand)
        if demand.algorithm == LEARNED:
            self._asked_for_at = self._arrived

    def tell(self, policy: PlacementPolicy, state: MatcherState) -> None:
        """A policy that is used for the first time learns what has arrived lately."""
        _tell(policy, self._demands, state)

    def restart(self) -> None:
        """Other weights or rules: what was rehearsed before says nothing of them."""
        self.trusted = True
        self.rehearsed = 0
        self._regrets.clear()
        self._rehearsal = None
        self._begun_at = 0

    def resume(self, trusted: bool, rehearsed: int, recent: Sequence[tuple[float, float]]) -> None:
        """Go on from where another leader stood."""
        self.trusted = trusted
        self.rehearsed = rehearsed
        self._regrets.clear()
        self._regrets.extend(Regret(learned, rules) for learned, rules in recent[-WINDOW:])

    def regret_percent(self) -> tuple[float, float]:
        """Mean regret of the last rehearsals, in percent of their devices: of the learned policy, of the rules."""
        count = len(self._regrets)
        if not count:
            return self._last
        return sum(r.learned for r in self._regrets) / count, sum(r.rules for r in self._regrets) / count

    def step(
        self, state: MatcherState, fresh: Callable[[PolicySettings], MatcherState], decide: Decide
    ) -> PolicyStanding | None:
        """Some steps of a rehearsal, if one is due; the standing when one has ended."""
        if self._rehearsal is None:
            self._rehearsal = self._next_rehearsal(state)
        if self._rehearsal is None:
            return None
        for _ in range(STEPS_PER_TICK):
            regret = self._rehearsal.step(fresh, decide)
            if regret is not None:
                self._rehearsal = None
                self._judge(regret)
                return self.standing(state)
        return None

    def standing(self, state: MatcherState) -> PolicyStanding:
        """As told to operators."""
        learned, rules = self.regret_percent()
        version = None if state.settings.learned is None else state.settings.learned.version
        recent = tuple((regret.learned, regret.rules) for regret in self._regrets)
        policy = state.policies.get(LEARNED)
        experience = policy.remembers() if isinstance(policy, LearnedPolicy) else {}
        return PolicyStanding(LEARNED, RULES, version, self.trusted, learned, rules, self.rehearsed, recent, experience)

    def _judge(self, regret: Regret) -> None:
        self.rehearsed += 1
        self._regrets.append(regret)
        more = [one.learned - one.rules for one in self._regrets]
        mean = sum(more) / len(more)
        if self.trusted and len(more) >= FEWEST_TO_SET_ASIDE:
            spread = math.sqrt(sum((one - mean) ** 2 for one in more) / (len(more) - 1) / len(more))
            self.trusted = mean <= max(LARGEST_REGRET_PERCENT, CHANCE * spread)
            if not self.trusted:
                # What set it aside does not count when it is judged anew.
                self._last = self.regret_percent()
                self._regrets.clear()
        elif not self.trusted and len(more) == WINDOW and mean <= 0.0:
            self.trusted = True

    def _next_rehearsal(self, state: MatcherState) -> Rehearsal | None:
        recently = self._asked_for_at is not None and self._arrived - self._asked_for_at < REMEMBERED_DEMANDS
        if LEARNED not in (state.settings.policy, state.settings.shadow_policy) and not recently:
            return None
        if len(self._demands) < FEWEST_DEMANDS or self._arrived - self._begun_at < FEWEST_DEMANDS:
            return None
        self._begun_at = self._arrived
        nodes = _some_nodes(state, self.rehearsed)
        if not nodes:
            return None
        shuffled = sorted(self._demands, key=lambda demand: _hash(f"{self.rehearsed}:{demand.task_id}"))
        return Rehearsal(nodes, [_plain(demand) for demand in shuffled], state.settings)


def _tell(policy: PlacementPolicy, demands: Iterable[Demand], state: MatcherState) -> None:
    for demand in demands:
        policy.arrived(state.fleet, state.shapes.of(demand, _fewest_devices(demand)), 0.0)


def _some_nodes(state: MatcherState, number: int) -> list[Node]:
    """Nodes to rehearse on, others each time, with their healthy devices as if nothing ran there."""
    names = sorted((entry.node.name for entry in state.fleet.nodes), key=lambda name: _hash(f"{number}:{name}"))
    chosen: list[Node] = []
    devices = 0
    for name in names[:NODES_AT_MOST]:
        node = state.fleet.nodes[state.fleet.node_number[name]].node
        known = [state.fleet.devices[d.uid] for d in node.devices if d.uid in state.fleet.devices]
        usable = tuple(replace(d, foreign_bytes=0) for d in known if d.health is Health.OK and not d.cordoned)
        if usable and devices + len(usable) <= max(DEVICES_AT_MOST, len(usable)):
            chosen.append(replace(node, devices=usable, draining=False))
            devices += len(usable)
    return chosen


def _plain(demand: Demand) -> Demand:
    """The demand as a first attempt that is placed at once or never, whoever decides."""
    return replace(
        demand, attempt=1, priority=0, after=(), timeout_seconds=0.0, deadline=None, arrived_at=None, algorithm=None
    )


def _fewest_devices(demand: Demand) -> int:
    if demand.device_count != "auto":
        return demand.device_count
    return min((n for n in demand.device_bytes_by_count if 1 <= n <= demand.max_devices), default=1)


def _hash(text: str) -> int:
    """A fixed shuffle: the same on every machine and in every run."""
    return zlib.crc32(text.encode())
