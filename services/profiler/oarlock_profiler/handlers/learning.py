"""Learning from completed runs: the calibration moves by compare-and-set, and says so."""

from __future__ import annotations

from collections.abc import Callable

from oarlock_profiler.core.calibration import Change, State, empty, learn
from oarlock_profiler.handlers.profiling import CALIBRATION_KEY
from oarlock_runtime import Bus, Context
from oarlock_schemas import EstimatorRecalibrated, RunRecord

LEARNED_KEPT = 2000
"""Runs remembered by id, so that a record delivered twice teaches once."""


class Learning:
    """Handles `runs.completed`. Any number of profilers learn as one."""

    def __init__(self, bus: Bus, now: Callable[[], str]) -> None:
        self._bus = bus
        self._now = now

    async def completed(self, record: RunRecord, context: Context) -> None:
        """Learn once from the run, and publish `estimator.recalibrated` when a cell moved."""
        run = f"{record.task_id}:{record.attempt}"
        lesson = _kept_apart(record) if record.simulated else record
        change: Change | None = None

        def step(old: State | None) -> State | None:
            nonlocal change
            change = None
            state = old or empty()
            learned = state.get("learned", [])
            if run in learned:
                return None
            new, change = learn(state, lesson)
            if change is None:
                return None
            return {**new, "learned": [*learned, run][-LEARNED_KEPT:]}

        await self._bus.bucket("calibration").change(CALIBRATION_KEY, step)
        if change is None:
            return
        event = EstimatorRecalibrated(
            cell=change.cell,
            factor_before=change.factor_before,
            factor_after=change.factor_after,
            observations=change.observations,
            task_id=record.task_id,
            at=self._now(),
        )
        await context.publish(self._bus.subjects.estimator_recalibrated(), event, msg_id=f"{run}:recalibrated")


def _kept_apart(record: RunRecord) -> RunRecord:
    """A simulated run teaches cells of its own, which no real prediction reads."""
    return record.model_copy(update={"framework": f"simulated-{record.framework}"})
