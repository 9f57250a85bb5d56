"""The life of a site's runs: each step, and any order of steps."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock_launcher.core import effects as do
from oarlock_launcher.core import events as on
from oarlock_launcher.core.decide import KEEP_REPORTED_SECONDS, decide
from oarlock_launcher.core.fence import judge
from oarlock_launcher.core.run import DeviceGrant, Ending, Run, SiteState


def run(task_id: str = "t", attempt: int = 1, fence: int = 5, uid: str = "GPU-1", **changes: object) -> Run:
    """A run as a placement asks for it."""
    device = DeviceGrant(uid=uid, kind="A100", vendor="nvidia", node="n", fence=fence)
    made = Run(task_id, attempt, (device,), exclusive=False, accepted_at_seconds=0.0)
    return replace(made, **changes)  # type: ignore[arg-type]


def started(task_id: str = "t", attempt: int = 1) -> on.Started:
    return on.Started((task_id, attempt), "id", 7, ("python",), "docker run")


def kinds(effects: list[do.Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def after(*events: on.Event, state: SiteState | None = None, now: float = 10.0) -> tuple[SiteState, list[str]]:
    """The state after ``events``, and the effects of the last one."""
    state = state or SiteState()
    effects: list[do.Effect] = []
    for event in events:
        state, effects = decide(state, event, now)
    return state, kinds(effects)


def test_the_plain_life_of_a_run() -> None:
    state, effects = after(on.Placed(run()))
    assert effects == ["Save", "Start"]
    state, effects = after(started(), state=state)
    assert effects == ["Save", "TellLaunched", "Follow"]
    state, effects = after(on.Exited(("t", 1), Ending(exit_code=0)), state=state)
    assert effects == ["Save", "TellFinished"]
    assert state.runs["t", 1].outcome == "ok"
    state, effects = after(on.Reported(("t", 1)), state=state)
    assert effects == ["Save", "Discard"]


def test_redelivery_starts_nothing_at_any_point() -> None:
    steps: list[on.Event] = [
        on.Placed(run()),
        started(),
        on.Exited(("t", 1), Ending(exit_code=0)),
        on.Reported(("t", 1)),
    ]
    for count in range(1, len(steps) + 1):
        _, effects = after(*steps[:count], on.Placed(run()))
        assert "Start" not in effects and "Save" not in effects
    # Only an end that was never told is told again.
    assert after(*steps[:3], on.Placed(run()))[1] == ["TellFinished"]


def test_cancel_while_it_is_being_started() -> None:
    state, effects = after(on.Placed(run()), on.Cancel("t", "ann"))
    assert effects == ["RememberCancel", "Save", "Stop"]
    # It did start before it could be held back.
    stopped, effects = after(started(), state=state)
    assert effects == ["Save", "TellLaunched", "Follow", "Stop"]
    stopped, _ = after(on.Exited(("t", 1), Ending(exit_code=0)), state=stopped)
    assert stopped.runs["t", 1].outcome == "cancelled"
    # Or it did not.
    held, effects = after(on.StartFailed(("t", 1), "stopped"), state=state)
    assert held.runs["t", 1].outcome == "cancelled" and "TellFinished" in effects


def test_preemption_ends_one_attempt_and_leaves_the_next_alone() -> None:
    state, _ = after(on.Placed(run()), started())
    assert after(on.Cancel("t", "matcher", "for another", preempt_attempt=2), state=state)[1] == []
    state, effects = after(on.Cancel("t", "matcher", "for another", preempt_attempt=1), state=state)
    assert effects == ["Save", "Stop"]
    state, _ = after(on.Exited(("t", 1), Ending(exit_code=0)), state=state)
    assert (state.runs["t", 1].outcome, state.cancelled) == ("preempted", {})


def test_time_limit_and_forgetting() -> None:
    state, _ = after(on.Placed(run(timeout_seconds=5.0)), started(), now=100.0)
    assert after(on.Tick(), state=state, now=104.9)[1] == []
    state, effects = after(on.Tick(), state=state, now=105.0)
    assert effects == ["Save", "Stop"]
    assert after(on.Tick(), state=state, now=106.0)[1] == []
    state, _ = after(on.Exited(("t", 1), Ending(signal=15)), on.Reported(("t", 1)), state=state, now=107.0)
    assert state.runs["t", 1].outcome == "timeout"
    state, effects = after(on.Tick(), state=state, now=107.0 + KEEP_REPORTED_SECONDS + 1)
    assert effects == ["Forget"] and not state.runs


def test_what_a_restart_finds() -> None:
    accepted, running = run(), run(phase="running", started_at_seconds=1.0, launch_told=True)
    stopping = run(phase="stopping", stop_reason="cancelled", started_at_seconds=1.0, launch_told=True)
    assert after(on.Recovered(accepted, present=False))[1] == ["Start"]
    assert after(on.Recovered(accepted, present=True))[1] == ["Start"]
    assert after(on.Recovered(running, present=True))[1] == ["Follow"]
    assert after(on.Recovered(stopping, present=True))[1] == ["Follow", "Stop"]
    untold = run(phase="running", started_at_seconds=1.0)
    state, effects = after(on.Recovered(untold, present=True))
    assert effects == ["TellLaunched", "Follow"]
    assert after(on.LaunchTold(("t", 1)), state=state)[1] == ["Save"]
    ended = run(phase="ended", outcome="ok", started_at_seconds=1.0)
    assert after(on.Recovered(ended, present=True))[1] == ["TellLaunched", "TellFinished"]
    state, effects = after(on.Recovered(running, present=False))
    assert effects == ["Save", "TellFinished"] and state.runs["t", 1].outcome == "lost"
    assert after(on.Recovered(stopping, present=False))[0].runs["t", 1].outcome == "cancelled"
    assert after(on.Recovered(run(phase="ended", outcome="ok"), present=True))[1] == ["TellFinished"]
    assert after(on.Recovered(run(phase="reported", outcome="ok"), present=False))[1] == []


def test_refusals() -> None:
    for event in (
        on.Placed(run(), unheld=("GPU-1",)),
        on.Placed(run(), foreign="it is for another node"),
        on.Placed(run(), final="failed"),
        on.Placed(run(), newer_attempt=2),
    ):
        state, effects = after(event)
        assert effects == ["Save", "TellFinished"]
        assert state.runs["t", 1].outcome == "refused"
    assert after(on.Placed(run(), final="cancelled"))[0].runs["t", 1].outcome == "cancelled"
    # A refused run has had nothing, so its fence says nothing to others.
    state, _ = after(on.Placed(run("x", fence=99, exclusive=True), unheld=("GPU-1",)))
    assert after(on.Placed(run("y", fence=5)), state=state)[1] == ["Save", "Start"]


def test_fences() -> None:
    older, newer = run("a", fence=5), run("b", fence=6)
    alone = replace(newer, exclusive=True)
    assert judge(older, [newer], ()).refusal is None
    assert "stale" in str(judge(older, [alone], ()).refusal)
    assert "stale" in str(judge(older, [replace(alone, phase="reported")], ()).refusal)
    assert "stale" in str(judge(replace(older, exclusive=True), [newer], ()).refusal)
    assert judge(alone, [older], ()).superseded == (older,)
    assert judge(alone, [replace(older, phase="reported")], ()).superseded == ()
    assert judge(run("a", uid="GPU-2"), [alone], ()).refusal is None
    assert judge(older, [older], ()).refusal is None


def test_superseded_runs_end_before_the_placement_is_taken() -> None:
    state, _ = after(on.Placed(run("a", fence=5)), started("a"))
    state, effects = after(on.Placed(run("b", fence=6, exclusive=True)), state=state)
    assert effects == ["Save", "Stop", "Defer"]
    assert ("b", 1) not in state.runs
    state, _ = after(on.Exited(("a", 1), Ending(signal=15)), state=state)
    assert state.runs["a", 1].outcome == "lost"
    assert after(on.Placed(run("b", fence=6, exclusive=True)), state=state)[1] == ["Save", "Start"]


KEYS = [("a", 1), ("a", 2), ("b", 1)]
EVENTS = st.one_of(
    st.builds(
        lambda key, fence, exclusive, unheld: on.Placed(
            run(key[0], key[1], fence, exclusive=exclusive), unheld=("GPU-1",) if unheld else ()
        ),
        st.sampled_from(KEYS),
        st.integers(1, 4),
        st.booleans(),
        st.integers(0, 9).map(lambda n: n == 0),
    ),
    st.builds(lambda key: started(*key), st.sampled_from(KEYS)),
    st.builds(on.StartFailed, st.sampled_from(KEYS), st.just("no")),
    st.builds(on.Exited, st.sampled_from(KEYS), st.builds(Ending, exit_code=st.sampled_from([0, 1, None])), st.none()),
    st.builds(on.Cancel, st.sampled_from(["a", "b"]), st.just("ann")),
    st.builds(on.Reported, st.sampled_from(KEYS)),
    st.builds(on.LaunchTold, st.sampled_from(KEYS)),
    st.just(on.Tick()),
)


@given(st.lists(EVENTS, max_size=60))
@settings(max_examples=400, deadline=None)
def test_whatever_happens_a_run_starts_and_ends_once(events: list[on.Event]) -> None:
    state = SiteState()
    starts: dict[object, int] = {}
    outcomes: dict[object, set[str | None]] = {}
    for now, event in enumerate(events):
        state, effects = decide(state, event, float(now))
        for effect in effects:
            if isinstance(effect, do.Start):
                starts[effect.run.key] = starts.get(effect.run.key, 0) + 1
            if isinstance(effect, do.TellFinished):
                outcomes.setdefault(effect.run.key, set()).add(effect.run.outcome)
            if isinstance(effect, do.TellLaunched):
                assert effect.run.started_at_seconds is not None
        alone = [r for r in state.runs.values() if r.exclusive and r.active]
        # A device given to one alone is used by one alone.
        assert not alone or sum(r.active for r in state.runs.values()) == 1
    assert all(count == 1 for count in starts.values())
    assert all(len(seen) == 1 for seen in outcomes.values())
