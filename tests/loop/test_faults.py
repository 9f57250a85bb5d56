"""Each service, and the server, killed (kill -9) in mid-task: the task ends exactly once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from oarlock import AsyncClient
from oarlock.up import SERVICES, Up

from .conftest import started

SCRIPT = "import numpy as np\nimport time\nx = np.ones(2_000_000)\ntime.sleep(3)\nprint(x.sum())\n"


@pytest.fixture
async def up(tmp_path: Path) -> AsyncIterator[Up]:
    up = await asyncio.to_thread(started, tmp_path)
    watching = asyncio.create_task(up.watch(), name="watch")
    try:
        yield up
    finally:
        watching.cancel()
        await asyncio.to_thread(up.stop)


def kill(up: Up, name: str) -> None:
    if name == "server":
        assert up.server is not None
        up.server.kill()
        return
    service = next(s for s in up.services if s.name == name)
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGKILL)


@pytest.mark.parametrize("name", [*(s for s in SERVICES if s != "gateway"), "server"])
@pytest.mark.parametrize("moment", ["submitted", "launched"])
async def test_killed_in_mid_task_it_ends_exactly_once(up: Up, name: str, moment: str) -> None:
    async with await AsyncClient.connect(up.connection) as client:
        if moment == "submitted":
            asyncio.get_running_loop().call_later(0.05, kill, up, name)
        task_id = await client.submit({"source": {"inline": SCRIPT}}, timeout_seconds=30)
        finished = []
        async with asyncio.timeout(90):
            async for event in client.events(task_id):
                if event.name == "launched" and moment == "launched":
                    kill(up, name)
                if event.name == "finished":
                    finished.append(event.body)
        record = await client.wait(task_id)
        run = await client.run_record(task_id, timeout_seconds=30)
        assert record.state == "succeeded", record
        assert [(f["attempt"], f["outcome"]) for f in finished] == [(1, "ok")]
        assert [step.state for step in record.history].count("succeeded") == 1
        assert run is not None and run.outcome == "ok"
        lines = [line.line async for line in client.logs(task_id) if line.stream == "stdout"]
        assert lines == ["2000000.0"]
