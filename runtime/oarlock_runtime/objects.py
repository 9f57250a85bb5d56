"""Code bundles in the object store, named by what is in them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import TYPE_CHECKING

import nats.errors
import nats.js.errors
from nats.js.object_store import ObjectStore

from oarlock_runtime.errors import BusUnavailable, InvalidName, PayloadTooLarge, PermanentError
from oarlock_runtime.ordered import read_ordered

if TYPE_CHECKING:
    from oarlock_runtime.bus import Bus

BUNDLE_MAX_BYTES = 64 * 1024 * 1024
"""Largest bundle taken. Code, not data sets: those are mounted."""

_GET_SECONDS = 60.0
_DIGEST = re.compile(r"sha256-[0-9a-f]{64}")


class BundleStore:
    """Put and get by digest: the same bundle is stored once, and what is got is what was put."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._bus = bus
        self._name = name
        self._stream = f"OBJ_{name}"
        self._store = ObjectStore(name=name, stream=self._stream, js=bus.jetstream)

    async def put(self, data: bytes, *, max_bytes: int = BUNDLE_MAX_BYTES) -> str:
        """Store and return the key, ``sha256-`` and 64 hexadecimal digits. Storing it again changes nothing.

        Raises:
            PayloadTooLarge: over ``max_bytes``.
            BusUnavailable: the server did not answer.
        """
        if len(data) > max_bytes:
            raise PayloadTooLarge(
                f"the bundle has {len(data)} bytes, over the limit of {max_bytes}",
                fix="leave data and checkpoints out of the bundle and mount them",
            )
        key = digest(data)
        if await self.size_bytes(key) == len(data):
            return key
        try:
            await self._store.put(key, data)
        except nats.js.errors.APIError as error:
            raise PermanentError(f"the bundle store refuses {key}: {error.description}") from error
        except (nats.errors.Error, TimeoutError) as error:
            raise BusUnavailable(f"the bundle store does not answer: {error}") from error
        return key

    async def size_bytes(self, key: str) -> int | None:
        """Size of a stored bundle; None if there is none."""
        try:
            return int((await self._store.get_info(_checked(key))).size or 0)
        except nats.js.errors.NotFoundError:
            return None
        except (nats.errors.Error, TimeoutError) as error:
            raise BusUnavailable(f"the bundle store does not answer: {error}") from error

    async def get(self, key: str, *, max_bytes: int = BUNDLE_MAX_BYTES) -> bytes:
        """The bundle.

        Raises:
            PermanentError: there is none, or it is not what its key says.
            PayloadTooLarge: over ``max_bytes``; nothing is fetched then.
            BusUnavailable: the server did not answer.
        """
        size = await self.size_bytes(key)
        if size is None:
            raise PermanentError(f"no bundle {key}", fix="submit the bundle again")
        if size > max_bytes:
            raise PayloadTooLarge(f"bundle {key} has {size} bytes, over the limit of {max_bytes}")
        try:
            info = await self._store.get_info(key)
            data = await self._chunks(str(info.nuid), size) if size else b""
        except (nats.errors.Error, TimeoutError) as error:
            raise BusUnavailable(f"the bundle store does not answer: {error!r}") from error
        if digest(data) != key:
            raise PermanentError(f"bundle {key} is damaged: its digest is {digest(data)}")
        return data

    async def _chunks(self, nuid: str, size: int) -> bytes:
        """The pieces in order, until ``size`` bytes are there.

        Not the client's own ``get``: it waits for ever when the server goes away in between.
        """
        data = bytearray()
        reader = read_ordered(self._bus, self._stream, [f"$O.{self._name}.C.{nuid}"], start="all")
        try:
            async with asyncio.timeout(_GET_SECONDS):
                async for message in reader:
                    if message is not None:
                        data += message.data
                    if len(data) >= size:
                        break
        finally:
            await reader.aclose()
        return bytes(data)

    async def delete(self, key: str) -> None:
        """Remove; removing what is not there is no error."""
        try:
            await self._store.delete(_checked(key))
        except nats.js.errors.NotFoundError:
            return
        except (nats.errors.Error, TimeoutError) as error:
            raise BusUnavailable(f"the bundle store does not answer: {error}") from error


def digest(data: bytes) -> str:
    """The key of a bundle."""
    return "sha256-" + hashlib.sha256(data).hexdigest()


def _checked(key: str) -> str:
    if not _DIGEST.fullmatch(key):
        raise InvalidName(f"{key[:80]!r} is no bundle key", fix="use the key that put() returned")
    return key
