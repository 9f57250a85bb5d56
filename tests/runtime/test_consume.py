"""Consuming while all is well, and what becomes of messages whose handler raises."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from oarlock_runtime import (
    Bus,
    BusMessage,
    Context,
    DeadLetters,
    InvalidPayload,
    PermanentError,
    Service,
    TemporaryError,
)

if TYPE_CHECKING:
    from tests.runtime.conftest import Recorder


class Event(BaseModel):
    n: int


def service(bus: Bus, recorder: Recorder, **options: object) -> Service:
    svc = Service(bus, "profiler")
    svc.consume("profiler", bus.subjects.all_submitted(), Event, recorder, **options)  # type: ignore[arg-type]
    return svc


async def consumer_exists(bus: Bus) -> None:
    """Until the consumer has been made, as the server's own advisory says."""
    made = asyncio.Event()

    async def note(_: BusMessage) -> None:
        made.set()

    await bus.subscribe("$JS.EVENT.ADVISORY.CONSUMER.CREATED.oarlock_TASKS.profiler", note)
    async with asyncio.timeout(10):
        await made.wait()


async def acknowledged(bus: Bus, durable: str = "profiler") -> tuple[int, int]:
    """(messages nobody has acknowledged yet, messages not delivered yet)."""
    info = await bus.jetstream.consumer_info("oarlock_TASKS", durable)
    return info.num_ack_pending or 0, info.num_pending or 0


async def test_every_message_is_handled_once_and_acknowledged(bus: Bus, recorder: Recorder) -> None:
    async with service(bus, recorder, concurrency=4) as svc:
        for n in range(50):
            await bus.publish(bus.subjects.submitted(f"t{n}"), Event(n=n))
        assert sorted(await recorder.take(50)) == list(range(50))
        assert svc.troubles() == {}
    assert await acknowledged(bus) == (0, 0)
    assert recorder.calls.empty()


async def test_what_was_published_before_the_first_start_is_handled(bus: Bus, recorder: Recorder) -> None:
    await bus.publish(bus.subjects.submitted(), Event(n=7))
    async with service(bus, recorder):
        assert await recorder.next() == (7, 1)


async def test_from_start_false_begins_with_what_comes(bus: Bus, recorder: Recorder) -> None:
    await bus.publish(bus.subjects.submitted(), Event(n=1))
    async with service(bus, recorder, from_start=False):
        await consumer_exists(bus)
        await bus.publish(bus.subjects.submitted(), Event(n=2))
        assert await recorder.next() == (2, 1)


async def test_the_same_message_id_is_stored_once(bus: Bus, recorder: Recorder) -> None:
    async with service(bus, recorder):
        first = await bus.publish(bus.subjects.submitted("t"), Event(n=1), msg_id="t:submitted:1")
        again = await bus.publish(bus.subjects.submitted("t"), Event(n=1), msg_id="t:submitted:1")
        await bus.publish(bus.subjects.submitted("u"), Event(n=2))
        assert first == again
        assert await recorder.take(2) == [1, 2]


async def test_two_copies_share_the_work(bus: Bus) -> None:
    seen: list[tuple[str, int]] = []
    done = asyncio.Event()
    both = {name: asyncio.Event() for name in "ab"}

    def copy(name: str) -> Service:
        async def handle(event: Event, context: Context) -> None:
            seen.append((name, event.n))
            both[name].set()
            # Neither copy may finish its first message before the other has one: proves that both work.
            await asyncio.gather(*(event.wait() for event in both.values()))
            if len(seen) == 40:
                done.set()

        svc = Service(bus, "profiler")
        svc.consume("profiler", bus.subjects.all_submitted(), Event, handle, prefetch=2)
        return svc

    async with copy("a"), copy("b"), asyncio.timeout(30):
        for n in range(40):
            await bus.publish(bus.subjects.submitted(f"t{n}"), Event(n=n))
        await done.wait()
    assert sorted(n for _, n in seen) == list(range(40))


async def test_equal_keys_are_handled_in_order_and_others_side_by_side(bus: Bus) -> None:
    order: dict[str, list[int]] = {}
    active: set[str] = set()
    overlapped = asyncio.Event()
    finished = asyncio.Event()

    async def handle(event: Event, context: Context) -> None:
        key = context.subject
        assert key not in active, "two messages of one key at once"
        active.add(key)
        if len(active) > 1:
            overlapped.set()
        for _ in range(event.n % 5):
            await asyncio.sleep(0)
        order.setdefault(key, []).append(event.n)
        active.discard(key)
        if sum(map(len, order.values())) == 80:
            finished.set()

    svc = Service(bus, "profiler")
    svc.consume(
        "ordered",
        bus.subjects.all_submitted(),
        Event,
        handle,
        concurrency=8,
        prefetch=64,
        order_by=lambda message: message.subject,
    )
    for n in range(80):
        await bus.publish(bus.subjects.submitted(f"k{n % 8}"), Event(n=n))
    async with svc, asyncio.timeout(30):
        await finished.wait()
    assert all(numbers == sorted(numbers) for numbers in order.values())
    assert overlapped.is_set()


async def test_an_effect_published_twice_is_one_event(bus: Bus, recorder: Recorder) -> None:
    async def announce_then_fail_once(event: Event, context: Context) -> None:
        await context.publish(bus.subjects.profiled("t"), {"attempt": context.delivery_count})
        if context.delivery_count == 1:
            raise RuntimeError("died after the effect")

    recorder.behave = announce_then_fail_once
    async with service(bus, recorder, backoff=(0.01,)):
        await bus.publish(bus.subjects.submitted("t"), Event(n=1))
        assert [await recorder.next(), await recorder.next()] == [(1, 1), (1, 2)]
        await bus.publish(bus.subjects.submitted("end"), Event(n=2))
        await recorder.next()
    effects = [m async for m in _all(bus, bus.subjects.profiled())]
    # One event of the first cause, as its first delivery published it; the other is of the message "end".
    assert [message.json() for message in effects] == [{"attempt": 1}, {"attempt": 1}]


async def _all(bus: Bus, subject: str):  # type: ignore[no-untyped-def]
    caught_up = asyncio.Event()
    last = (await bus.jetstream.stream_info(bus.stream_of([subject]), subjects_filter=subject)).state.subjects or {}
    left = sum(last.values())
    async for message in bus.watch(subject, start="all", caught_up=caught_up):
        yield message
        left -= 1
        if not left:
            return


async def test_a_permanent_error_goes_to_the_dead_letters_at_once(bus: Bus, recorder: Recorder) -> None:
    async def refuse(event: Event, context: Context) -> None:
        raise PermanentError("no such framework", fix="use paddle or torch") from KeyError("jax")

    recorder.behave = refuse
    async with service(bus, recorder):
        await bus.publish(bus.subjects.submitted("t"), Event(n=1), msg_id="id-1", headers={"X-Mine": "kept"})
        await recorder.next()
        letter = await first_letter(bus)
    assert recorder.calls.empty()
    assert letter.data == b'{"n":1}'
    assert letter.headers["X-Mine"] == "kept"
    assert (letter.reason.kind, letter.reason.service, letter.reason.message_id) == ("permanent", "profiler", "id-1")
    assert letter.reason.subject == bus.subjects.submitted("t")
    assert (letter.reason.message, letter.reason.fix) == ("no such framework", "use paddle or torch")
    assert "KeyError" in letter.reason.traceback
    assert await acknowledged(bus) == (0, 0)


async def first_letter(bus: Bus):  # type: ignore[no-untyped-def]
    async with asyncio.timeout(20):
        async for _ in bus.watch(bus.subjects.dead(), start="all"):
            break
        return (await DeadLetters(bus).list())[0]


async def test_temporary_errors_come_again_and_never_count(bus: Bus, recorder: Recorder) -> None:
    async def wait_for_the_eighth(event: Event, context: Context) -> None:
        if context.delivery_count < 8:
            raise TemporaryError("not yet", 0.01)
        if context.delivery_count == 8:
            raise ValueError("a first real failure")

    recorder.behave = wait_for_the_eighth
    async with service(bus, recorder, max_deliver=2, backoff=(0.01,)):
        await bus.publish(bus.subjects.submitted("t"), Event(n=1))
        deliveries = [(await recorder.next())[1] for _ in range(9)]
    assert deliveries == list(range(1, 10))
    assert await DeadLetters(bus).list() == []


async def test_the_count_of_temporary_errors_survives_a_restart_of_the_service(bus: Bus, recorder: Recorder) -> None:
    async def later(event: Event, context: Context) -> None:
        raise TemporaryError("not yet", 0.01)

    recorder.behave = later
    async with service(bus, recorder, max_deliver=1):
        await bus.publish(bus.subjects.submitted("t"), Event(n=1))
        for _ in range(10):
            await recorder.next()

    async def done(event: Event, context: Context) -> None:
        return

    recorder.behave = done
    while not recorder.calls.empty():
        recorder.calls.get_nowait()
    async with service(bus, recorder, max_deliver=1):
        # More deliveries than CRASH_FACTOR * max_deliver: only the kept count saves it from "crashing".
        assert (await recorder.next())[1] > 10
    assert await DeadLetters(bus).list() == []


async def test_other_errors_are_retried_and_then_buried(bus: Bus, recorder: Recorder) -> None:
    async def bug(event: Event, context: Context) -> None:
        raise ZeroDivisionError("a bug")

    recorder.behave = bug
    async with service(bus, recorder, max_deliver=3, backoff=(0.01, 0.02)):
        await bus.publish(bus.subjects.submitted("t"), Event(n=1))
        assert [(await recorder.next())[1] for _ in range(3)] == [1, 2, 3]
        letter = await first_letter(bus)
    assert (letter.reason.kind, letter.reason.error, letter.reason.delivery_count) == (
        "exhausted",
        "ZeroDivisionError",
        3,
    )


async def test_a_poison_message_does_not_hold_up_the_others(bus: Bus, recorder: Recorder) -> None:
    async def choke_on_13(event: Event, context: Context) -> None:
        if event.n == 13:
            raise RuntimeError("poison")

    recorder.behave = choke_on_13
    async with service(bus, recorder, max_deliver=2, backoff=(0.05,)):
        for n in (13, 1, 2, 3):
            await bus.publish(bus.subjects.submitted(f"t{n}"), Event(n=n))
        assert sorted(await recorder.take(5)) == [1, 2, 3, 13, 13]
        assert (await first_letter(bus)).data == b'{"n":13}'


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"\xff\xfe", b"[" * 100_000, b'{"n": "many"}', b"null", b'{"n": NaN}', b"{}"]
)
async def test_what_cannot_be_read_is_announced_and_buried(bus: Bus, recorder: Recorder, body: bytes) -> None:
    announced: asyncio.Queue[InvalidPayload] = asyncio.Queue()

    async def on_invalid(message: BusMessage, error: InvalidPayload, context: Context) -> None:
        await context.publish(bus.subjects.rejected("unknown"), {"faults": error.faults})
        announced.put_nowait(error)

    async with service(bus, recorder, on_invalid=on_invalid):
        await bus.publish(bus.subjects.submitted(), body)
        error = await asyncio.wait_for(announced.get(), 20)
        letter = await first_letter(bus)
    assert error.faults
    assert all(fault["path"].startswith("$") for fault in error.faults)
    assert (letter.reason.kind, letter.data) == ("invalid", body)
    assert letter.reason.faults[0]["path"].startswith("$")
    assert recorder.calls.empty()


async def test_a_failing_announcement_is_retried_but_does_not_keep_the_message_from_its_grave(
    bus: Bus, recorder: Recorder
) -> None:
    attempts: asyncio.Queue[int] = asyncio.Queue()

    async def on_invalid(message: BusMessage, error: InvalidPayload, context: Context) -> None:
        attempts.put_nowait(context.delivery_count)
        raise ValueError("a bug in the hook")

    async with service(bus, recorder, on_invalid=on_invalid, max_deliver=1):
        await bus.publish(bus.subjects.submitted(), b"{}")
        assert await asyncio.wait_for(attempts.get(), 20) == 1
        assert (await first_letter(bus)).reason.kind == "invalid"


async def test_subjects_of_two_streams_are_refused(bus: Bus, recorder: Recorder) -> None:
    with pytest.raises(PermanentError, match="one stream"):
        Service(bus, "matcher").consume("m", [bus.subjects.profiled(), bus.subjects.completed()], Event, recorder)
