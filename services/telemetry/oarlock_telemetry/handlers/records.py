"""Facts of a run from its events, and its record from facts, samples and end."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from oarlock_schemas import Measured, Predicted, RunRecord, TaskFinished, TaskLaunched, TaskPlaced
from oarlock_telemetry.core.runs import Facts, Finish, Followed
from oarlock_telemetry.core.tally import close


def facts_of(launched: TaskLaunched, placed: TaskPlaced | None, known_kind: tuple[str, str] | None) -> Facts:
    """What is known of a run at its launch.

    ``known_kind``: (kind, vendor) of its first device by the inventory, for a placement that is no longer stored.
    """
    kind, vendor = known_kind or ("unknown", "unknown")
    facts = Facts(
        task_id=launched.task_id,
        attempt=launched.attempt,
        node=launched.node,
        device_uids=tuple(launched.device_uids),
        vendor=vendor,
        device_kind=kind,
        runtime=launched.runtime,
        run_id=launched.run_id,
        pid=launched.pid,
        started_at=launched.at,
        simulated=launched.simulated,
        predicted_bytes=launched.predicted_bytes,
        raw_predicted_bytes=launched.predicted_bytes,
        step_seconds=launched.predicted_step_seconds,
    )
    if placed is None:
        return facts
    portrait = placed.portrait
    predicted = facts.predicted_bytes if facts.predicted_bytes is not None else placed.predicted_bytes
    if predicted is None:
        predicted = portrait.memory.peak.device_bytes
    return replace(
        facts,
        vendor=placed.devices[0].vendor,
        device_kind=placed.devices[0].kind,
        owner=placed.task.owner,
        framework=portrait.framework or placed.task.task.framework,
        family=portrait.family,
        precision=portrait.precision,
        source_digest=portrait.source_digest,
        predicted_bytes=predicted,
        raw_predicted_bytes=portrait.memory.peak.raw_device_bytes or predicted,
        reserve_bytes=portrait.memory.peak.reserve_bytes,
        step_seconds=placed.predicted_step_seconds if facts.step_seconds is None else facts.step_seconds,
        method=portrait.method,
    )


def finish_of(event: TaskFinished, kernel_peak_bytes: int | None) -> Finish:
    """How a run ended."""
    return Finish(
        outcome=event.outcome,
        started_at=event.started_at,
        finished_at=event.finished_at,
        duration_seconds=_between(event.started_at, event.finished_at),
        kernel_peak_bytes=kernel_peak_bytes,
    )


def record_of(run: Followed, device_total_bytes: int | None) -> RunRecord:
    """`runs.completed`: predicted and measured side by side."""
    facts, finish = run.facts, run.finish
    if finish is None:
        raise ValueError(f"run {facts.key} has not ended")
    totals = close(facts, run.tally, finish)
    outcome: Any = finish.outcome
    return RunRecord(
        task_id=facts.task_id,
        attempt=facts.attempt,
        owner=facts.owner,
        outcome=outcome,
        framework=facts.framework,
        family=facts.family,
        precision=facts.precision,
        device_kind=facts.device_kind,
        device_uids=list(facts.device_uids),
        source_digest=facts.source_digest,
        predicted=Predicted(
            device_bytes=facts.predicted_bytes,
            raw_device_bytes=facts.raw_predicted_bytes,
            reserve_bytes=facts.reserve_bytes,
            step_seconds=facts.step_seconds,
            method=facts.method,
        ),
        measured=Measured(
            peak_device_bytes=totals.peak_device_bytes,
            peak_process_bytes=totals.peak_process_bytes,
            mean_utilization_ratio=totals.mean_utilization_ratio,
            peak_temperature_celsius=totals.peak_temperature_celsius,
            energy_joules=totals.energy_joules,
            duration_seconds=totals.duration_seconds,
            samples=totals.samples,
            absent=dict(totals.absent),
        ),
        device_total_bytes=run.tally.device_total_bytes or device_total_bytes,
        simulated=facts.simulated,
        started_at=finish.started_at or facts.started_at,
        finished_at=finish.finished_at,
    )


def _between(start: str | None, end: str) -> float | None:
    if start is None:
        return None
    try:
        return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
    except (ValueError, TypeError):
        return None
