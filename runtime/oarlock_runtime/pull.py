"""A continuous pull from one consumer: the server always holds a standing request for as many messages as fit.

``fetch()`` of the client asks, waits, asks again, and leaves the handler idle in between; here the next request is sent
while messages are still in hand. The protocol is NATS ADR-13 (``CONSUMER.MSG.NEXT``). Anything odd (consumer gone,
server gone, silence) ends the pull with :class:`PullEnded`; its owner makes sure that the consumer exists and starts
anew, which is the only recovery there is and so the one that is always exercised.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from oarlock_runtime.errors import OarlockError

_EXPIRES_SECONDS = 30.0
_HEARTBEAT_SECONDS = 5.0
_SILENCE_SECONDS = 2.5 * _HEARTBEAT_SECONDS
_DRAIN_SECONDS = 1.0
_NANOSECONDS = 1_000_000_000


class PullEnded(OarlockError):
    """The pull cannot go on; make sure of the consumer and start another."""


class Pull:
    """One pull on one consumer.

    Args:
        client: the connection.
        stream: name of the stream.
        consumer: name of the consumer; it must be a pull consumer.
        room: how many more messages the owner can hold right now.
        batch_max: upper bound of one request.
        deliver: called with each message, in order; must not block.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        consumer: str,
        *,
        room: Callable[[], int],
        batch_max: int,
        deliver: Callable[[Msg], None],
    ) -> None:
        self._client = client
        self._next_subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._consumer = consumer
        self._room = room
        self._batch_max = batch_max
        self._deliver = deliver
        self._outstanding = 0
        self._wake = asyncio.Event()
        self._ended: PullEnded | None = None
        self._heard_at = 0.0

    def wake(self) -> None:
        """The owner has room again."""
        self._wake.set()

    def end(self, why: str) -> None:
        """End it from outside, as after a reconnection: the server has forgotten the standing request."""
        self._ended = self._ended or PullEnded(why)
        self._wake.set()

    async def run(self) -> None:
        """Pull until cancelled.

        Raises:
            PullEnded: see the module.
        """
        inbox = self._client.new_inbox()
        try:
            subscription = await self._client.subscribe(inbox, cb=self._received)
        except NatsError as error:
            raise PullEnded(f"cannot subscribe: {error}") from error
        try:
            await self._keep_asking(inbox)
        except NatsError as error:
            raise PullEnded(f"cannot ask for messages: {error}") from error
        finally:
            await self._let_go(subscription)

    async def _let_go(self, subscription: Subscription) -> None:
        """Unsubscribe, but take what the server has already sent: else it would come again only after ``ack_wait``."""
        with contextlib.suppress(NatsError, TimeoutError):
            if self._client.is_connected:
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await subscription.drain()  # type: ignore[no-untyped-call]
            else:
                await subscription.unsubscribe()

    async def _keep_asking(self, inbox: str) -> None:
        clock = asyncio.get_running_loop().time
        self._heard_at = clock()
        while True:
            self._wake.clear()
            if self._ended:
                raise self._ended
            want = min(self._room(), self._batch_max) - self._outstanding
            # Ask again when half is used up: one request per half batch instead of one per message.
            if (want > 0 and want >= (self._batch_max + 1) // 2) or (want > 0 and self._outstanding == 0):
                await self._ask(inbox, want)
            try:
                # Not wait_for: in Python 3.11 it swallows a cancellation that meets the event.
                async with asyncio.timeout(_SILENCE_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                if self._outstanding and clock() - self._heard_at >= _SILENCE_SECONDS:
                    raise PullEnded(f"consumer {self._consumer} has been silent for {_SILENCE_SECONDS:g} s") from None

    async def _ask(self, inbox: str, batch: int) -> None:
        request = {
            "batch": batch,
            "expires": int(_EXPIRES_SECONDS * _NANOSECONDS),
            "idle_heartbeat": int(_HEARTBEAT_SECONDS * _NANOSECONDS),
        }
        self._outstanding += batch
        self._heard_at = asyncio.get_running_loop().time()
        await self._client.publish(self._next_subject, json.dumps(request).encode(), reply=inbox)

    async def _received(self, msg: Msg) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        status = (msg.headers or {}).get("Status")
        if msg.reply.startswith("$JS.ACK.") or status is None:
            self._outstanding = max(0, self._outstanding - 1)
            self._deliver(msg)
            if self._outstanding * 2 <= self._batch_max:
                self._wake.set()
            return
        self._status(status, msg.headers or {})

    def _status(self, status: str, headers: dict[str, str]) -> None:
        description = headers.get("Description", "")
        if status == "100":
            return
        if status in {"404", "408"} or (status == "409" and "max" in description.lower()):
            # This request is over; what it still wanted no longer stands.
            self._outstanding = max(0, self._outstanding - int(headers.get("Nats-Pending-Messages", self._outstanding)))
            self._wake.set()
            return
        self.end(f"consumer {self._consumer}: {status} {description or 'no JetStream answers'}")
