"""A script goes in, a device is chosen, the task runs there, and what it really used comes back."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from oarlock import AsyncClient, Connection
from oarlock.up import Up
from oarlock_runtime import DeadLetters
from oarlock_schemas import InvalidMessage, TaskLaunched, TaskPlaced, TaskRecord, TaskRejected, read

from .conftest import ROOT
from .plain_nats import PlainNats

EXAMPLES = ROOT / "examples"
HOLD_150_MIB = """
import numpy as np
import time
block = np.ones((150, 1024, 128), dtype=np.float64)
time.sleep({seconds})
print("sum", block.sum())
"""


async def seen(client: AsyncClient, task_id: str) -> dict[str, dict[str, object]]:
    async with asyncio.timeout(60):
        return {event.name: event.body async for event in client.events(task_id)}


async def test_a_numpy_script_really_runs_and_teaches_the_estimator(client: AsyncClient) -> None:
    script = {"source": {"inline": HOLD_150_MIB.format(seconds=3)}, "name": "hold"}
    task_id = await client.submit(script)
    events = await seen(client, task_id)
    record = await client.wait(task_id)
    assert (record.state, record.simulated) == ("succeeded", False), record
    launched = TaskLaunched.model_validate(events["launched"])
    assert launched.runtime == "process" and launched.docker_command.startswith("docker run ")
    run = await client.run_record(task_id)
    assert run is not None and run.outcome == "ok" and not run.simulated
    measured = run.measured.peak_process_bytes
    assert measured is not None and measured > 150 * 2**20
    assert run.predicted.device_bytes is not None and run.predicted.device_bytes > 150 * 2**20
    assert [line.line async for line in client.logs(task_id) if line.stream == "stdout"] == ["sum 19660800.0"]
    async with asyncio.timeout(30):
        async for change in client.bus.bucket("tasks", TaskRecord).watch(task_id):
            if change.value is not None and change.value.measured_bytes == measured:
                break

    again = await client.submit(script)
    await seen(client, again)
    second = await client.run_record(again)
    assert second is not None and second.predicted.device_bytes is not None
    before = abs(run.predicted.device_bytes / measured - 1)
    after = abs(second.predicted.device_bytes / (second.measured.peak_process_bytes or 1) - 1)
    assert after <= max(before, 0.05)
    assert second.predicted.device_bytes != run.predicted.device_bytes or before < 0.02


async def test_a_simulated_run_says_so_everywhere(client: AsyncClient) -> None:
    task_id = await client.submit(EXAMPLES / "paddle_cnn_cifar10.py")
    events = await seen(client, task_id)
    record = await client.wait(task_id)
    assert record.state == "succeeded" and record.simulated
    assert events["launched"]["simulated"] is True and events["finished"]["simulated"] is True
    placed = TaskPlaced.model_validate(events["placed"])
    assert all(device.simulated for device in placed.devices)
    assert placed.candidates and placed.portrait.evidence
    run = await client.run_record(task_id)
    assert run is not None and run.simulated


async def test_what_cannot_fit_is_intercepted_with_advice(client: AsyncClient) -> None:
    task_id = await client.submit(EXAMPLES / "torch_gpt_too_large.py")
    events = await seen(client, task_id)
    rejected = TaskRejected.model_validate(events["rejected"])
    assert rejected.code == "no_device_fits" and "at least" in rejected.message
    assert rejected.advice and all(item.text and item.text_zh for item in rejected.advice)


async def test_the_seed_task_is_sized_by_its_model_name(client: AsyncClient) -> None:
    task_id = await client.submit(EXAMPLES / "ernie_task.yaml")
    placed = TaskPlaced.model_validate((await seen(client, task_id))["placed"])
    assert placed.portrait.framework == "paddlepaddle"
    assert placed.portrait.parameters.total is not None and placed.portrait.parameters.total > 50_000_000
    assert placed.portrait.batch.size_per_device == 16


async def test_out_of_memory_and_errors_are_told_apart(client: AsyncClient) -> None:
    failing = await client.submit({"source": {"inline": "import sys\nprint('x', file=sys.stderr)\nsys.exit(3)\n"}})
    dying = await client.submit(
        {
            "source": {"inline": "import numpy as np\nraise MemoryError('no more')\n"},
            "resource_policy": {"allow_retry_on_oom": False},
        }
    )
    events = await seen(client, failing)
    assert (events["finished"]["outcome"], events["finished"]["exit_code"]) == ("error", 3)
    assert (await seen(client, dying))["finished"]["outcome"] == "oom"


async def test_a_running_task_is_cancelled(client: AsyncClient) -> None:
    task_id = await client.submit({"source": {"inline": HOLD_150_MIB.format(seconds=60)}})
    async with asyncio.timeout(30):
        async for event in client.events(task_id):
            if event.name == "launched":
                await client.cancel(task_id)
    assert (await client.wait(task_id)).state == "cancelled"


async def test_a_bare_publish_of_another_program_starts_a_task(shared_up: Up, client: AsyncClient) -> None:
    connection: Connection = shared_up.connection
    plain = await asyncio.to_thread(PlainNats, connection.url, connection.token or "")
    plain.subscribe("oarlock.tasks.finished.*")
    body = {"source": {"inline": "import numpy\nprint('bare')\n"}, "name": "bare", "made_by": "another program"}
    plain.publish("oarlock.tasks.submitted", json.dumps(body).encode())

    def finished() -> dict[str, object]:
        while True:
            subject, data = plain.receive()
            if subject.startswith("oarlock.tasks.finished."):
                return dict(json.loads(data))

    event = await asyncio.wait_for(asyncio.to_thread(finished), 30)
    assert event["outcome"] == "ok"
    assert (await client.task(str(event["task_id"]))).name == "bare"
    plain.close()


async def test_a_malformed_publish_is_buried_and_announced(shared_up: Up, client: AsyncClient) -> None:
    connection = shared_up.connection
    plain = await asyncio.to_thread(PlainNats, connection.url, connection.token or "")
    plain.subscribe("oarlock.tasks.rejected.*")
    plain.publish("oarlock.tasks.submitted", b'{"task": {"batch_size_per_gpu": "many"}}')
    _, data = await asyncio.wait_for(asyncio.to_thread(plain.receive), 15)
    rejected, _ = read(TaskRejected, data)
    assert rejected.code == "invalid_task"
    assert rejected.faults[0]["path"] == "$.task.batch_size_per_gpu"
    # Announced first, then buried.
    async with asyncio.timeout(30):
        async for letter in client.bus.watch(client.bus.subjects.dead("profiler"), start="all"):
            if letter.data == b'{"task": {"batch_size_per_gpu": "many"}}':
                break
    assert await DeadLetters(client.bus).list("profiler")
    plain.close()


async def test_a_request_is_answered_with_the_id_or_with_every_fault(shared_up: Up) -> None:
    connection = shared_up.connection
    plain = await asyncio.to_thread(PlainNats, connection.url, connection.token or "")
    good = json.loads(
        await asyncio.to_thread(plain.request, "oarlock.submit", b'{"source": {"inline": "import numpy"}}')
    )
    assert good["task_id"] and good["faults"] == []
    bad = json.loads(await asyncio.to_thread(plain.request, "oarlock.submit", b'{"priority": -1, "retries": 99}'))
    assert bad["task_id"] is None
    assert {fault["path"] for fault in bad["faults"]} == {"$.priority", "$.retries"}
    plain.close()


async def test_the_sdk_lists_every_fault(client: AsyncClient) -> None:
    with pytest.raises(InvalidMessage) as caught:
        await client.submit({"priority": 1000, "owner": "no spaces"})
    assert {fault.path for fault in caught.value.faults} == {"$.priority", "$.owner"}


async def test_the_command_submits_and_watches(shared_up: Up, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import numpy as np\nimport helper\nprint('hello', helper.x, np.zeros(3).sum())\n")
    (tmp_path / "helper.py").write_text("x = 42\n")
    command = [sys.executable, "-m", "oarlock", "submit", str(script), "--watch", "--data", str(shared_up.data)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    text = out.decode()
    assert process.returncode == 0, text
    assert "hello 42 0.0" in text and "succeeded" in text and "docker run" in text


async def test_an_operator_cordons_a_node_and_tunes_the_policy(client: AsyncClient) -> None:
    node = next(d.state.node for d in await client.fleet() if d.state.kind == "RTX 3090")
    changed = await client.cordon(node)
    assert len(changed) == 4
    try:
        required = {"resource_policy": {"required_devices": ["RTX 3090"]}}
        text = (EXAMPLES / "paddle_cnn_cifar10.py").read_text()
        task_id = await client.submit({"source": {"inline": text}, **required})
        async with asyncio.timeout(60):
            async for event in client.events(task_id):
                if event.name in {"queued", "rejected"}:
                    assert any(r["reason"] in {"unavailable", "cordoned", "draining"} for r in event.body["reasons"])
                    break
    finally:
        await client.cordon(node, cordoned=False)
    await client.cancel(task_id)
    before = await client.policy()
    assert await client.policy({"preset": "cost"}) == {**before, "preset": "cost"}
    async with asyncio.timeout(30):
        async for message in client.bus.watch(client.bus.subjects.policy_updated(), start="all"):
            if message.json()["changes"].get("preset") == "cost":
                break
    assert await client.policy({"preset": None}) == before


async def test_an_array_runs_as_tasks_that_know_their_index(client: AsyncClient) -> None:
    script = "import os\nimport numpy as np\nprint('index', os.environ['OARLOCK_ARRAY_INDEX'], np.ones(3).sum())\n"
    array_id = await client.submit({"source": {"inline": script}, "array": "3-5%2", "name": "sweep"})
    async with asyncio.timeout(60):
        record = await client.wait(array_id)
    assert (record.state, record.message) == ("succeeded", "3 succeeded")
    tasks = await client.tasks_of(record)
    assert [task.task_id for task in tasks] == [f"{array_id}-{index}" for index in (3, 4, 5)]
    lines = [line.line async for line in client.logs(f"{array_id}-4") if line.stream == "stdout"]
    assert lines == ["index 4 3.0"]
