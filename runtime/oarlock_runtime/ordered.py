"""Reading a stream in order without acknowledging: for watchers, ``logs -f`` and key-value buckets.

An ephemeral pull consumer that is made again wherever it broke, from the sequence after the last one seen, so the
reader sees every message once and in order whatever happens to the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Literal

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from oarlock_runtime.messages import BusMessage
from oarlock_runtime.pull import Pull, PullEnded

if TYPE_CHECKING:
    from oarlock_runtime.bus import Bus

Start = Literal["new", "all", "last"] | int
"""Where to begin: only what comes, everything kept, the last of each subject, or a stream sequence."""

_BUFFER = 512
_INACTIVE_SECONDS = 60.0
_RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

CaughtUp = None
"""Yielded once, after the last message that was there at the start."""


async def read_ordered(
    bus: Bus,
    stream: str,
    filters: Sequence[str],
    *,
    start: Start,
    headers_only: bool = False,
) -> AsyncGenerator[BusMessage | None, None]:
    """Yield messages in stream order, and :data:`CaughtUp` once the initial ones have been seen.

    Goes on for ever; end it by leaving the loop and ``aclose()``. A stream that is missing is waited for.
    """
    client, jetstream = bus.client, bus.jetstream
    cursor = _Cursor(start)
    caught_up = False
    failures = 0
    while True:
        name = f"o_{uuid.uuid4().hex}"
        try:
            created = await jetstream.add_consumer(stream, _config(name, filters, cursor, headers_only=headers_only))
        except (NatsError, TimeoutError, OSError) as error:
            if await _restarted(jetstream, stream, cursor, error):
                continue
            await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
            failures += 1
            continue
        failures = 0
        try:
            if not caught_up and not created.num_pending:
                caught_up = True
                yield CaughtUp
            async for msg in _messages(bus, stream, name):
                cursor.last = msg.metadata.sequence.stream
                yield BusMessage.received(msg)
                if not caught_up and not msg.metadata.num_pending:
                    caught_up = True
                    yield CaughtUp
        except PullEnded:
            await asyncio.sleep(_RETRY_SECONDS[0])
        finally:
            # On a connection that is gone the server's inactivity limit does it.
            if client.is_connected:
                with contextlib.suppress(NatsError, TimeoutError):
                    await _delete(jetstream, stream, name)


class _Cursor:
    def __init__(self, start: Start) -> None:
        self.start = start
        self.last: int | None = None


async def _restarted(jetstream: JetStreamContext, stream: str, cursor: _Cursor, error: BaseException) -> bool:
    """True if the stream was made anew and is shorter than where we stood: then begin again."""
    if cursor.last is None or isinstance(error, NotFoundError | TimeoutError | OSError):
        return False
    with contextlib.suppress(NatsError, TimeoutError):
        if (await jetstream.stream_info(stream)).state.last_seq < cursor.last:
            cursor.last = None
            cursor.start = "all" if cursor.start == "new" else cursor.start
            return True
    return False


def _config(name: str, filters: Sequence[str], cursor: _Cursor, *, headers_only: bool) -> api.ConsumerConfig:
    config = api.ConsumerConfig(
        name=name,
        ack_policy=api.AckPolicy.NONE,
        max_deliver=1,
        mem_storage=True,
        num_replicas=1,
        inactive_threshold=_INACTIVE_SECONDS,
        headers_only=headers_only or None,
    )
    if len(filters) == 1:
        config.filter_subject = filters[0]
    else:
        config.filter_subjects = list(filters)
    policies = {
        "new": api.DeliverPolicy.NEW,
        "all": api.DeliverPolicy.ALL,
        "last": api.DeliverPolicy.LAST_PER_SUBJECT,
    }
    if cursor.last is not None or isinstance(cursor.start, int):
        config.deliver_policy = api.DeliverPolicy.BY_START_SEQUENCE
        config.opt_start_seq = cursor.last + 1 if cursor.last is not None else int(cursor.start)
    else:
        config.deliver_policy = policies[cursor.start]
    return config


async def _messages(bus: Bus, stream: str, consumer: str) -> AsyncGenerator[Msg, None]:
    queue: asyncio.Queue[Msg] = asyncio.Queue()
    pull = Pull(
        bus.client,
        stream,
        consumer,
        room=lambda: _BUFFER - queue.qsize(),
        batch_max=_BUFFER,
        deliver=queue.put_nowait,
    )
    forget = bus.on_reconnect(lambda: pull.end("the connection was made anew"))
    task = asyncio.ensure_future(pull.run())
    try:
        while True:
            if queue.empty():
                getter = asyncio.ensure_future(queue.get())
                try:
                    await asyncio.wait({getter, task}, return_when=asyncio.FIRST_COMPLETED)
                    if not getter.done():
                        await task
                        raise PullEnded("the pull is over")
                    msg = getter.result()
                finally:
                    # Whoever leaves the loop cancels us here; the waiter must not outlive us.
                    getter.cancel()
            else:
                msg = queue.get_nowait()
            pull.wake()
            yield msg
    finally:
        forget()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, PullEnded):
            await task


async def _delete(jetstream: JetStreamContext, stream: str, name: str) -> None:
    async with asyncio.timeout(1.0):
        await jetstream.delete_consumer(stream, name)
