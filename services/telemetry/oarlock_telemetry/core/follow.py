"""When a run is followed, and when its record is written: once per attempt, whatever comes late or twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from oarlock_telemetry.core.runs import Facts, Finish, Followed, Key, Reading, Tally
from oarlock_telemetry.core.tally import add

KEEP_RECORDED_SECONDS = 86_400.0
"""How long a recorded run is remembered, so that its events may come again."""

NOTABLE_RISE = 0.01
"""A peak that rises by more than this share is written down at once; smaller steps wait for the next turn."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A run of this node began."""

    facts: Facts


@dataclass(frozen=True, slots=True)
class Sampled:
    """Readings of the runs that are followed."""

    readings: Mapping[Key, Reading]


@dataclass(frozen=True, slots=True)
class Finished:
    """A run ended. ``facts`` come along where its launch was never heard of here (looked up in the stream)."""

    key: Key
    finish: Finish
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Its record has been stored by the bus."""

    key: Key


Event = Launched | Sampled | Finished | Recorded


@dataclass(frozen=True, slots=True)
class Write:
    """Publish the run's record; answer with ``Recorded``."""

    run: Followed


@dataclass(frozen=True, slots=True)
class Save:
    """Write the state down: something changed that no sample brings back."""


Effect = Write | Save

_NO_RUNS: Mapping[Key, Followed] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class State:
    """The runs of this node, followed and recorded."""

    runs: Mapping[Key, Followed] = field(default_factory=lambda: _NO_RUNS)

    @property
    def going_on(self) -> list[Followed]:
        """The runs that have not ended."""
        return [run for run in self.runs.values() if run.finish is None]

    def put(self, run: Followed) -> State:
        return State(MappingProxyType({**self.runs, run.facts.key: run}))


def decide(state: State, event: Event, now: float) -> tuple[State, list[Effect]]:
    """What becomes of the followed runs when ``event`` happens at ``now`` (seconds since the epoch)."""
    match event:
        case Launched(facts):
            if facts.key in state.runs:
                return state, []
            return state.put(Followed(facts)), [Save()]
        case Sampled(readings):
            return _sampled(state, readings)
        case Finished():
            return _finished(state, event)
        case Recorded(key):
            run = state.runs.get(key)
            if run is None or run.recorded_at_seconds is not None:
                return state, []
            state = state.put(replace(run, recorded_at_seconds=now))
            kept = {k: r for k, r in state.runs.items() if not _old(r, now)}
            return State(MappingProxyType(kept)), [Save()]


def _sampled(state: State, readings: Mapping[Key, Reading]) -> tuple[State, list[Effect]]:
    changed = dict(state.runs)
    notable = False
    for key, reading in readings.items():
        run = changed.get(key)
        # A sample that was taken before the end and is folded after it belongs to the run no more.
        if run is not None and run.finish is None:
            changed[key] = replace(run, tally=add(run.tally, reading))
            notable = notable or _rose(run.tally, changed[key].tally)
    return State(MappingProxyType(changed)), [Save()] if notable else []


def _rose(before: Tally, after: Tally) -> bool:
    """Whether a peak moved so far that losing it would spoil the record."""
    pairs = (
        (before.peak_process_bytes, after.peak_process_bytes),
        (before.peak_device_bytes, after.peak_device_bytes),
    )
    return any(new is not None and new > (old or 0) * (1 + NOTABLE_RISE) for old, new in pairs)


def _finished(state: State, event: Finished) -> tuple[State, list[Effect]]:
    run = state.runs.get(event.key)
    if run is None:
        if event.facts is None:
            # It never began (refused, or its start failed): there is nothing to measure.
            return state, []
        run = Followed(event.facts)
    if run.recorded_at_seconds is not None:
        return state, []
    if run.finish is None:
        run = replace(run, finish=event.finish)
    return state.put(run), [Save(), Write(run)]


def _old(run: Followed, now: float) -> bool:
    return run.recorded_at_seconds is not None and now - run.recorded_at_seconds > KEEP_RECORDED_SECONDS
