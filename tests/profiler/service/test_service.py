"""The profiler as a service on a real bus: where code comes from, what is refused, and what is learned once."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from oarlock_profiler.adapters.task_reader import TaskReader
from oarlock_profiler.handlers.learning import Learning
from oarlock_profiler.handlers.profiling import CALIBRATION_KEY, Profiling
from oarlock_profiler.handlers.submission import Submission
from oarlock_runtime import Bus, DeadLetters, EmbeddedServer, Service
from oarlock_schemas import (
    DeviceState,
    EstimatorRecalibrated,
    Measured,
    Predicted,
    RunRecord,
    TaskProfiled,
    TaskRecord,
    TaskRejected,
    TaskSubmitted,
    read,
)

AT = "2026-01-01T00:00:00+00:00"
MLP = """
import torch
from torch import nn
model = nn.Linear({width}, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.randn(32, {width}, device="cuda")).sum()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


@pytest.fixture
async def profiler(nats: EmbeddedServer, bus: Bus, tmp_path: Path) -> AsyncIterator[Path]:
    """A profiler on a connection of its own; yields the one folder that ``source.path`` may name."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    async with await Bus.connect(nats.url, token=nats.token, name="profiler") as own:
        service = Service(own, "profiler")
        reader = TaskReader(own, seconds=5, memory_bytes=2**30, library_paths=[], roots=[allowed])
        submission = Submission(own, lambda: AT)
        handler = Profiling(own, reader, lambda: AT).submitted
        subjects = own.subjects.all_submitted()
        service.consume("profiler-submitted", subjects, TaskSubmitted, handler, on_invalid=submission.refuse)
        service.consume("profiler-completed", own.subjects.completed(), RunRecord, Learning(own, lambda: AT).completed)
        async with service:
            yield allowed


async def submit(bus: Bus, task_id: str, **task: Any) -> None:
    body = {"task_id": task_id, **task}
    await bus.publish(bus.subjects.submitted(task_id), body, msg_id=f"{task_id}:submitted:1")


async def answer(bus: Bus, task_id: str) -> TaskProfiled | TaskRejected:
    """The profiler's answer, whichever it is."""
    async with asyncio.timeout(60):
        subjects = [bus.subjects.profiled(task_id), bus.subjects.rejected(task_id)]
        async for message in bus.watch(subjects, start="all"):
            if ".profiled." in message.subject:
                return read(TaskProfiled, message.data)[0]
            return read(TaskRejected, message.data)[0]
    raise AssertionError("unreachable")


async def calibration(bus: Bus, runs: int) -> dict[str, Any]:
    """The state once that many runs have been learned from."""
    async with asyncio.timeout(60):
        async for change in bus.bucket("calibration").watch(CALIBRATION_KEY):
            if change.value is not None and len(change.value["learned"]) == runs:
                return change.value
    raise AssertionError("unreachable")


def archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return buffer.getvalue()


async def test_an_inline_script_is_portrayed_for_the_fleet_that_is_there(bus: Bus, profiler: Path) -> None:
    device = DeviceState(
        uid="GPU-a", site="s", node="n", kind="RTX 3090", vendor="nvidia", memory_bytes=24 * 2**30, seen_at=AT
    )
    await bus.bucket("devices", DeviceState).put("s.n.GPU-a", device)
    await submit(bus, "t", source={"inline": MLP.format(width=64)})
    found = await answer(bus, "t")
    assert isinstance(found, TaskProfiled)
    assert found.portrait.parameters.total == 650
    assert set(found.portrait.compute.step_seconds) == {"RTX 3090"}
    entry = await bus.bucket("tasks", TaskRecord).get("t")
    assert entry is not None and entry.value.state == "submitted"


async def test_a_bundle_is_read_with_its_helpers_and_never_left(bus: Bus, profiler: Path) -> None:
    files = {
        "main.py": MLP.format(width=8)
        .replace("nn.Linear(8, 10)", "make(8)")
        .replace("\nmodel", "\nfrom net import make\nmodel"),
        "net.py": "from torch import nn\ndef make(n):\n    return nn.Linear(n, 3)\n",
        "../evil.py": "raise SystemExit",
    }
    key = await bus.bundles.put(archive(files))
    await submit(bus, "t", source={"bundle": key})
    found = await answer(bus, "t")
    assert isinstance(found, TaskProfiled)
    assert found.portrait.parameters.total == 27


async def test_a_path_is_read_only_under_the_allowed_roots(bus: Bus, profiler: Path, tmp_path: Path) -> None:
    (profiler / "main.py").write_text(MLP.format(width=16))
    (tmp_path / "secret.py").write_text("password = 1\n")
    (profiler / "link").symlink_to(tmp_path)
    await submit(bus, "inside", source={"path": str(profiler)})
    inside = await answer(bus, "inside")
    assert isinstance(inside, TaskProfiled) and inside.portrait.parameters.total == 170
    for number, path in enumerate(
        (tmp_path / "secret.py", profiler / "link" / "secret.py", profiler / ".." / "secret.py")
    ):
        await submit(bus, f"outside{number}", source={"path": str(path)})
        outside = await answer(bus, f"outside{number}")
        assert isinstance(outside, TaskRejected) and outside.code == "path_not_allowed"
        assert "password" not in outside.model_dump_json()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ({"bundle": "sha256-" + "0" * 64}, "bad_bundle"),
        ({"git": "ext::sh -c touch% /tmp/x"}, "bad_git"),
        ({"git": "--upload-pack=touch /tmp/x"}, "bad_git"),
        ({"git": "file:///etc"}, "bad_git"),
        ({}, "nothing_to_read"),
    ],
)
async def test_what_cannot_be_read_is_rejected_with_its_reason(
    bus: Bus, profiler: Path, source: dict[str, str], code: str
) -> None:
    await submit(bus, "t", source=source)
    found = await answer(bus, "t")
    assert isinstance(found, TaskRejected) and found.code == code, found
    async with asyncio.timeout(20):
        async for change in bus.bucket("tasks", TaskRecord).watch("t"):
            if change.value is not None and change.value.state == "rejected":
                break


@pytest.mark.parametrize(
    "hostile",
    [
        "while True:\n    pass\n",
        "x = [0]\nwhile True:\n    x = x + x\n",
        "def f(n):\n    return f(n + 1)\nf(0)\n",
        "x = 'a' * 10**12\n",
        "import os\nos.system('touch {marker}')\n",
        "open('{marker}', 'w').write('x')\n",
        "__import__('subprocess').run(['touch', '{marker}'])\n",
        "exec(\"open('{marker}', 'w')\")\n",
    ],
)
async def test_hostile_code_ends_in_a_portrait_and_does_nothing(
    bus: Bus, profiler: Path, tmp_path: Path, hostile: str
) -> None:
    marker = tmp_path / "marker"
    await submit(bus, "t", source={"inline": hostile.replace("{marker}", str(marker))})
    found = await answer(bus, "t")
    assert isinstance(found, TaskProfiled | TaskRejected)
    assert not marker.exists()
    assert await DeadLetters(bus).list("profiler") == []


async def test_a_run_teaches_once_however_often_its_record_comes(bus: Bus, profiler: Path) -> None:
    record = RunRecord(
        task_id="t", attempt=1, outcome="ok", framework="pytorch", family="mlp", precision="float32", device_kind="T4",
        device_uids=["GPU-a"], predicted=Predicted(device_bytes=100 * 2**20, raw_device_bytes=100 * 2**20),
        measured=Measured(peak_process_bytes=120 * 2**20), finished_at=AT,
    )  # fmt: skip
    for number in range(3):
        await bus.publish(bus.subjects.completed("t"), record, msg_id=f"copy-{number}")
    async with asyncio.timeout(20):
        async for message in bus.watch(bus.subjects.estimator_recalibrated(), start="all"):
            learned, _ = read(EstimatorRecalibrated, message.data)
            break
    assert learned.factor_after > learned.factor_before == 1.0
    other = record.model_copy(update={"task_id": "u"})
    await bus.publish(bus.subjects.completed("u"), other, msg_id="other")
    state = await calibration(bus, 2)
    assert state["learned"] == ["t:1", "u:1"] and state["runs"] == 2


async def test_a_simulated_run_teaches_no_real_prediction(bus: Bus, profiler: Path) -> None:
    record = RunRecord(
        task_id="t", attempt=1, outcome="ok", framework="pytorch", family="mlp", precision="float32", device_kind="T4",
        device_uids=["GPU-a"], predicted=Predicted(device_bytes=100, raw_device_bytes=100), simulated=True,
        measured=Measured(peak_process_bytes=150), finished_at=AT,
    )  # fmt: skip
    await bus.publish(bus.subjects.completed("t"), record, msg_id="x")
    assert all(cell.startswith("simulated-") for cell in (await calibration(bus, 1))["cells"])


async def test_an_array_is_spread_into_tasks_that_read_their_own_index(bus: Bus, profiler: Path) -> None:
    script = "import os\n" + MLP.format(width="int(os.environ['OARLOCK_ARRAY_INDEX'])")
    await submit(bus, "sweep", source={"inline": script}, array="16,64%1", owner="alice")
    for index in (16, 64):
        event = await answer(bus, f"sweep-{index}")
        assert isinstance(event, TaskProfiled)
        assert event.portrait.parameters.total == 10 * index + 10
        member = event.task.array_member
        assert member is not None and (member.of, member.index, member.size, member.at_once) == ("sweep", index, 2, 1)
        assert event.task.array is None and event.task.owner == "alice"
    record = await bus.bucket("tasks", TaskRecord).get("sweep")
    assert record is not None and (record.value.state, record.value.array) == ("submitted", "16,64%1")


async def test_a_long_script_of_an_array_is_stored_once(bus: Bus, profiler: Path) -> None:
    script = MLP.format(width=32) + "# " + "x" * 20_000
    await submit(bus, "long", source={"inline": script, "entry": "train.py"}, array="0-1")
    sources = []
    for index in (0, 1):
        event = await answer(bus, f"long-{index}")
        assert isinstance(event, TaskProfiled) and event.portrait.parameters.total == 330
        sources.append(event.task.source)
    assert sources[0] == sources[1] and sources[0].inline is None and sources[0].bundle is not None


async def test_a_cancelled_array_adds_no_more_tasks(bus: Bus, profiler: Path) -> None:
    await submit(bus, "over", source={"inline": MLP.format(width=32)}, array="0-0")
    await answer(bus, "over-0")
    records = bus.bucket("tasks", TaskRecord)
    await records.change("over", lambda old: old.move("cancelled", at=AT, by="test") if old else None)
    member = {"of": "over", "index": 1, "size": 2}
    await submit(bus, "over-1", source={"inline": MLP.format(width=32)}, array_member=member)
    async with asyncio.timeout(60):
        async for change in records.watch("over-1"):
            if change.value is not None and change.value.state == "cancelled":
                break


async def test_the_price_of_a_job_follows_from_its_length_and_the_devices_price(bus: Bus, profiler: Path) -> None:
    for uid, kind, price in (("a", "A100-SXM4-40GB", 3.6), ("b", "RTX 3090", None)):
        state = DeviceState(
            uid=uid,
            site="s",
            node="n",
            kind=kind,
            vendor="nvidia",
            memory_bytes=2**35,
            price_per_hour=price,
            seen_at=AT,
        )
        await bus.bucket("devices", DeviceState).put(f"s.n.{uid}", state)
    await submit(bus, "priced", source={"inline": MLP.format(width=32)})
    event = await answer(bus, "priced")
    assert isinstance(event, TaskProfiled)
    compute = event.portrait.compute
    seconds = compute.duration_seconds["A100-SXM4-40GB"]
    assert compute.duration_seconds.keys() == {"A100-SXM4-40GB", "RTX 3090"}
    assert seconds is not None
    assert compute.price == {"A100-SXM4-40GB": pytest.approx(seconds * 0.001)}
