"""A service: what it consumes, serves and runs in the background, from start to a graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import nats.errors
from fastapi import FastAPI
from nats.aio.subscription import Subscription
from opentelemetry.trace import SpanKind
from pydantic import BaseModel

from oarlock_runtime.bus import Bus
from oarlock_runtime.consumer import Consumer, ConsumerOptions, Handler, OnInvalid
from oarlock_runtime.context import Context
from oarlock_runtime.errors import InvalidPayload, OarlockError, PermanentError
from oarlock_runtime.health import HttpServer, add_health_routes
from oarlock_runtime.logging import get_logger
from oarlock_runtime.messages import ERROR_HEADER, BusMessage
from oarlock_runtime.metrics import ServiceMetrics
from oarlock_runtime.subjects import token
from oarlock_runtime.tracing import Tracing
from oarlock_runtime.verdict import DEFAULT_BACKOFF_SECONDS, DEFAULT_MAX_DELIVER

M = TypeVar("M", bound=BaseModel)
Answer = BaseModel | Mapping[str, Any]

_BACKGROUND_RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
_BACKGROUND_STEADY_SECONDS = 60.0
_REQUESTS_AT_ONCE = 64

log = get_logger("service")


class Service:
    """Declare with :meth:`consume`, :meth:`serve`, :meth:`background`; then :meth:`run`.

    Args:
        bus: a connected bus.
        name: the service's name: labels, ``dead.{name}``, queue group.
        http_host: address of health and metrics.
        http_port: None serves no HTTP, 0 takes a free port (see :attr:`http_port`).
        tracing: from ``Tracing(name, endpoint)``; None exports nothing.
        stop_grace_seconds: how long handlers may go on after a signal.
        app: a FastAPI application of the caller's to add health and metrics to; None makes one.
    """

    def __init__(
        self,
        bus: Bus,
        name: str,
        *,
        http_host: str = "127.0.0.1",
        http_port: int | None = None,
        tracing: Tracing | None = None,
        stop_grace_seconds: float = 20.0,
        app: FastAPI | None = None,
    ) -> None:
        self.bus = bus
        self.name = token(name, "service name")
        self.metrics = ServiceMetrics(name)
        self.http_port = http_port
        self._http_host = http_host
        self._tracing = tracing or Tracing(name)
        self._grace_seconds = stop_grace_seconds
        self._consumers: list[Consumer[Any]] = []
        self._served: list[tuple[str, Callable[[BusMessage], Awaitable[None]]]] = []
        self._subscriptions: list[Subscription] = []
        self._background: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._background_trouble: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._requests: set[asyncio.Task[None]] = set()
        self._http: HttpServer | None = None
        self._stop = asyncio.Event()
        self._running = False
        self._forget_reconnect: Callable[[], None] = lambda: None
        self.app = app or FastAPI(title=f"Oarlock {name}", docs_url=None, redoc_url=None)
        add_health_routes(self.app, name, self.metrics.registry, self.troubles)

    @property
    def registry(self) -> Any:
        """The Prometheus registry behind /metrics, for a service's own metrics."""
        return self.metrics.registry

    def consume(
        self,
        durable: str,
        subjects: str | Sequence[str],
        model: type[M],
        handler: Handler[M],
        *,
        prefetch: int = 16,
        concurrency: int = 1,
        ack_wait_seconds: float = 30.0,
        handler_timeout_seconds: float = 900.0,
        max_deliver: int = DEFAULT_MAX_DELIVER,
        backoff: Sequence[float] = DEFAULT_BACKOFF_SECONDS,
        on_invalid: OnInvalid | None = None,
        order_by: Callable[[BusMessage], str] | None = None,
        from_start: bool = True,
        start: bool = True,
    ) -> Consumer[M]:
        """Handle every message of ``subjects`` at least once, together with all copies that share ``durable``.

        Args:
            durable: name of the consumer; copies of one service share it, different services must not.
            subjects: one filter or several of the same stream.
            model: what a body is; a body that is not goes to the dead letters.
            handler: ``async (event, context)``; must be idempotent. Returning acknowledges; see ``errors`` for raising.
            prefetch: messages held at most.
            concurrency: handlers at once.
            ack_wait_seconds: take-over time after a crash; slow handlers need no more of it.
            handler_timeout_seconds: a handler still running then is cancelled, which counts as a failure.
            max_deliver: failed deliveries until the dead letter. ``TemporaryError`` does not count.
            backoff: pauses between retries in seconds; the last one repeats.
            on_invalid: ``async (message, error, context)``, called before an unreadable message is buried.
            order_by: key of a message; equal keys are handled one after another.
            from_start: begin with what the stream already holds when the consumer is new.
            start: run it while the service runs. False leaves its ``start()`` and ``stop()`` to the caller: a leader
                consumes only while it leads.

        Returns:
            The consumer.

        Raises:
            PermanentError: the subjects are not all stored in one stream.
        """
        options = ConsumerOptions(
            prefetch, concurrency, ack_wait_seconds, handler_timeout_seconds, max_deliver, backoff, order_by, from_start
        )
        consumer = Consumer(
            self.bus,
            self.name,
            token(durable, "durable name"),
            [subjects] if isinstance(subjects, str) else subjects,
            model=model,
            handler=handler,
            options=options,
            metrics=self.metrics,
            tracing=self._tracing,
            on_invalid=on_invalid,
        )
        if start:
            self._consumers.append(consumer)
        return consumer

    def serve(
        self,
        subject: str,
        handler: Callable[[Any, Context], Awaitable[Answer]],
        *,
        model: type[BaseModel] | None = None,
        on_invalid: Callable[[BusMessage, InvalidPayload], Awaitable[Answer]] | None = None,
    ) -> None:
        """Answer requests on ``subject``; of all copies one answers.

        Args:
            subject: e.g. ``subjects.submit()``.
            handler: ``async (body, context) -> answer``; the body is ``model``, or the JSON value without one. An
                exception is answered as ``{"error": {"kind", "message", "fix", "faults"}}`` with an ``Oarlock-Error``
                header.
            model: what a body is; None hands over the parsed JSON.
            on_invalid: makes the answer to a body that cannot be read, instead of the one above.
        """

        async def answer(message: BusMessage) -> None:
            with self._tracing.span(f"{self.name} {subject}", message.headers, kind=SpanKind.SERVER):
                outcome, headers = "ok", {}
                try:
                    try:
                        body: Any = message.json() if model is None else message.parse(model)
                    except InvalidPayload as error:
                        if on_invalid is None:
                            raise
                        reply = await on_invalid(message, error)
                    else:
                        reply = await handler(body, Context(self.bus, message, 1, log.bind(subject=subject)))
                except Exception as error:
                    outcome, reply = "error", _error_answer(error)
                    headers = {ERROR_HEADER: reply["error"]["kind"]}
                    if not isinstance(error, OarlockError):
                        log.exception("request failed", subject=subject)
                self.metrics.requests.labels(self.name, subject, outcome).inc()
                await self.bus.reply(message, reply, headers=headers)

        self._served.append((subject, answer))

    def background(self, loop: Callable[[], Awaitable[None]], *, name: str | None = None) -> None:
        """Run ``loop()`` while the service runs; start it again, with growing pauses, when it raises.

        A loop that returns is done.
        """
        self._background.append((name or str(getattr(loop, "__name__", "background")), loop))

    def troubles(self) -> dict[str, str]:
        """What keeps the service from working, by part; empty when it is ready."""
        found = {} if self.bus.connected else {"bus": "not connected"}
        found |= {f"consumer {c.durable}": c.trouble for c in self._consumers if c.trouble}
        found |= {f"background {name}": why for name, why in self._background_trouble.items()}
        if not self._running:
            found["service"] = "stopping" if self._stop.is_set() else "not started"
        return found

    async def start(self) -> None:
        """Start everything; returns at once."""
        self._forget_reconnect = self.bus.on_reconnect(self.metrics.reconnects.labels(self.name).inc)
        self.metrics.connected.labels(self.name).set_function(lambda: float(self.bus.connected))
        if self.http_port is not None:
            self._http = HttpServer(self.app, self._http_host, self.http_port)
            self.http_port = self._http.port
            self._http.start()
        for subject, answer in self._served:
            self._subscriptions.append(await self.bus.subscribe(subject, self._in_own_task(answer), queue=self.name))
        for consumer in self._consumers:
            consumer.start()
        for name, loop in self._background:
            self._tasks.append(asyncio.create_task(self._supervise(name, loop), name=f"{self.name}:{name}"))
        self._running = True
        log.info("service started", service=self.name, http_port=self.http_port)

    def request_stop(self) -> None:
        """Make :meth:`run` end; what a signal does."""
        self._stop.set()

    async def stop(self) -> None:
        """Take no more, finish or give back what is in hand, end. Bounded by the grace and a few seconds."""
        self._stop.set()
        self._running = False
        for subscription in self._subscriptions:
            with contextlib.suppress(nats.errors.Error):
                await subscription.unsubscribe()
        await asyncio.gather(*(consumer.stop(self._grace_seconds) for consumer in self._consumers))
        for task in self._tasks:
            task.cancel()
        if pending := [*self._tasks, *self._requests]:
            await asyncio.wait(pending, timeout=min(5.0, self._grace_seconds))
        for request in self._requests:
            request.cancel()
        await self.bus.flush()
        if self._http is not None:
            await self._http.stop()
        self._forget_reconnect()
        await asyncio.to_thread(self._tracing.close)
        log.info("service stopped", service=self.name)

    async def run(self) -> None:
        """Start, stay until SIGTERM, SIGINT or :meth:`request_stop`, then stop and close the bus.

        Raises:
            PermanentError: the bus closed for good; let the supervisor start the process again.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop)
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._stop, self.bus.closed)]
        try:
            await self.start()
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            lost = self.bus.closed.is_set()
        finally:
            for waiter in waiting:
                waiter.cancel()
            await self.stop()
            await self.bus.close()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        if lost:
            raise PermanentError("the bus closed the connection for good", fix="check the service's credentials")

    async def __aenter__(self) -> Service:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _in_own_task(self, answer: Callable[[BusMessage], Awaitable[None]]) -> Callable[[BusMessage], Awaitable[None]]:
        """One slow request must not hold up the next; a bounded number run at once."""
        slots = asyncio.Semaphore(_REQUESTS_AT_ONCE)

        async def run(message: BusMessage) -> None:
            try:
                await answer(message)
            except Exception:
                log.exception("could not answer", subject=message.subject)
            finally:
                slots.release()

        async def received(message: BusMessage) -> None:
            await slots.acquire()
            task = asyncio.create_task(run(message))
            self._requests.add(task)
            task.add_done_callback(self._requests.discard)

        return received

    async def _supervise(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        clock = asyncio.get_running_loop().time
        failures = 0
        while True:
            started = clock()
            try:
                self._background_trouble.pop(name, None)
                await loop()
                return
            except Exception as error:
                failures = 0 if clock() - started > _BACKGROUND_STEADY_SECONDS else failures
                pause = _BACKGROUND_RETRY_SECONDS[min(failures, len(_BACKGROUND_RETRY_SECONDS) - 1)]
                failures += 1
                self._background_trouble[name] = repr(error)
                self.metrics.background_failures.labels(self.name, name).inc()
                log.exception("background loop failed", loop=name, again_in_seconds=pause)
                await asyncio.sleep(pause)


def _error_answer(error: Exception) -> dict[str, Any]:
    """What a requester is told. Of an error that is not ours only the class, as its text may hold anything."""
    if isinstance(error, OarlockError):
        faults = error.faults if isinstance(error, InvalidPayload) else []
        kind = "invalid" if faults else "permanent" if isinstance(error, PermanentError) else "temporary"
        return {"error": {"kind": kind, "message": error.message, "fix": error.fix, "faults": faults}}
    return {"error": {"kind": "internal", "message": type(error).__name__, "fix": None, "faults": []}}
