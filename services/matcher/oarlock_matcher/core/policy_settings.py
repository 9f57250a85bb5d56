"""What operators can tune while the matcher runs: the weights, the queue's rules, quotas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

DEFAULT_POLICY = "rule_based"


@dataclass(frozen=True, slots=True)
class Weights:
    """Weight of each term of the `rule_based` score; every term lies in 0..1 before weighting.

    `deadline` counts for tasks that have one, on devices that finish them in time.

    The fragmentation term is the one that fills clusters; the others are neutral when nothing is known (no price, no
    step time), so a fleet without prices is packed by fragmentation alone.
    """

    cost_performance: float = 1.0
    fragmentation: float = 1.0
    balance: float = 0.1
    domestic: float = 0.2
    interference: float = 0.3
    preferred: float = 0.8
    speed: float = 0.3
    link: float = 0.2
    energy: float = 0.0
    deadline: float = 1.0


PRESETS: Mapping[str, Weights] = {
    "balanced": Weights(),
    "throughput": Weights(cost_performance=0.3, speed=1.5, balance=0.0, domestic=0.0),
    # Where prices are not known, the energy of a step is the best there is of its cost.
    "cost": Weights(cost_performance=2.0, speed=0.0, balance=0.0, domestic=0.0, energy=0.5),
    "balance": Weights(cost_performance=0.5, fragmentation=0.3, balance=1.0, energy=0.1),
    "domestic": Weights(domestic=3.0),
}


@dataclass(frozen=True, slots=True)
class Quota:
    """Most that one owner may hold at a time; `None` means no limit."""

    devices: int | None = None
    device_bytes: int | None = None
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Devices kept from `begins` to `ends` (seconds since the epoch) for `owner`, or for nobody (maintenance) when that
    is `None`.

    `devices` are uids. `sites`, `nodes` and `kinds` narrow each other; all four empty means the whole fleet.
    """

    name: str
    begins: float
    ends: float
    owner: str | None = None
    devices: frozenset[str] = frozenset()
    sites: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """What the learned policy decides by: `weights` by class of shape (`processors`, `share`, `one`, `gang`), then by
    feature; what is not named weighs nothing."""

    version: str
    weights: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Everything the policy bucket holds.

    `ageing_seconds`: waiting this long is worth one level of priority, so no task is passed for ever.
    `hold_after_seconds`: a task at the head of the queue that waited this long gets devices held for it; later tasks
    only pass (backfill) where they do not delay it.
    `backfill_depth`: how many different shapes of waiting tasks are tried when something frees up.
    `fair_share_seconds`: a task is placed in the queue as if it had arrived this much later for each device that its
    owner already holds or waits for, or held on average of late (what it used counts half after
    `fair_share_half_life_seconds`; 0 forgets at once).
    `deadline_levels`: a deadline that is near raises a task by at most this many levels of priority.
    `auto_efficiency`: `num_gpus: auto` takes more devices only where each still gives this share of its speed.
    `sharers_per_device`: most tasks on one shared device. `least_shared_speed`: a device takes no further sharer that
    would slow its sharers below this share of their speed alone, as far as predicted.
    `windows`: reservations and maintenance.
    `learned`: weights of `rl_based` in place of those that this release ships. `shadow_policy`: the name of a policy
    that decides beside the one that answers, only to be recorded; empty for none.
    `explain_limit`: candidates and rejections kept in detail with a decision.
    """

    policy: str = DEFAULT_POLICY
    weights: Weights = field(default_factory=Weights)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    default_quota: Quota = field(default_factory=Quota)
    windows: tuple[Window, ...] = ()
    ageing_seconds: float = 600.0
    hold_after_seconds: float = 60.0
    backfill_depth: int = 64
    fair_share_seconds: float = 0.0
    fair_share_half_life_seconds: float = 3600.0
    deadline_levels: float = 2.0
    auto_efficiency: float = 0.7
    sharers_per_device: int = 4
    least_shared_speed: float = 0.75
    preemption: bool = False
    preemption_priority_gap: int = 1
    preemption_grace_seconds: float = 60.0
    reject_impossible: bool = True
    explain_limit: int = 16
    learned: LearnedWeights | None = None
    shadow_policy: str = ""

    def with_preset(self, name: str) -> PolicySettings:
        """These settings with the weights of a preset.

        Raises:
            KeyError: no such preset; the message lists those there are.
        """
        if name not in PRESETS:
            raise KeyError(f"no preset {name!r}; there are {', '.join(sorted(PRESETS))}")
        return replace(self, weights=PRESETS[name])

    def quota_of(self, owner: str) -> Quota:
        return self.quotas.get(owner, self.default_quota)
