"""What is told of a run, as events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from oarlock_launcher.core.logs import LINE_SCHEMA_MAX_LENGTH, Line, shorten
from oarlock_launcher.core.run import Run
from oarlock_schemas import GangBook, LogLine, TaskFinished, TaskLaunched

_TAIL_LINES = 50
_TAIL_LINE_LENGTH = 1000
_COMMAND_MAX_LENGTH = 20_000


def rfc3339(seconds: float) -> str:
    """Seconds since the epoch as bus messages write time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def launched_event(run: Run, site: str, runtime: str) -> TaskLaunched:
    """`tasks.launched` of a started run."""
    chosen: Any = runtime
    return TaskLaunched(
        task_id=run.task_id,
        attempt=run.attempt,
        site=site,
        node=run.devices[0].node,
        runtime=chosen,
        run_id=run.run_id or "",
        pid=run.pid,
        device_uids=[device.uid for device in run.devices],
        command=[shorten(part, _COMMAND_MAX_LENGTH) for part in run.command],
        docker_command=shorten(run.docker_command, 2 * _COMMAND_MAX_LENGTH),
        simulated=run.simulated,
        predicted_bytes=run.predicted_bytes,
        predicted_step_seconds=run.predicted_step_seconds,
        at=rfc3339(run.started_at_seconds or run.accepted_at_seconds),
    )


def times_of(run: Run, now: float) -> tuple[str | None, str]:
    """When an ended run began, if it did, and when it ended."""
    ended = run.ending.ended_at_seconds if run.ending else None
    return None if run.started_at_seconds is None else rfc3339(run.started_at_seconds), rfc3339(ended or now)


def gang_times(book: GangBook) -> tuple[str | None, str]:
    """When the first member of an ended gang began, if any did, and when the last ended."""
    members = book.members.values()
    started = [member.started_at for member in members if member.started_at is not None]
    ended = [member.finished_at for member in members if member.finished_at is not None]
    return min(started, default=None), max(ended)


def finished_event(run: Run, site: str, times: tuple[str | None, str]) -> TaskFinished:
    """`tasks.finished` of an ended run."""
    ending = run.ending
    outcome: Any = run.outcome
    return TaskFinished(
        task_id=run.task_id,
        attempt=run.attempt,
        site=site,
        outcome=outcome,
        exit_code=ending.exit_code if ending else None,
        message=run.message,
        device_uids=run.all_device_uids,
        started_at=times[0],
        finished_at=times[1],
        log_tail=[shorten(line, _TAIL_LINE_LENGTH) for line in (ending.log_tail[-_TAIL_LINES:] if ending else ())],
        simulated=run.simulated,
    )


def log_event(run: Run, line: Line, now: float) -> LogLine:
    """`logs` of one line."""
    return LogLine(
        task_id=run.task_id,
        attempt=run.attempt,
        stream=line.stream,
        line=shorten(line.text if run.gang is None else f"[{run.gang.node}] {line.text}", LINE_SCHEMA_MAX_LENGTH),
        number=line.number,
        at=rfc3339(now),
    )
