"""One durable consumer: messages in, handler, verdict, acknowledgement. The loop behind ``Service.consume``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import nats.errors
import nats.js.errors
import structlog
from nats.aio.msg import Msg
from nats.js import api
from opentelemetry.trace import SpanKind, Status, StatusCode
from pydantic import BaseModel

from oarlock_runtime.bus import Bus
from oarlock_runtime.context import Context
from oarlock_runtime.dead import bury, reason_for
from oarlock_runtime.errors import InvalidPayload, OarlockError, PermanentError, TemporaryError
from oarlock_runtime.logging import get_logger
from oarlock_runtime.messages import BusMessage
from oarlock_runtime.metrics import ServiceMetrics
from oarlock_runtime.pull import Pull, PullEnded
from oarlock_runtime.tracing import Tracing
from oarlock_runtime.verdict import (
    DEFAULT_BACKOFF_SECONDS,
    DEFAULT_MAX_DELIVER,
    Ack,
    Bury,
    GiveBack,
    judge,
    kills_its_handler,
)

M = TypeVar("M", bound=BaseModel)

Handler = Callable[[M, Context], Awaitable[Any]]
OnInvalid = Callable[[BusMessage, InvalidPayload, Context], Awaitable[Any]]

_RETRY_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_DEAD_LETTER_RETRY_SECONDS = 2.0
_STANDING_SECONDS = 15.0
_SETUP_SECONDS = 10.0
_CANCEL_SECONDS = 2.0

log = get_logger("consumer")


@dataclass(frozen=True)
class ConsumerOptions:
    """How a consumer behaves.

    Attributes:
        prefetch: messages held at most, waiting and being handled.
        concurrency: handlers running at once.
        ack_wait_seconds: how long after our last sign of life the server gives a message to another copy. While a
            message is in hand the sign is renewed every third of it, so this bounds the take-over time after a crash,
            not the handler.
        handler_timeout_seconds: a handler still running then is cancelled, which counts as a failure.
        max_deliver: failed deliveries until the dead letter.
        backoff_seconds: pauses between them.
        order_by: messages with the same key are handled one after another, in order of arrival; None for no order. A
            message that is given back loses its place.
        from_start: whether a consumer that never existed begins with what the stream holds, or with what comes.
    """

    prefetch: int = 16
    concurrency: int = 1
    ack_wait_seconds: float = 30.0
    handler_timeout_seconds: float = 900.0
    max_deliver: int = DEFAULT_MAX_DELIVER
    backoff_seconds: Sequence[float] = DEFAULT_BACKOFF_SECONDS
    order_by: Callable[[BusMessage], str] | None = None
    from_start: bool = True

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.prefetch < self.concurrency:
            raise ValueError("need prefetch >= concurrency >= 1")
        if self.ack_wait_seconds <= 0 or self.max_deliver < 1:
            raise ValueError("need ack_wait_seconds > 0 and max_deliver >= 1")


@dataclass
class _Held:
    """A message in hand. ``msg`` is replaced when the server delivers it again, so that the newest one is answered."""

    message: BusMessage
    msg: Msg


@dataclass
class _Standing:
    """What the server last said about the consumer: where to resume if someone deletes it."""

    stream_created: str | None = None
    ack_floor: int = 0


class Consumer(Generic[M]):
    """See ``Service.consume`` for the arguments."""

    def __init__(
        self,
        bus: Bus,
        service: str,
        durable: str,
        subjects: Sequence[str],
        *,
        model: type[M],
        handler: Handler[M],
        options: ConsumerOptions,
        metrics: ServiceMetrics,
        tracing: Tracing,
        on_invalid: OnInvalid | None = None,
    ) -> None:
        self.durable = durable
        self.stream = bus.stream_of(subjects)
        self._bus = bus
        self._service = service
        self._subjects = list(subjects)
        self._model = model
        self._handler = handler
        self._on_invalid = on_invalid
        self._options = options
        self._metrics = metrics
        self._labels = (service, durable)
        self._tracing = tracing
        self._held: dict[int, _Held] = {}
        self._purposeful: dict[int, int] = {}
        self._standing = _Standing()
        self._pull: Pull | None = None
        self._trouble: str | None = "not started"
        self._stopping = False
        self._lanes: list[asyncio.Queue[int]] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def trouble(self) -> str | None:
        """Why no messages come, for /readyz; None while all is well."""
        return self._trouble

    def start(self) -> None:
        """Begin; also again after :meth:`stop`."""
        self._stopping = False
        count = self._options.concurrency
        shared: asyncio.Queue[int] = asyncio.Queue()
        self._lanes = [asyncio.Queue() for _ in range(count)] if self._options.order_by else [shared] * count
        self._tasks = [
            asyncio.create_task(self._receive(), name=f"{self.durable}:receive"),
            asyncio.create_task(self._stay_alive(), name=f"{self.durable}:alive"),
            asyncio.create_task(self._watch_standing(), name=f"{self.durable}:standing"),
        ]
        self._workers = [asyncio.create_task(self._work(lane), name=f"{self.durable}:work") for lane in self._lanes]

    async def stop(self, grace_seconds: float) -> None:
        """Take no more; give back what waits; let handlers finish for ``grace_seconds``, then cancel and give back."""
        self._stopping = True
        self._trouble = "stopping"
        if self._pull is not None:
            self._pull.end("stopping")
        # Ends the pull; what the server has already sent still arrives and is given back below.
        self._tasks[0].cancel()
        await asyncio.gather(self._tasks[0], return_exceptions=True)
        for lane in {id(lane): lane for lane in self._lanes}.values():
            while not lane.empty():
                await self._release(lane.get_nowait())
        for lane in self._lanes:
            lane.put_nowait(_END)
        done, late = await asyncio.wait(self._workers, timeout=grace_seconds)
        for worker in late:
            worker.cancel()
        if late:
            await asyncio.wait(late, timeout=_CANCEL_SECONDS)
        for sequence in list(self._held):
            await self._release(sequence)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in done:
            if not worker.cancelled() and (error := worker.exception()):
                log.error("worker failed", consumer=self.durable, error=repr(error))

    # -- receiving

    async def _receive(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                async with self._bus.until_reconnected(_SETUP_SECONDS):
                    await self._ensure_consumer()
                self._trouble = None
                failures = 0
                await self._pull_once()
            except PullEnded as error:
                self._trouble = error.message
                log.info("pull ended, starting anew", consumer=self.durable, why=error.message)
            except (OarlockError, nats.errors.Error, TimeoutError, OSError) as error:
                self._trouble = f"{type(error).__name__}: {error}"
                log.warning("consumer not available", consumer=self.durable, why=self._trouble)
                await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
                failures += 1

    async def _pull_once(self) -> None:
        self._pull = pull = Pull(
            self._bus.client,
            self.stream,
            self.durable,
            room=lambda: self._options.prefetch - len(self._held),
            batch_max=self._options.prefetch,
            deliver=self._take,
        )
        forget = self._bus.on_reconnect(lambda: pull.end("the connection was made anew"))
        try:
            await pull.run()
        finally:
            forget()
            self._pull = None

    def _take(self, msg: Msg) -> None:
        message = BusMessage.received(msg)
        sequence = message.sequence or 0
        if (message.delivery_count or 1) > 1:
            self._metrics.redelivered.labels(*self._labels).inc()
        if held := self._held.get(sequence):
            # Already in hand: the server lost patience or was restarted. Handling it twice at once helps nobody.
            held.msg = msg
            return
        self._held[sequence] = _Held(message, msg)
        self._metrics.in_flight.labels(*self._labels).set(len(self._held))
        lane = 0
        if self._options.order_by is not None:
            try:
                lane = hash(self._options.order_by(message)) % len(self._lanes)
            except Exception as error:
                log.warning("order_by failed, using the first lane", subject=message.subject, error=repr(error))
        self._lanes[lane].put_nowait(sequence)

    async def _ensure_consumer(self) -> None:
        jetstream = self._bus.jetstream
        try:
            info = await jetstream.consumer_info(self.stream, self.durable)
        except nats.js.errors.NotFoundError:
            await self._create_consumer()
            return
        wanted = self._config()
        merged = info.config.evolve(
            filter_subject=wanted.filter_subject,
            filter_subjects=wanted.filter_subjects,
            ack_wait=wanted.ack_wait,
            max_deliver=-1,
            max_ack_pending=wanted.max_ack_pending,
        )
        if merged.as_dict() != info.config.as_dict():
            await jetstream.add_consumer(self.stream, merged)

    async def _create_consumer(self) -> None:
        jetstream = self._bus.jetstream
        config = self._config()
        try:
            stream = await jetstream.stream_info(self.stream)
        except nats.js.errors.NotFoundError:
            await self._bus.ensure()
            stream = await jetstream.stream_info(self.stream)
        if self._standing.ack_floor and str(stream.created) == self._standing.stream_created:
            # Everything up to the floor was acknowledged by all copies: resume there, not at the beginning.
            config.deliver_policy = api.DeliverPolicy.BY_START_SEQUENCE
            config.opt_start_seq = self._standing.ack_floor + 1
        elif not self._options.from_start:
            config.deliver_policy = api.DeliverPolicy.NEW
        await jetstream.add_consumer(self.stream, config)
        self._standing = _Standing(str(stream.created), self._standing.ack_floor)

    def _config(self) -> api.ConsumerConfig:
        single = self._subjects[0] if len(self._subjects) == 1 else None
        return api.ConsumerConfig(
            durable_name=self.durable,
            name=self.durable,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=self._options.ack_wait_seconds,
            # Counting is ours: a server-side limit would drop the message of a process that died, silently.
            max_deliver=-1,
            max_ack_pending=max(1000, 16 * self._options.prefetch),
            filter_subject=single,
            filter_subjects=None if single else self._subjects,
        )

    async def _watch_standing(self) -> None:
        while True:
            with contextlib.suppress(nats.errors.Error, TimeoutError, OSError):
                info = await self._bus.jetstream.consumer_info(self.stream, self.durable)
                self._metrics.pending.labels(*self._labels).set(info.num_pending or 0)
                if info.ack_floor is not None:
                    created = str((await self._bus.jetstream.stream_info(self.stream)).created)
                    self._standing = _Standing(created, info.ack_floor.stream_seq)
            await asyncio.sleep(_STANDING_SECONDS)

    async def _stay_alive(self) -> None:
        """Tell the server that what is in hand is being worked on: also what waits here for a free handler."""
        while True:
            await asyncio.sleep(self._options.ack_wait_seconds / 3)
            for held in list(self._held.values()):
                with contextlib.suppress(nats.errors.Error, OSError):
                    await held.msg.in_progress()

    # -- handling

    async def _work(self, lane: asyncio.Queue[int]) -> None:
        while (sequence := await lane.get()) != _END:
            held = self._held.get(sequence)
            if held is None:
                continue
            if self._stopping:
                await self._release(sequence)
                continue
            try:
                await self._handle(sequence, held)
            except Exception as error:
                # Whatever goes wrong around a handler must not end the worker, and the message must come again.
                log.exception("could not finish a message", consumer=self.durable, error=repr(error))
                await self._release(sequence)

    async def _handle(self, sequence: int, held: _Held) -> None:
        message = held.message
        task_id = message.subject.rsplit(".", 1)[-1]
        with (
            structlog.contextvars.bound_contextvars(subject=message.subject, task_id=task_id),
            self._tracing.span(
                f"{self._service} {self._bus.subjects.event_type(message.subject)}",
                message.headers or {},
                kind=SpanKind.CONSUMER,
                attributes={"messaging.system": "nats", "messaging.destination.name": message.subject},
            ) as span,
        ):
            context = Context(self._bus, message, message.delivery_count or 1, log.bind(consumer=self.durable))
            error = await self._run_handler(message, context)
            if error is not None:
                span.record_exception(error)
                span.set_status(Status(StatusCode.ERROR, str(error)[:500]))
            await self._conclude(sequence, held, error, context)

    async def _run_handler(self, message: BusMessage, context: Context) -> Exception | None:
        failures = await self._failures(message)
        if kills_its_handler(failures, self._options.max_deliver):
            return _Crashing(f"delivered {message.delivery_count} times without any result")
        try:
            event = message.parse(self._model)
        except InvalidPayload as error:
            return error
        try:
            with self._metrics.handler_seconds.labels(*self._labels).time():
                async with asyncio.timeout(self._options.handler_timeout_seconds):
                    await self._handler(event, context)
        except Exception as error:
            return error
        return None

    async def _conclude(self, sequence: int, held: _Held, error: Exception | None, context: Context) -> None:
        options = self._options
        failures = 0 if error is None else await self._failures(held.message)
        verdict = judge(error, failures, max_deliver=options.max_deliver, backoff_seconds=options.backoff_seconds)
        match verdict:
            case Ack():
                await held.msg.ack()
                self._metrics.handled.labels(*self._labels).inc()
            case GiveBack(delay, on_purpose):
                kind = "temporary" if on_purpose else "retried"
                self._metrics.failed.labels(*self._labels, kind).inc()
                context.log.warning("given back", kind=kind, delay_seconds=delay, error=repr(error))
                if on_purpose:
                    await self._remember_purpose(sequence)
                await held.msg.nak(delay)
            case Bury(kind):
                await self._bury(held, error or PermanentError("no error"), kind, context, failures)
        self._forget(sequence, keep_purpose=isinstance(verdict, GiveBack))

    async def _bury(self, held: _Held, error: Exception, kind: str, context: Context, failures: int) -> None:
        kind = "invalid" if isinstance(error, InvalidPayload) else "crashing" if isinstance(error, _Crashing) else kind
        self._metrics.failed.labels(*self._labels, kind).inc()
        try:
            if isinstance(error, InvalidPayload) and self._on_invalid is not None:
                await self._announce(self._on_invalid, held.message, error, context, failures)
            reason = reason_for(held.message, error, service=self._service, consumer=self.durable, kind=kind)
            await bury(self._bus, held.message, reason)
        except Exception as failure:
            # Not stored, so not terminated: it comes again.
            context.log.error("could not bury a message; giving it back", error=repr(failure), reason=repr(error))
            await held.msg.nak(_DEAD_LETTER_RETRY_SECONDS)
            return
        context.log.error("message is dead", kind=kind, error=repr(error))
        self._metrics.dead.labels(*self._labels).inc()
        await held.msg.term()

    async def _announce(
        self, announce: OnInvalid, message: BusMessage, error: InvalidPayload, context: Context, failures: int
    ) -> None:
        """Call the hook; a hook that fails is tried again with the message, but does not keep it from its grave."""
        try:
            await announce(message, error, context)
        except TemporaryError:
            raise
        except Exception as failure:
            if failures < self._options.max_deliver:
                raise
            context.log.error("on_invalid failed for the last time", error=repr(failure))

    # -- counting

    async def _failures(self, message: BusMessage) -> int:
        """Failed deliveries including the present one; those given back on purpose are not failures."""
        count = message.delivery_count or 1
        if count == 1:
            return 1
        sequence = message.sequence or 0
        if sequence not in self._purposeful:
            # Given back by another copy, or before a restart.
            with contextlib.suppress(OarlockError):
                entry = await self._bus.bucket("attempts").get(self._attempts_key(sequence))
                self._purposeful[sequence] = int(entry.value.get("on_purpose", 0)) if entry else 0
        return max(1, count - self._purposeful.get(sequence, 0))

    async def _remember_purpose(self, sequence: int) -> None:
        self._purposeful[sequence] = self._purposeful.get(sequence, 0) + 1
        with contextlib.suppress(OarlockError):
            await self._bus.bucket("attempts").put(
                self._attempts_key(sequence), {"on_purpose": self._purposeful[sequence]}
            )

    def _attempts_key(self, sequence: int) -> str:
        return f"{self.durable}.{sequence}"

    # -- letting go

    async def _release(self, sequence: int) -> None:
        """Give back, at once, what was not handled."""
        if held := self._held.get(sequence):
            with contextlib.suppress(nats.errors.Error, OSError):
                await held.msg.nak()
            await self._remember_purpose(sequence)
            self._forget(sequence, keep_purpose=False)

    def _forget(self, sequence: int, *, keep_purpose: bool) -> None:
        self._held.pop(sequence, None)
        if not keep_purpose:
            self._purposeful.pop(sequence, None)
        self._metrics.in_flight.labels(*self._labels).set(len(self._held))
        if self._pull is not None:
            self._pull.wake()


class _Crashing(PermanentError):
    """The message's earlier deliveries all ended without a result."""


_END = -1
