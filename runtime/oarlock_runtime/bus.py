"""The connection to NATS and what may be done with it.

One :class:`Bus` per process. It reconnects for ever; a publish is repeated under the same message id until the server
has acknowledged it or time is up, so a restart of the server in between neither loses nor doubles an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

import nats
import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from pydantic import BaseModel

from oarlock_runtime.client import SafeClient
from oarlock_runtime.errors import BusUnavailable, OarlockError, PermanentError, RemoteError
from oarlock_runtime.kv import Bucket
from oarlock_runtime.logging import get_logger
from oarlock_runtime.messages import ERROR_HEADER, BusMessage, Payload, check_size, encode, event_headers
from oarlock_runtime.objects import BundleStore
from oarlock_runtime.ordered import Start, read_ordered
from oarlock_runtime.provision import provision
from oarlock_runtime.subjects import Subjects
from oarlock_runtime.topology import bucket_name, stream_of

M = TypeVar("M", bound=BaseModel)

PUBLISH_TIMEOUT_SECONDS = 15.0
"""How long a publish goes on trying; longer than a server takes to restart."""

REQUEST_TIMEOUT_SECONDS = 5.0
_ATTEMPT_SECONDS = 3.0
_ENSURE_SECONDS = 10.0
_RETRY_PAUSE_SECONDS = 0.1
_RECONNECT_WAIT_SECONDS = 0.2
_PING_SECONDS = 10
_DRAIN_SECONDS = 2.0

# nats-server's words when it refuses a publish.
_DENIED = re.compile(r"permissions violation for publish to \"([^\"]+)\"", re.I)
_DENIALS_MAX = 1000

log = get_logger("bus")


class Bus:
    """Use :meth:`connect`, then ``async with`` or :meth:`close`."""

    def __init__(self, name: str, prefix: str = "oarlock") -> None:
        self.name = name
        self.subjects = Subjects(prefix)
        self.client = SafeClient()
        self.jetstream: JetStreamContext = self.client.jetstream()
        self.reconnect_count = 0
        """Times the connection was made anew."""
        self.closed = asyncio.Event()
        """Set when the connection is over for good."""
        self._reachable = asyncio.Event()
        self._reachable.set()
        self._denials: set[str] = set()
        self._asking: dict[asyncio.Timeout, str | None] = {}
        self._on_reconnect: set[Callable[[], None]] = set()

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        prefix: str = "oarlock",
        name: str = "client",
        token: str | None = None,
        user: str | None = None,
        password: str | None = None,
        creds: Path | str | None = None,
        inbox_prefix: str | None = None,
        timeout_seconds: float = 10.0,
    ) -> Bus:
        """Connect, then stay connected.

        Args:
            url: one server or several, separated by commas.
            prefix: first token of every subject and name.
            name: who we are: shown by the server, and the ``ce-source`` of what is published.
            token: shared token.
            user: user name, with ``password``.
            password: of ``user``.
            creds: credentials file.
            inbox_prefix: where answers arrive. Default ``_INBOX``, or ``_INBOX_{user}`` with a user, so that the
                server can forbid one service to listen to the answers meant for another.
            timeout_seconds: for the first connection.

        Raises:
            BusUnavailable: no server answered in time.
            PermanentError: the server refused who we are.
        """
        bus = cls(name, prefix)
        refused: list[BaseException] = []

        async def on_error(error: Exception) -> None:
            if isinstance(error, nats.errors.AuthorizationError) or "authorization" in str(error).lower():
                refused.append(error)
                first_refusal.set()
            elif denied := _DENIED.search(str(error)):
                log.warning("not permitted", subject=denied[1])
                bus._refused(denied[1].lower())
            else:
                log.debug("bus error", error=repr(error))

        first_refusal = asyncio.Event()
        options: dict[str, Any] = {"inbox_prefix": inbox_prefix or (f"_INBOX_{user}" if user else "_INBOX")}
        if token is not None:
            options["token"] = token
        if user is not None:
            options |= {"user": user, "password": password or ""}
        if creds is not None:
            options["user_credentials"] = str(creds)
        connecting = asyncio.ensure_future(
            bus.client.connect(
                servers=[part.strip() for part in url.split(",")],
                name=f"oarlock-{name}",
                allow_reconnect=True,
                max_reconnect_attempts=-1,
                reconnect_time_wait=_RECONNECT_WAIT_SECONDS,  # type: ignore[arg-type]  # seconds; a fraction works
                connect_timeout=2,
                ping_interval=_PING_SECONDS,
                max_outstanding_pings=2,
                error_cb=on_error,
                reconnected_cb=bus._reconnected,
                disconnected_cb=bus._disconnected,
                closed_cb=bus._closed,
                **options,
            )
        )
        waiting = asyncio.ensure_future(first_refusal.wait())
        try:
            await asyncio.wait({connecting, waiting}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
            if connecting.done():
                connecting.result()
                return bus
        except (OSError, nats.errors.Error) as error:
            raise BusUnavailable(f"cannot connect to {_public(url)}: {error}", 1.0) from error
        finally:
            waiting.cancel()
            if not connecting.done():
                connecting.cancel()
                with contextlib.suppress(asyncio.CancelledError, nats.errors.Error, OSError):
                    await connecting
                with contextlib.suppress(Exception):
                    await bus.client.close()
        if refused:
            raise PermanentError(
                f"the server at {_public(url)} refused user {user!r}"
                if user
                else f"the server at {_public(url)} refused the connection",
                fix="check OARLOCK_NATS_USER/PASSWORD, OARLOCK_NATS_TOKEN or OARLOCK_NATS_CREDS",
            ) from refused[0]
        raise BusUnavailable(
            f"no NATS server answered at {_public(url)} within {timeout_seconds:g} s",
            1.0,
            fix="start one with `oarlock up`, or set OARLOCK_NATS_URL",
        )

    @property
    def connected(self) -> bool:
        """True while the server is in touch."""
        return bool(self.client.is_connected)

    @property
    def source(self) -> str:
        """The ``ce-source`` of what this bus publishes."""
        return f"/{self.subjects.prefix}/{self.name}"

    def on_reconnect(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` after every reconnection; returns a function that stops that."""
        self._on_reconnect.add(callback)
        return lambda: self._on_reconnect.discard(callback)

    async def ensure(self) -> None:
        """Create or update all streams, buckets and the object store. Idempotent; safe to run in many processes.

        Raises:
            BusUnavailable: the server did not answer, or has no JetStream.
            PermanentError: the server refuses (no room, no permission).
        """
        try:
            async with self.until_reconnected(_ENSURE_SECONDS, "$JS.API.STREAM."):
                await provision(self.jetstream, self.subjects)
        except (BusUnavailable, TimeoutError) as error:
            if any(subject.startswith("$js.api.stream.") for subject in self._denials):
                self._denials = {s for s in self._denials if not s.startswith("$js.api.stream.")}
                raise BusUnavailable(
                    "streams are missing or outdated, and this user may not make them",
                    2.0,
                    fix="run `python -m oarlock_runtime ensure` as the administrator's user",
                ) from error
            if isinstance(error, TimeoutError):
                raise BusUnavailable("setting up streams was interrupted", 1.0) from error
            raise

    async def publish(
        self,
        subject: str,
        payload: Payload,
        *,
        msg_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = PUBLISH_TIMEOUT_SECONDS,
    ) -> int:
        """Store a message in its stream and return its sequence there.

        Args:
            subject: from :attr:`subjects`.
            payload: model, JSON object or bytes.
            msg_id: identity of the event: the server stores one message per id within ten minutes. By convention
                ``{task_id}:{event}:{attempt}``. Random where it is None.
            headers: more headers; they win over the CloudEvents attributes and the trace written by default.
            timeout_seconds: how long to keep trying.

        Raises:
            PayloadTooLarge: over 1 MiB.
            BusUnavailable: not acknowledged in time.
            PermanentError: no stream stores this subject, or the server refuses it.
        """
        if stream_of(self.subjects, subject) is None:
            raise PermanentError(f"no stream stores {subject!r}", fix="use publish_core for what is not stored")
        data = encode(payload)
        identity = msg_id or uuid.uuid4().hex
        all_headers = event_headers(self.subjects.event_type(subject), self.source, identity, headers)
        check_size(all_headers, data, self.client.max_payload)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        cause: BaseException | None = None
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                async with self.until_reconnected(min(_ATTEMPT_SECONDS, left), subject):
                    ack = await self.jetstream.publish(
                        subject, data, timeout=_ATTEMPT_SECONDS, headers=dict(all_headers)
                    )
                return int(ack.seq)
            except nats.js.errors.NoStreamResponseError as error:
                cause = error
                # Either JetStream is still starting or someone deleted the stream: both are mended by ensuring.
                with contextlib.suppress(OarlockError):
                    await self.ensure()
            except nats.js.errors.APIError as error:
                if error.code is not None and error.code < 500:
                    raise PermanentError(f"the server refuses {subject!r}: {error.description}") from error
                cause = error
            except (nats.errors.Error, TimeoutError, OSError) as error:
                cause = error
            if self.denied(subject):
                raise PermanentError(
                    f"this user may not publish to {subject!r}", fix="see the permissions in the server's configuration"
                ) from cause
            if self.closed.is_set():
                break
            await asyncio.sleep(_RETRY_PAUSE_SECONDS)
        raise BusUnavailable(f"{subject!r} was not acknowledged within {timeout_seconds:g} s", 2.0) from cause

    async def publish_core(self, subject: str, payload: Payload, *, headers: Mapping[str, str] | None = None) -> None:
        """Send to whoever listens now; nothing is stored. For samples that the next one replaces.

        Raises:
            BusUnavailable: the connection is closed, or its buffer is full.
        """
        all_headers = event_headers(self.subjects.event_type(subject), self.source, None, headers)
        try:
            data = encode(payload)
            check_size(all_headers, data, self.client.max_payload)
            await self.client.publish(subject, data, headers=all_headers)
        except nats.errors.Error as error:
            raise BusUnavailable(f"cannot send to {subject!r}: {error}") from error

    async def request(
        self,
        subject: str,
        payload: Payload,
        timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
        *,
        headers: Mapping[str, str] | None = None,
        repeat_seconds: float | None = None,
    ) -> BusMessage:
        """Ask and await one answer.

        Args:
            subject: who is asked.
            payload: what is asked.
            timeout_seconds: for the answer.
            headers: more headers.
            repeat_seconds: ask again after this long, and when nobody serves the subject yet, as long as there is
                time: whoever was asked may have died over it. Only for what may be asked twice.

        Raises:
            BusUnavailable: nobody serves the subject, or no answer in time.
            RemoteError: the other side answered with an error.
        """
        all_headers = event_headers(self.subjects.event_type(subject), self.source, None, headers)
        data = encode(payload)
        check_size(all_headers, data, self.client.max_payload)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                msg = await self.client.request(
                    subject, data, timeout=min(left, repeat_seconds or left), headers=all_headers
                )
                break
            except (nats.errors.Error, TimeoutError) as error:
                left = deadline - asyncio.get_running_loop().time()
                if repeat_seconds is not None and left > _RETRY_PAUSE_SECONDS and not self.client.is_closed:
                    await asyncio.sleep(_RETRY_PAUSE_SECONDS)
                elif isinstance(error, nats.errors.NoRespondersError):
                    raise BusUnavailable(
                        f"nobody serves {subject!r}", 1.0, fix="start the service that does"
                    ) from error
                else:
                    raise BusUnavailable(f"no answer from {subject!r} within {timeout_seconds:g} s") from error
        answer = BusMessage.received(msg)
        if ERROR_HEADER in answer.headers:
            body = answer.json()
            body = body if isinstance(body, dict) else {"error": body}
            error_text = body.get("error")
            message = error_text.get("message") if isinstance(error_text, dict) else error_text
            raise RemoteError(f"{subject!r}: {message}", body)
        return answer

    async def subscribe(
        self, subject: str, callback: Callable[[BusMessage], Awaitable[None]], *, queue: str = ""
    ) -> Subscription:
        """Listen without storage. ``queue`` names a group of which one member gets each message.

        An exception of the callback is logged; the subscription goes on.
        """

        async def received(msg: Msg) -> None:
            try:
                await callback(BusMessage.received(msg))
            except Exception:
                log.exception("subscriber failed", subject=msg.subject)

        return await self.client.subscribe(subject, queue=queue, cb=received)

    async def reply(self, request: BusMessage, payload: Payload, *, headers: Mapping[str, str] | None = None) -> None:
        """Answer a request; does nothing where no answer is awaited."""
        if request.reply:
            event_type = self.subjects.event_type(request.subject) + ".answer"
            all_headers = event_headers(event_type, self.source, None, headers)
            data = encode(payload)
            check_size(all_headers, data, self.client.max_payload)
            await self.client.publish(request.reply, data, headers=all_headers)

    async def watch(
        self, subject: str | Sequence[str], *, start: Start = "new", caught_up: asyncio.Event | None = None
    ) -> AsyncGenerator[BusMessage, None]:
        """Follow stored messages in order, without acknowledging; goes on over restarts of the server.

        Args:
            subject: one filter or several of the same stream; wildcards allowed.
            start: ``new``, ``all``, ``last`` (of each subject), or a stream sequence.
            caught_up: set once what was stored at the start has been yielded (with ``new``: once it is listening).

        Raises:
            PermanentError: the subject is not stored; use :meth:`subscribe`.
        """
        filters = [subject] if isinstance(subject, str) else list(subject)
        stream = self.stream_of(filters)
        reader = read_ordered(self, stream, filters, start=start)
        try:
            async for message in reader:
                if message is not None:
                    yield message
                elif caught_up is not None:
                    caught_up.set()
        finally:
            await reader.aclose()

    async def stored(self, subject: str | Sequence[str], *, timeout_seconds: float = 10.0) -> list[BusMessage]:
        """Everything stored on ``subject`` so far, in order; what came in time where the server is slow.

        Raises:
            PermanentError: the subject is not stored.
        """
        filters = [subject] if isinstance(subject, str) else list(subject)
        found: list[BusMessage] = []
        reader = read_ordered(self, self.stream_of(filters), filters, start="all")
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_seconds):
                    async for message in reader:
                        if message is None:
                            break
                        found.append(message)
        finally:
            await reader.aclose()
        return found

    async def last(self, subject: str) -> BusMessage | None:
        """The newest stored message on ``subject`` (wildcards allowed); None where there is none.

        Raises:
            PermanentError: the subject is not stored.
            BusUnavailable: no answer.
        """
        stream = self.stream_of([subject])
        try:
            found = await self.jetstream.get_last_msg(stream, subject)
        except nats.js.errors.NotFoundError:
            return None
        except (nats.errors.Error, TimeoutError) as error:
            raise BusUnavailable(f"cannot read the last message on {subject}: {error}", 1.0) from error
        headers = {str(k): str(v) for k, v in (found.headers or {}).items()}
        return BusMessage(found.subject or subject, found.data or b"", headers, found.seq)

    def stream_of(self, filters: Sequence[str]) -> str:
        """The one stream that stores all of ``filters``.

        Raises:
            PermanentError: none does, or several do.
        """
        names = {stream_of(self.subjects, subject) for subject in filters}
        if len(names) != 1 or None in names:
            raise PermanentError(f"{list(filters)} must all be stored in one stream", fix="use one call per stream")
        return str(names.pop())

    @overload
    def bucket(self, name: str) -> Bucket[dict[str, Any]]: ...
    @overload
    def bucket(self, name: str, model: type[M]) -> Bucket[M]: ...
    def bucket(self, name: str, model: type[M] | None = None) -> Bucket[M] | Bucket[dict[str, Any]]:
        """The bucket ``name`` (``tasks devices leases gangs calibration policy leaders``), values as ``model``."""
        full_name = bucket_name(self.subjects, name)
        return Bucket[dict[str, Any]](self, full_name) if model is None else Bucket[M](self, full_name, model)

    @property
    def bundles(self) -> BundleStore:
        """The object store for code bundles."""
        return BundleStore(self, bucket_name(self.subjects, "bundles"))

    async def flush(self, timeout_seconds: float = _DRAIN_SECONDS) -> None:
        """Wait until the server has everything sent so far; gives up quietly after the time-out."""
        with contextlib.suppress(nats.errors.Error, TimeoutError, OSError):
            async with asyncio.timeout(timeout_seconds):
                await self.client.flush(max(1, int(timeout_seconds)))

    async def close(self) -> None:
        """Flush what is pending and close, within about two seconds even when the server is gone.

        The client's own ``drain`` can block for 30 s after a timed-out pull, so it is not used.
        """
        if self.client.is_closed:
            return
        if self.client.is_connected:
            await self.flush()
        with contextlib.suppress(nats.errors.Error, TimeoutError, OSError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self.client.close()
        await self._closed()

    async def __aenter__(self) -> Bus:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @contextlib.asynccontextmanager
    async def until_reconnected(self, seconds: float, subject: str | None = None) -> AsyncGenerator[None, None]:
        """A time-out that strikes early where no answer can come any more.

        That is after a reconnection, as what was asked on the old connection is lost, and when the server refuses a
        publish whose subject begins with ``subject``. Without a connection nothing is asked until there is one: the
        client would keep it and send it later, when nobody awaits the answer any more.

        Raises:
            TimeoutError: no answer.
        """
        async with asyncio.timeout(seconds) as scope:
            await self._connection()
            self._asking[scope] = subject.lower() if subject else None
            try:
                yield
            finally:
                del self._asking[scope]

    async def _connection(self) -> None:
        # The client calls itself connected before it has subscribed again, hence an event of our own.
        if not self.client.is_connected and not self.client.is_closed:
            self._reachable.clear()
        await self._reachable.wait()

    def denied(self, subject: str) -> bool:
        """Whether the server has refused this subject since we last asked; bounded memory."""
        denied = subject.lower() in self._denials  # the client lower-cases what the server says
        self._denials.discard(subject.lower())
        if len(self._denials) > _DENIALS_MAX:
            self._denials.clear()
        return denied

    def _refused(self, subject: str) -> None:
        self._denials.add(subject)
        for scope, asked in self._asking.items():
            if asked is not None and subject.startswith(asked):
                _strike(scope)

    async def _reconnected(self) -> None:
        self.reconnect_count += 1
        log.info("bus reconnected", count=self.reconnect_count)
        self._reachable.set()
        for scope in self._asking:
            _strike(scope)
        for callback in list(self._on_reconnect):
            callback()

    async def _disconnected(self) -> None:
        self._reachable.clear()
        log.warning("bus disconnected")

    async def _closed(self) -> None:
        self.closed.set()
        self._reachable.set()


def _strike(scope: asyncio.Timeout) -> None:
    """Let the time-out strike now, unless it just has."""
    if not scope.expired():
        scope.reschedule(asyncio.get_running_loop().time())


def _public(url: str) -> str:
    """The URL without user information."""
    return ",".join(
        part.split("://", 1)[0] + "://" + part.rsplit("@", 1)[-1] if "@" in part else part for part in url.split(",")
    )
