"""`oarlock up` as a lasting service: data is kept, a second one is refused, one trace spans all services."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from oarlock import AsyncClient, Client
from oarlock.connection import STATE_FILE
from oarlock.up import Up, UpError

from .otlp_receiver import OtlpReceiver

SCRIPT = {"source": {"inline": "import numpy as np\nprint(np.ones(1000).sum())\n"}, "name": "kept"}


async def test_tasks_and_runs_outlive_a_restart_and_a_second_one_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = Up(data)
    await asyncio.to_thread(first.start)
    try:
        with pytest.raises(UpError, match="already running"):
            Up(data).start()
        assert stat.S_IMODE((data / STATE_FILE).stat().st_mode) == 0o600
        async with await AsyncClient.connect(first.connection) as client:
            task_id = await client.submit(SCRIPT)
            assert (await client.wait(task_id)).state == "succeeded"
            assert await client.run_record(task_id) is not None
    finally:
        await asyncio.to_thread(first.stop)
    assert not (data / STATE_FILE).exists()
    second = Up(data)
    await asyncio.to_thread(second.start)
    try:

        def look() -> tuple[list[str], list[str]]:
            with Client.connect(second.connection) as client:
                return [t.task_id for t in client.tasks()], [r.task_id for r in client.history()]

        assert await asyncio.to_thread(look) == ([task_id], [task_id])
    finally:
        await asyncio.to_thread(second.stop)


async def test_one_trace_spans_all_services(tmp_path: Path) -> None:
    receiver = OtlpReceiver()
    up = Up(tmp_path / "data", environment={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url})
    await asyncio.to_thread(up.start)
    try:
        async with await AsyncClient.connect(up.connection) as client:
            task_id = await client.submit(SCRIPT)
            record = await client.wait(task_id)
            assert record.state == "succeeded"
            assert await client.run_record(task_id) is not None
    finally:
        # Stopping flushes what the services have not yet exported.
        await asyncio.to_thread(up.stop)
        receiver.close()
    services = receiver.services_by_trace()
    assert record.trace_id is not None
    assert services[record.trace_id] >= {"profiler", "matcher", "launcher", "telemetry"}
