"""The SDK over a real bus: one message that cannot be read hides none of the others."""

from __future__ import annotations

from oarlock import AsyncClient
from oarlock_runtime import Bus
from oarlock_schemas import LogLine, Measured, Predicted, RunRecord, TaskRecord

AT = "2026-01-01T00:00:00+00:00"
RUBBISH = (b"", b"{", b"[]", b"\xff", b"[" * 50_000, b'{"task_id": 7}')


def record(task_id: str) -> RunRecord:
    return RunRecord(
        task_id=task_id,
        attempt=1,
        owner="someone",
        outcome="ok",
        device_kind="CPU",
        device_uids=["CPU-1"],
        predicted=Predicted(device_bytes=1),
        measured=Measured(peak_process_bytes=1),
        finished_at=AT,
    )


async def test_rubbish_between_messages_is_passed_over(bus: Bus) -> None:
    client, of = AsyncClient(bus), bus.subjects
    await bus.bucket("tasks", TaskRecord).put("t1", TaskRecord(task_id="t1", state="succeeded"))
    for number in (1, 2):
        line = LogLine(task_id="t1", attempt=1, stream="stdout", number=number, line=f"line {number}", at=AT)
        await bus.publish(of.logs("t1"), line)
        await bus.publish(of.completed(f"r{number}"), record(f"r{number}"))
        await bus.publish(of.finished("t1"), {"number": number})
        for rubbish in RUBBISH:
            for subject in (of.logs("t1"), of.completed("r1"), of.completed(f"x{number}"), of.finished("t1")):
                await bus.publish(subject, rubbish)
    assert [line.line async for line in client.logs("t1")] == ["line 1", "line 2"]
    assert [run.task_id for run in await client.history()] == ["r1", "r2"]
    events = [event.body async for event in client.events("t1", follow=False)]
    assert [body["number"] for body in events if "number" in body] == [1, 2]
