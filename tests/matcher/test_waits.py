"""No task starves: every wait has a bound, however much else keeps coming, where there are devices for the task."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.effects import Reserve
from oarlock_matcher.core.events import Event, NodeSeen, TaskArrived, TaskFinished, Tick
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PolicySettings, Quota, Window
from oarlock_matcher.core.state import MatcherState

from .fleets import A100, GIB, V100, node

STEP = 20.0
RUN_SECONDS = 100.0
HIGHEST = 3
BACKLOG = 4
"""So many tasks of the highest priority wait at any time: what ends is always asked for at once."""
FLEET = (node("a", A100, 4, groups=2), node("v", V100, 2), node("w", V100, 2))
WINDOWS = (
    Window("upgrade", 200.0, 500.0, nodes=frozenset({"v"}), reason="driver"),
    Window("course", 600.0, 900.0, owner="eve", kinds=frozenset({A100.kind})),
)


@dataclass(frozen=True)
class Target:
    priority: int
    devices: int
    kind: str | None
    owner: str
    known: bool
    pause: int

    def demand(self, name: str) -> Demand:
        return Demand(
            name,
            self.owner,
            self.priority,
            device_count=self.devices,
            device_bytes=8 * GIB,
            required_kinds=frozenset() if self.kind is None else frozenset({self.kind}),
            span_nodes=True,
            expected_seconds=RUN_SECONDS if self.known else None,
        )


TARGETS = st.lists(
    st.builds(
        Target,
        priority=st.integers(0, HIGHEST),
        devices=st.integers(1, 4),
        kind=st.sampled_from((None, A100.kind, V100.kind)),
        owner=st.sampled_from(("ann", "dan")),
        known=st.booleans(),
        pause=st.integers(0, 10),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
@given(
    TARGETS,
    st.sampled_from((0.0, 20.0)),
    st.booleans(),
    st.booleans(),
    st.sampled_from((None, -1e6, 50.0)),
    st.integers(1, 2),
)
def test_an_endless_stream_of_the_highest_priority_starves_nobody(
    targets: list[Target],
    fair_share: float,
    windows: bool,
    known: bool,
    deadline: float | None,
    devices: int,
) -> None:
    """Gangs, kinds, quotas, reservations, shares and deadlines of others: each task starts at the latest when it has
    waited as long as all of these are worth together, and what was before it has had its time."""
    rules = PolicySettings(
        ageing_seconds=100.0,
        hold_after_seconds=30.0,
        fair_share_seconds=fair_share,
        windows=WINDOWS if windows else (),
        quotas={"ann": Quota(devices=4)},
        explain_limit=0,
    )
    state, now, number = MatcherState(settings=rules), 0.0, 0
    ends: dict[str, float] = {}
    started: dict[str, float] = {}

    def tell(event: Event) -> None:
        nonlocal state
        state, effects = decide(state, event, now)
        for effect in effects:
            if isinstance(effect, Reserve):
                ends[effect.task_id] = now + RUN_SECONDS
                started[effect.task_id] = now

    for each in FLEET:
        tell(NodeSeen(each))
    coming = {f"target{place}": target for place, target in enumerate(targets)}
    starts = dict(zip(coming, _running_sum([target.pause * STEP for target in targets]), strict=True))
    own = fair_share * sum(target.devices for target in targets)
    worth = (HIGHEST + rules.deadline_levels) * rules.ageing_seconds + own + rules.hold_after_seconds
    bound = worth + (BACKLOG + len(targets) + 1) * (RUN_SECONDS + 2 * STEP)
    last = max(starts.values()) + bound + WINDOWS[-1].ends
    while not coming.keys() <= started.keys() and now <= last:
        for task in [task for task, end in ends.items() if end <= now]:
            del ends[task]
            tell(TaskFinished(task, 1, "succeeded"))
        for task, at in starts.items():
            if at == now:
                tell(TaskArrived(coming[task].demand(task)))
        waiting = sum(1 for task in state.tasks if task not in coming and task not in started)
        while waiting < BACKLOG:
            number += 1
            tell(
                TaskArrived(
                    Demand(
                        f"t{number}",
                        f"other{number}",
                        HIGHEST,
                        device_count=devices,
                        device_bytes=8 * GIB,
                        expected_seconds=RUN_SECONDS if known else None,
                        deadline=None if deadline is None else now + deadline,
                    )
                )
            )
            waiting += f"t{number}" not in started
        tell(Tick())
        now += STEP
    assert number > BACKLOG, "others kept coming"
    for task, at in starts.items():
        closed = max(0.0, WINDOWS[-1].ends - at) if windows else 0.0
        assert task in started, f"{task} of {at} never started: {coming[task]}"
        assert started[task] - at <= bound + closed, f"{task} waited {started[task] - at}: {coming[task]}"


def _running_sum(pauses: list[float]) -> list[float]:
    return [sum(pauses[: place + 1]) for place in range(len(pauses))]
