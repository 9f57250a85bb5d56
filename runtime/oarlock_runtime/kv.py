"""State that many processes change: key-value buckets with compare-and-set.

Written on JetStream directly, because the client's own wrapper hides expiry markers from ``get`` and raises on an empty
``keys``. The layout on the wire is NATS ADR-8, so the ``nats`` command line shows the buckets as usual.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

import nats.errors
import nats.js.errors
from nats.js import api
from pydantic import BaseModel

from oarlock_runtime.errors import BusUnavailable, Contended, InvalidName, PermanentError, StaleRevision
from oarlock_runtime.messages import check_size, decode, decode_json, encode
from oarlock_runtime.ordered import read_ordered
from oarlock_runtime.topology import MESSAGE_MAX_BYTES

if TYPE_CHECKING:
    from oarlock_runtime.bus import Bus

V = TypeVar("V")

_KEY = re.compile(r"[A-Za-z0-9_=/-]+(\.[A-Za-z0-9_=/-]+)*")
_KEY_MAX_LENGTH = 256
_WRONG_LAST_SEQUENCE = {10071, 10164}
_TOMBSTONES = {"DEL", "PURGE"}
CHANGE_ATTEMPTS: Final = 64
"""Compare-and-set attempts before :class:`Contended`: enough for dozens of writers on one key."""
_PAUSE_FIRST_SECONDS = 0.001
_PAUSE_MAX_SECONDS = 0.05
_SERVER_TIMEOUT_SECONDS = 5.0
_READ_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


class _Delete:
    """Type of :data:`DELETE`."""


DELETE: Final = _Delete()
"""Returned by the function given to :meth:`Bucket.change` to delete the key."""


@dataclass(frozen=True)
class Entry(Generic[V]):
    """A value and the revision it has. Revisions grow over the whole bucket and never repeat."""

    key: str
    value: V
    revision: int
    time: datetime | None = None


@dataclass(frozen=True)
class Change(Generic[V]):
    """Something that happened to a key.

    Attributes:
        value: the new value; None when it is gone.
        kind: ``put``, ``deleted`` by someone, or ``expired`` by its time-to-live.
    """

    key: str
    value: V | None
    revision: int
    kind: Literal["put", "deleted", "expired"]


class Bucket(Generic[V]):
    """One bucket. Get it from ``Bus.bucket``."""

    def __init__(self, bus: Bus, name: str, model: type[BaseModel] | None = None) -> None:
        self._bus = bus
        self.name = name
        self._model = model
        self._stream = f"KV_{name}"
        self._subject_prefix = f"$KV.{name}."

    async def get(self, key: str) -> Entry[V] | None:
        """The current value; None where there is none.

        Raises:
            InvalidPayload: the stored value is not what this bucket holds.
            BusUnavailable: no answer.
        """
        stored = await self._last(key)
        return None if stored is None or _tombstone(stored.headers) else self._entry(key, stored)

    async def put(self, key: str, value: V, *, ttl_seconds: float | None = None) -> int:
        """Write whatever was there before; returns the revision. For keys with one writer."""
        return await self._write(key, value, None, ttl_seconds)

    async def create(self, key: str, value: V, *, ttl_seconds: float | None = None) -> int:
        """Write a key that must not exist; returns its revision.

        Raises:
            StaleRevision: it exists.
        """
        try:
            return await self._write(key, value, 0, ttl_seconds)
        except StaleRevision as error:
            # A deleted or expired key leaves a marker, whose revision must then be named.
            stored = await self._last(key)
            if stored is None:
                return await self._write(key, value, 0, ttl_seconds)
            if not _tombstone(stored.headers):
                raise StaleRevision(key, 0) from error
            return await self._write(key, value, int(stored.seq or 0), ttl_seconds)

    async def update(self, key: str, value: V, revision: int, *, ttl_seconds: float | None = None) -> int:
        """Write if the key still has ``revision``; returns the new one.

        Args:
            key: the key.
            value: the new value.
            revision: as read.
            ttl_seconds: end of this value unless written again; None takes the bucket's.

        Raises:
            StaleRevision: it has another revision, or is gone.
        """
        return await self._write(key, value, revision, ttl_seconds)

    async def delete(self, key: str, revision: int | None = None) -> None:
        """Delete, if it still has ``revision`` where one is given. Deleting what is not there is no error.

        Raises:
            StaleRevision: it has another revision.
        """
        headers = {"KV-Operation": "DEL"}
        if revision is not None:
            headers[api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value] = str(revision)
        await self._publish(key, b"", headers, revision or 0)

    async def change(
        self, key: str, function: Callable[[V | None], V | _Delete | None], *, attempts: int = CHANGE_ATTEMPTS
    ) -> Entry[V] | None:
        """Read, apply ``function``, write if nobody wrote in between; else again.

        Args:
            key: the key.
            function: old value (None where absent) to new one; must be pure, as it may run many times. ``None`` leaves
                things as they are, :data:`DELETE` deletes.
            attempts: bound of the loop.

        Returns:
            The entry as it stands now; None if there is none.

        Raises:
            Contended: every attempt lost.
        """
        pause = _PAUSE_FIRST_SECONDS
        for _ in range(attempts):
            stored = await self._last(key)
            revision = int(stored.seq or 0) if stored is not None else 0
            entry = None if stored is None or _tombstone(stored.headers) else self._entry(key, stored)
            new = function(entry.value if entry else None)
            if new is None:
                return entry
            try:
                if isinstance(new, _Delete):
                    if entry:
                        await self.delete(key, revision)
                    return None
                return Entry(key, new, await self._write(key, new, revision, None))
            except StaleRevision:
                # Jitter, so that writers who collided do not collide again in step.
                await asyncio.sleep(random.uniform(0, pause))  # noqa: S311
                pause = min(pause * 2, _PAUSE_MAX_SECONDS)
        raise Contended(f"key {key!r} of {self.name}: {attempts} compare-and-set attempts lost", 0.5)

    async def keys(self, pattern: str = ">") -> list[str]:
        """All keys that match, sorted. ``*`` stands for one part between dots, ``>`` for the rest."""
        return sorted([entry.key async for entry in self._scan(pattern, headers_only=True)])

    async def items(self, pattern: str = ">") -> dict[str, Entry[V]]:
        """All entries that match, by key."""
        return {entry.key: entry async for entry in self._scan(pattern)}

    async def watch(
        self, pattern: str = ">", *, caught_up: asyncio.Event | None = None
    ) -> AsyncGenerator[Change[V], None]:
        """The current entries, then every change, in order; goes on over restarts of the server.

        ``caught_up`` is set when the current entries have all been yielded.
        """
        reader = read_ordered(self._bus, self._stream, [self._subject_prefix + pattern], start="last")
        try:
            async for message in reader:
                if message is None:
                    if caught_up is not None:
                        caught_up.set()
                    continue
                key = message.subject.removeprefix(self._subject_prefix)
                gone = _tombstone(message.headers)
                value = None if gone else self._decode(key, message.data)
                yield Change(key, value, int(message.sequence or 0), gone or "put")
        finally:
            await reader.aclose()

    async def _scan(self, pattern: str, *, headers_only: bool = False) -> AsyncGenerator[Entry[V], None]:
        reader = read_ordered(
            self._bus, self._stream, [self._subject_prefix + pattern], start="last", headers_only=headers_only
        )
        try:
            async with asyncio.timeout(_SERVER_TIMEOUT_SECONDS * 2):
                async for message in reader:
                    if message is None:
                        return
                    if _tombstone(message.headers):
                        continue
                    key = message.subject.removeprefix(self._subject_prefix)
                    value = cast("V", None) if headers_only else self._decode(key, message.data)
                    yield Entry(key, value, int(message.sequence or 0), message.time)
        except TimeoutError as error:
            raise BusUnavailable(f"bucket {self.name} could not be read in time") from error
        finally:
            await reader.aclose()

    def _entry(self, key: str, stored: api.RawStreamMsg) -> Entry[V]:
        return Entry(key, self._decode(key, stored.data or b""), int(stored.seq or 0), stored.time)

    def _decode(self, key: str, data: bytes) -> V:
        if self._model is not None:
            return cast("V", decode(data, self._model))
        value: Any = decode_json(data)
        if not isinstance(value, dict):
            raise PermanentError(f"key {key!r} of {self.name} holds no JSON object")
        return cast("V", value)

    async def _last(self, key: str) -> api.RawStreamMsg | None:
        subject = self._subject(key)
        deadline = asyncio.get_running_loop().time() + _READ_SECONDS
        while True:
            try:
                async with self._bus.until_reconnected(_SERVER_TIMEOUT_SECONDS):
                    return await self._bus.jetstream.get_msg(self._stream, subject=subject, direct=True)
            except nats.js.errors.NotFoundError:
                return None
            except (nats.errors.Error, TimeoutError) as error:
                # Reading again is harmless, and a server that restarts is back within a second.
                if asyncio.get_running_loop().time() >= deadline or self._bus.closed.is_set():
                    raise BusUnavailable(f"bucket {self.name} does not answer: {error!r}") from error
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _write(self, key: str, value: V, revision: int | None, ttl_seconds: float | None) -> int:
        headers: dict[str, str] = {}
        if revision is not None:
            headers[api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value] = str(revision)
        if ttl_seconds is not None:
            headers[api.Header.MSG_TTL.value] = f"{ttl_seconds:g}s"
        return await self._publish(key, encode(cast("Any", value)), headers, revision or 0)

    async def _publish(self, key: str, data: bytes, headers: dict[str, str], expected: int) -> int:
        check_size(headers, data, MESSAGE_MAX_BYTES)
        deadline = asyncio.get_running_loop().time() + _SERVER_TIMEOUT_SECONDS
        while True:
            try:
                # Not repeated on a time-out: whether the first one happened is for the caller to find out by reading.
                async with self._bus.until_reconnected(_SERVER_TIMEOUT_SECONDS, self._subject(key)):
                    ack = await self._bus.jetstream.publish(
                        self._subject(key), data, timeout=_SERVER_TIMEOUT_SECONDS, headers=dict(headers)
                    )
                return int(ack.seq)
            except nats.js.errors.NoStreamResponseError as error:
                # A server that has just started: nobody heard it, so repeating is safe.
                if asyncio.get_running_loop().time() >= deadline:
                    raise BusUnavailable(f"bucket {self.name} does not answer: {error!r}") from error
                await asyncio.sleep(_PAUSE_SECONDS)
            except nats.js.errors.APIError as error:
                if error.err_code in _WRONG_LAST_SEQUENCE:
                    raise StaleRevision(key, expected) from error
                if error.code is not None and error.code < 500:
                    raise PermanentError(f"bucket {self.name} refuses {key!r}: {error.description}") from error
                raise BusUnavailable(f"bucket {self.name}: {error.description}") from error
            except (nats.errors.Error, TimeoutError) as error:
                if self._bus.denied(self._subject(key)):
                    raise PermanentError(
                        f"this user may not write {key!r} of {self.name}", fix="see the server's users"
                    ) from error
                raise BusUnavailable(f"bucket {self.name} does not answer: {error!r}") from error

    def _subject(self, key: str) -> str:
        if len(key) > _KEY_MAX_LENGTH or not _KEY.fullmatch(key):
            raise InvalidName(f"{key[:80]!r} cannot be a key", fix="use letters, digits, '_', '-', '=', '/' and dots")
        return self._subject_prefix + key


def _tombstone(headers: Any) -> Literal["deleted", "expired"] | None:
    """What a marker left in place of a value says; None for a value."""
    if not headers:
        return None
    if headers.get("KV-Operation") in _TOMBSTONES:
        return "deleted"
    if reason := headers.get("Nats-Marker-Reason"):
        return "expired" if reason == "MaxAge" else "deleted"
    return None
