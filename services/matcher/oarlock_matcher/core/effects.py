"""What the core wants done. The service does it and feeds the outcome back as an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oarlock_matcher.core.devices import NodeShare, Share


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a task did not get a device: `code` for machines, `sentence` for people.

    `devices` are the device uids (or node names) it speaks of, at most a handful; `count` is how many there are.
    """

    code: str
    sentence: str
    devices: tuple[str, ...] = ()
    count: int = 0
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the fleet (the devices of one model on one node) that could have taken the task.

    `score`: higher is better. `parts`: each weighted term of the score, by feature name.
    """

    node: str
    kind: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shadow:
    """What another policy would have done in the same place: the row it prefers, and whether that is the row chosen."""

    policy: str
    node: str
    kind: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement. It becomes true when the reservation that carries it succeeds.

    `node_scores` keeps the score of every feasible candidate as (node, score); `candidates` the best ones in detail;
    `rejections` why the other devices were ruled out. `policy_note` says when another policy answered than was asked.
    """

    task_id: str
    attempt: int
    site: str
    shares: tuple[Share, ...]
    node_shares: tuple[NodeShare, ...]
    kind: str
    policy: str
    policy_note: str | None
    score: float
    node_scores: tuple[tuple[str, float], ...]
    candidates: tuple[Candidate, ...]
    rejections: tuple[Reason, ...]
    waited_seconds: float
    step_seconds: float | None = None
    shadow: Shadow | None = None


@dataclass(frozen=True, slots=True)
class Reserve:
    """Take these leases by compare-and-set, in the order given; all or none. On success publish `placed`.

    `shares` are sorted by device uid, so that two matchers cannot hold each other's devices in a circle.
    """

    task_id: str
    attempt: int
    shares: tuple[Share, ...]
    node_shares: tuple[NodeShare, ...]
    placed: Placed


@dataclass(frozen=True, slots=True)
class Queued:
    """The task waits: `reasons` say why, `would_free_it` what would change that; `position` counts from 0."""

    task_id: str
    attempt: int
    position: int
    reasons: tuple[Reason, ...]
    would_free_it: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The task will never be placed as it stands. `smallest_bytes` is the memory a device would have to have
    (the advice hook: the service adds what else would make it fit); `None` when memory is not the cause."""

    task_id: str
    attempt: int
    code: str
    reasons: tuple[Reason, ...]
    smallest_bytes: int | None = None
    largest_bytes_seen: int | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A waiting task was cancelled and has left the queue; it held nothing."""

    task_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Release:
    """Give these leases back (compare-and-set per device, any order; releasing twice does no harm)."""

    task_id: str
    attempt: int
    shares: tuple[Share, ...]
    node_shares: tuple[NodeShare, ...]


@dataclass(frozen=True, slots=True)
class Preempt:
    """Ask the launcher to end this run, giving it `grace_seconds` to save a checkpoint; then resubmit it."""

    task_id: str
    attempt: int
    grace_seconds: float
    for_task: str
    reason: str


@dataclass(frozen=True, slots=True)
class PolicyStanding:
    """How the learned policy stands after another rehearsal; to be told to operators, nothing else follows.

    `version`: of its weights, `None` for those that this release ships. `trusted`: whether it answers where it is asked
    for; else `rules` does. Regrets are means over the last rehearsals, in percent of the rehearsed devices.
    `recent` and `experience` are what the next leader goes on from: (learned, rules) regrets of the rehearsals that
    count, and what ended runs showed by kind (`core.policies.experience`).
    """

    policy: str
    rules: str
    version: str | None
    trusted: bool
    regret_percent: float
    rules_regret_percent: float
    rehearsals: int
    recent: tuple[tuple[float, float], ...] = ()
    experience: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


Effect = Reserve | Queued | Rejected | Cancelled | Release | Preempt | PolicyStanding
