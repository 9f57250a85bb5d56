"""What breaks around a service must not lose, double or stop anything."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from nats.js.errors import NotFoundError
from pydantic import BaseModel

from oarlock_runtime import Bus, BusUnavailable, Context, DeadLetters, EmbeddedServer, PermanentError, Service

if TYPE_CHECKING:
    from tests.runtime.conftest import Recorder


class Event(BaseModel):
    n: int


def service(bus: Bus, recorder: Recorder, grace_seconds: float = 0.5, **options: object) -> Service:
    svc = Service(bus, "profiler", stop_grace_seconds=grace_seconds)
    svc.consume("profiler", bus.subjects.all_submitted(), Event, recorder, **options)  # type: ignore[arg-type]
    return svc


async def test_the_server_is_killed_and_started_again(nats: EmbeddedServer, bus: Bus, recorder: Recorder) -> None:
    async with service(bus, recorder, ack_wait_seconds=2):
        for round_number in range(3):
            await bus.publish(bus.subjects.submitted(), Event(n=round_number))
            # A kill may take an acknowledgement along; then an earlier one comes again.
            while (await recorder.next())[0] != round_number:
                pass
            nats.kill()
            nats.start()
        await bus.publish(bus.subjects.submitted(), Event(n=99))
        while (await recorder.next())[0] != 99:
            pass
    assert bus.reconnect_count >= 3


async def test_a_publish_during_the_outage_arrives_once(nats: EmbeddedServer, bus: Bus, recorder: Recorder) -> None:
    async with service(bus, recorder):
        nats.kill()
        publishing = asyncio.create_task(bus.publish(bus.subjects.submitted(), Event(n=5), msg_id="once"))
        await asyncio.sleep(0)
        nats.start()
        first = await asyncio.wait_for(publishing, 20)
        assert await bus.publish(bus.subjects.submitted(), Event(n=5), msg_id="once") == first
        assert (await recorder.next())[0] == 5
        await bus.publish(bus.subjects.submitted(), Event(n=6))
        assert (await recorder.next())[0] == 6


async def test_a_publish_without_a_server_ends_in_time(nats: EmbeddedServer, bus: Bus) -> None:
    nats.kill()
    with pytest.raises(BusUnavailable, match=r"not acknowledged within 0\.5 s"):
        await bus.publish(bus.subjects.submitted(), Event(n=1), timeout_seconds=0.5)
    async with asyncio.timeout(6):
        await bus.close()


async def test_the_consumer_is_deleted(bus: Bus, recorder: Recorder) -> None:
    async with service(bus, recorder):
        await bus.publish(bus.subjects.submitted(), Event(n=1))
        await recorder.next()
        await bus.jetstream.delete_consumer("oarlock_TASKS", "profiler")
        await bus.publish(bus.subjects.submitted(), Event(n=2))
        while (await recorder.next())[0] != 2:
            pass


async def test_the_stream_is_deleted(bus: Bus, recorder: Recorder) -> None:
    async with service(bus, recorder):
        await bus.publish(bus.subjects.submitted(), Event(n=1))
        await recorder.next()
        await bus.jetstream.delete_stream("oarlock_TASKS")
        await bus.publish(bus.subjects.submitted(), Event(n=2))
        assert await recorder.next() == (2, 1)


async def test_nothing_exists_yet(nats: EmbeddedServer, recorder: Recorder) -> None:
    async with await Bus.connect(nats.url, token=nats.token) as bus:
        with pytest.raises(NotFoundError):
            await bus.jetstream.stream_info("oarlock_TASKS")
        async with service(bus, recorder):
            await bus.publish(bus.subjects.submitted(), Event(n=3))
            assert (await recorder.next())[0] == 3


async def test_a_slow_handler_keeps_its_message_and_what_waits_behind_it(bus: Bus, recorder: Recorder) -> None:
    """Three times ack_wait in the handler, with a second message waiting: neither is delivered again."""
    ack_wait_seconds = 0.6

    async def slow(event: Event, context: Context) -> None:
        if event.n == 1:
            await asyncio.sleep(3 * ack_wait_seconds)

    recorder.behave = slow
    async with service(bus, recorder, ack_wait_seconds=ack_wait_seconds):
        await bus.publish(bus.subjects.submitted(), Event(n=1))
        await bus.publish(bus.subjects.submitted(), Event(n=2))
        assert [await recorder.next(), await recorder.next()] == [(1, 1), (2, 1)]
        await bus.publish(bus.subjects.submitted(), Event(n=3))
        assert await recorder.next() == (3, 1)
    info = await bus.jetstream.consumer_info("oarlock_TASKS", "profiler")
    assert (info.num_redelivered, info.num_ack_pending) == (0, 0)


async def test_a_handler_that_hangs_is_cut_off_and_retried(bus: Bus, recorder: Recorder) -> None:
    async def hang_once(event: Event, context: Context) -> None:
        if context.delivery_count == 1:
            await asyncio.Event().wait()

    recorder.behave = hang_once
    async with service(bus, recorder, handler_timeout_seconds=0.2, backoff=(0.01,)):
        await bus.publish(bus.subjects.submitted(), Event(n=1))
        assert [await recorder.next(), await recorder.next()] == [(1, 1), (1, 2)]


async def test_stop_in_mid_handler_lets_it_finish_and_gives_back_what_waits(bus: Bus, recorder: Recorder) -> None:
    release = asyncio.Event()
    finished: list[int] = []

    async def wait(event: Event, context: Context) -> None:
        await release.wait()
        finished.append(event.n)

    recorder.behave = wait
    svc = service(bus, recorder, ack_wait_seconds=60, grace_seconds=20)
    await svc.start()
    for n in (1, 2, 3):
        await bus.publish(bus.subjects.submitted(), Event(n=n))
    assert await recorder.next() == (1, 1)
    stopping = asyncio.create_task(svc.stop())
    await asyncio.sleep(0)
    release.set()
    await asyncio.wait_for(stopping, 10)
    assert finished == [1]

    # Another copy gets the rest at once, not after the 60 s of ack_wait.
    async with service(bus, recorder, ack_wait_seconds=60):
        assert sorted(await recorder.take(2, 10)) == [2, 3]
    assert sorted(finished) == [1, 2, 3]


async def test_stop_cancels_a_handler_that_will_not_end_and_gives_its_message_back(
    bus: Bus, recorder: Recorder
) -> None:
    cancelled = asyncio.Event()

    async def never(event: Event, context: Context) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    recorder.behave = never
    async with asyncio.timeout(15):
        async with service(bus, recorder, ack_wait_seconds=60):
            await bus.publish(bus.subjects.submitted(), Event(n=1))
            await recorder.next()
        assert cancelled.is_set()

        async def done(event: Event, context: Context) -> None:
            return

        recorder.behave = done
        async with service(bus, recorder, ack_wait_seconds=60):
            assert await recorder.next(5) == (1, 2)


WORKER = """
import asyncio, sys
from pydantic import BaseModel
from oarlock_runtime import Bus, Service

class Event(BaseModel):
    n: int

async def main(url, token, mode):
    bus = await Bus.connect(url, token=token, name="worker")
    await bus.ensure()
    svc = Service(bus, "profiler", stop_grace_seconds=10)

    async def handle(event, context):
        print("began", event.n, context.delivery_count, flush=True)
        if mode == "hang":
            await asyncio.Event().wait()
        if mode == "die":
            import os; os._exit(9)
        await asyncio.sleep(0.3)
        await context.publish(bus.subjects.profiled("t"), {"n": event.n}, msg_id=f"t:profiled:{event.n}")
        print("ended", event.n, flush=True)

    svc.consume("profiler", bus.subjects.all_submitted(), Event, handle, ack_wait_seconds=1, max_deliver=1)
    await svc.run()
    print("stopped", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Worker:
    """The service above in a process of its own."""

    def __init__(self, nats: EmbeddedServer, mode: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, nats.url, nats.token or "", mode], stdout=subprocess.PIPE, text=True
        )

    async def line(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(asyncio.to_thread(self.process.stdout.readline), 20)).strip()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


async def test_a_killed_process_leaves_its_message_to_the_next(nats: EmbeddedServer, bus: Bus) -> None:
    await bus.publish(bus.subjects.submitted("t"), Event(n=1))
    with Worker(nats, "hang") as first:
        assert await first.line() == "began 1 1"
        first.process.send_signal(signal.SIGKILL)
    with Worker(nats, "work") as second:
        assert await second.line() == "began 1 2"
        assert await second.line() == "ended 1"


async def test_sigterm_in_mid_handler_finishes_it(nats: EmbeddedServer, bus: Bus) -> None:
    await bus.publish(bus.subjects.submitted("t"), Event(n=1))
    with Worker(nats, "work") as worker:
        assert await worker.line() == "began 1 1"
        worker.process.send_signal(signal.SIGTERM)
        assert [await worker.line(), await worker.line()] == ["ended 1", "stopped"]
        assert await asyncio.to_thread(worker.process.wait, 10) == 0
    info = await bus.jetstream.consumer_info("oarlock_TASKS", "profiler")
    assert (info.num_ack_pending, info.num_pending) == (0, 0)


async def test_a_message_that_kills_every_process_is_buried_in_the_end(nats: EmbeddedServer, bus: Bus) -> None:
    await bus.publish(bus.subjects.submitted("t"), Event(n=1))
    for delivery in (1, 2, 3):  # CRASH_FACTOR * max_deliver
        with Worker(nats, "die") as worker:
            assert await worker.line() == f"began 1 {delivery}"
            assert await asyncio.to_thread(worker.process.wait, 20) == 9
    with Worker(nats, "work"):
        async with asyncio.timeout(20):
            async for _ in bus.watch(bus.subjects.dead(), start="all"):
                break
    [letter] = await DeadLetters(bus).list()
    assert (letter.reason.kind, letter.data) == ("crashing", b'{"n":1}')


async def test_a_message_that_cannot_be_buried_is_kept(bus: Bus, recorder: Recorder) -> None:
    """The dead-letter stream refuses everything: the message must not be terminated."""

    async def refuse(event: Event, context: Context) -> None:
        raise PermanentError("no")

    recorder.behave = refuse
    config = (await bus.jetstream.stream_info("oarlock_DEAD")).config
    await bus.jetstream.update_stream(config.evolve(max_msg_size=1))
    async with service(bus, recorder):
        await bus.publish(bus.subjects.submitted(), Event(n=1))
        assert [await recorder.next(), await recorder.next()] == [(1, 1), (1, 2)]
        await bus.jetstream.update_stream(config)
        async with asyncio.timeout(20):
            async for letter in bus.watch(bus.subjects.dead(), start="all"):
                assert letter.data == b'{"n":1}'
                break


async def test_a_flush_that_gave_up_leaves_the_connection_hearing(bus: Bus) -> None:
    flushing = asyncio.create_task(bus.client.flush())
    await asyncio.sleep(0)  # the ping is on its way
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    async with asyncio.timeout(5):  # far less than it takes to notice missing pings
        await bus.publish(bus.subjects.submitted(), {"n": 1})
        await bus.publish(bus.subjects.submitted(), {"n": 2})


@pytest.mark.parametrize(
    "headers",
    [
        b"NATS/1.0 \xff\xff\xff\r\n\r\n",
        b"NATS/1.0 503\r\n\r\n",
        b"NATS/1.0 100 Idle Heartbeat\r\n\r\n",
        b"NATS/1.0\r\nNats-Msg-Id: \xff\xfe\r\n\r\n",
        b"NATS/1.0\r\n: no name\r\nno colon\r\nA: b\r\n\r\n",
        b"NATS/1.0\r\ntraceparent: 00-zz\r\nOarlock-Dead: {}\r\nStatus: 408\r\n\r\n",
        b"NATS/1.0\r\nX: " + b"y" * 60_000 + b"\r\n\r\n",
    ],
)
async def test_hostile_headers_reach_the_handler_like_any_message(
    nats: EmbeddedServer, bus: Bus, recorder: Recorder, headers: bytes
) -> None:
    """Published by a bare socket, as any program may."""
    body = b'{"n": 4}'
    async with service(bus, recorder):
        await raw_publish(nats, bus.subjects.submitted(), headers, body)
        assert await recorder.next() == (4, 1)
        await bus.publish(bus.subjects.submitted(), Event(n=5))
        assert await recorder.next() == (5, 1)
    assert bus.reconnect_count == 0


async def test_the_largest_message_with_hostile_headers_can_be_buried(
    nats: EmbeddedServer, bus: Bus, recorder: Recorder
) -> None:
    async def refuse(event: Event, context: Context) -> None:
        raise PermanentError("\u2620" * 100_000, fix="\U0001f9ef" * 100_000)

    recorder.behave = refuse
    body = b'{"n": 4, "padding": "' + b"x" * 900_000 + b'"}'
    headers = b"NATS/1.0\r\nX: " + b"y" * 60_000 + b"\r\n\r\n"
    async with service(bus, recorder):
        await raw_publish(nats, bus.subjects.submitted(), headers, body)
        await recorder.next()
        async with asyncio.timeout(20):
            async for letter in bus.watch(bus.subjects.dead(), start="all"):
                assert letter.data == body
                break
        assert (await DeadLetters(bus).list())[0].reason.kind == "permanent"


async def raw_publish(nats: EmbeddedServer, subject: str, headers: bytes, body: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", nats.port)
    await reader.readline()
    connect = f'CONNECT {{"verbose":false,"headers":true,"auth_token":"{nats.token}"}}\r\n'
    size = len(headers)
    writer.write(connect.encode() + f"HPUB {subject} {size} {size + len(body)}\r\n".encode() + headers + body + b"\r\n")
    writer.write(b"PING\r\n")
    assert await reader.readline() == b"PONG\r\n"
    writer.close()
    await writer.wait_closed()
