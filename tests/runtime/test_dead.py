"""Dead letters: listed, shown, tried again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from oarlock_runtime import Bus, BusMessage, Context, DeadLetters, InvalidPayload, PermanentError, Service
from oarlock_runtime.dead import bury, reason_for

if TYPE_CHECKING:
    from tests.runtime.conftest import Recorder


class Event(BaseModel):
    n: int


def letter_for(bus: Bus, n: int) -> BusMessage:
    return BusMessage(bus.subjects.submitted(f"t{n}"), b'{"n":1}', {"Nats-Msg-Id": f"id-{n}", "X": "y"}, n, 3)


async def put(bus: Bus, service: str, n: int, error: Exception) -> None:
    message = letter_for(bus, n)
    await bury(bus, message, reason_for(message, error, service=service, consumer=f"{service}-c", kind="permanent"))


async def test_list_by_service_show_and_unknown_numbers(bus: Bus) -> None:
    dead = DeadLetters(bus)
    assert await dead.list() == []
    for n, service in enumerate(["profiler", "matcher", "profiler"]):
        await put(bus, service, n, ValueError(f"fault {n}"))
    assert [letter.reason.message for letter in await dead.list()] == ["fault 0", "fault 1", "fault 2"]
    assert [letter.reason.message for letter in await dead.list("profiler")] == ["fault 0", "fault 2"]
    assert [letter.reason.message for letter in await dead.list(limit=1)] == ["fault 2"]
    shown = await dead.show((await dead.list("matcher"))[0].sequence)
    assert (shown.reason.service, shown.reason.delivery_count, shown.headers["X"]) == ("matcher", 3, "y")
    assert shown.retried_at is None
    with pytest.raises(PermanentError, match="no dead letter 999"):
        await dead.show(999)


async def test_the_same_death_is_stored_once(bus: Bus) -> None:
    for _ in range(2):
        await put(bus, "profiler", 1, ValueError("again"))
    assert len(await DeadLetters(bus).list()) == 1


async def test_a_letter_is_bounded_whatever_the_error_holds(bus: Bus) -> None:
    error = InvalidPayload("\u2620" * 10**6, [{"path": "$" + "p" * 10**5, "message": "m" * 10**5}] * 1000)
    await put(bus, "profiler", 1, error)
    [letter] = await DeadLetters(bus).list()
    assert letter.reason.message.startswith("\u2620")
    assert sum(len(v) for v in letter.headers.values()) < 64 * 1024


async def test_strangers_in_the_dead_letter_stream_are_passed_over(bus: Bus) -> None:
    sequence = await bus.publish(bus.subjects.dead("profiler"), {}, headers={"Oarlock-Dead": '{"faults": 3}'})
    await put(bus, "profiler", 1, ValueError("real"))
    assert [letter.reason.message for letter in await DeadLetters(bus).list()] == ["real"]
    with pytest.raises(PermanentError, match="no dead letter"):
        await DeadLetters(bus).show(sequence)


async def test_round_trip_a_cured_message_is_handled_when_retried(bus: Bus, recorder: Recorder) -> None:
    cured = False

    async def sick_until_cured(event: Event, context: Context) -> None:
        if not cured:
            raise PermanentError("the table is missing")

    recorder.behave = sick_until_cured
    svc = Service(bus, "profiler")
    svc.consume("profiler", bus.subjects.all_submitted(), Event, recorder)
    dead = DeadLetters(bus)
    async with svc, asyncio.timeout(30):
        await bus.publish(bus.subjects.submitted("t"), Event(n=1), msg_id="original", headers={"X-Mine": "kept"})
        await recorder.next()
        async for stored in bus.watch(bus.subjects.dead(), start="all"):
            sequence = stored.sequence or 0
            break
        cured = True
        await dead.retry(sequence)
        assert await recorder.next() == (1, 1)
        first, second = recorder.messages
        assert second.data == first.data
        assert second.subject == first.subject
        assert second.message_id != first.message_id
        assert second.headers["Oarlock-Retry-Of"] == "original"
        assert second.headers["X-Mine"] == "kept"
        assert "Oarlock-Dead" not in second.headers
        assert second.headers["traceparent"] == first.headers["traceparent"]
        assert (await dead.show(sequence)).retried_at is not None
        assert [letter.retried_at is not None for letter in await dead.list()] == [True]

        # A retry may fail too: then there is a second letter, and retrying twice really publishes twice.
        cured = False
        await dead.retry(sequence)
        await recorder.next()
        async for stored in bus.watch(bus.subjects.dead(), start=sequence + 1):
            assert stored.data == first.data
            break
