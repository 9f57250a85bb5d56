"""Wires the profiler: ``python -m oarlock_profiler``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from oarlock_profiler.adapters.task_reader import TaskReader
from oarlock_profiler.handlers.learning import Learning
from oarlock_profiler.handlers.profiling import Profiling
from oarlock_profiler.handlers.submission import Submission
from oarlock_profiler.settings import ProfilerSettings
from oarlock_runtime import Service, Tracing, configure_logging, connect
from oarlock_schemas import RunRecord, TaskSubmitted


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def main(settings: ProfilerSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    configure_logging("profiler", log_format=settings.log_format, level=settings.log_level)
    bus = await connect(settings, "profiler")
    service = Service(
        bus,
        "profiler",
        http_host=settings.http_host,
        http_port=settings.http_port,
        tracing=Tracing("profiler", settings.otlp_endpoint),
        stop_grace_seconds=settings.stop_grace_seconds,
    )
    reader = TaskReader(
        bus,
        seconds=settings.read_seconds,
        memory_bytes=settings.read_memory_bytes,
        library_paths=settings.library_paths(),
        roots=settings.roots(),
    )
    submission = Submission(bus, _now)
    service.serve(bus.subjects.submit(), submission.submit)
    service.consume(
        "profiler-submitted",
        bus.subjects.all_submitted(),
        TaskSubmitted,
        Profiling(bus, reader, _now).submitted,
        concurrency=settings.read_concurrency,
        on_invalid=submission.refuse,
    )
    service.consume("profiler-completed", bus.subjects.completed(), RunRecord, Learning(bus, _now).completed)
    service.background(reader.stand_by, name="reader")
    await service.run()


if __name__ == "__main__":
    asyncio.run(main(ProfilerSettings()))
