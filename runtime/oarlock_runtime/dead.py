"""Dead letters: messages that could not be handled, kept with the reason, to be looked at and tried again.

A letter's body is the original body, its headers the original headers, and the reason stands beside them in headers of
its own; so nothing has to be unpacked to retry it.
"""

from __future__ import annotations

import json
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import nats.errors
import nats.js.errors

from oarlock_runtime.errors import BusUnavailable, InvalidPayload, OarlockError, PermanentError
from oarlock_runtime.messages import MSG_ID, BusMessage
from oarlock_runtime.ordered import read_ordered

if TYPE_CHECKING:
    from oarlock_runtime.bus import Bus

REASON = "Oarlock-Dead"
RETRY_OF = "Oarlock-Retry-Of"
_TRACEBACK_MAX_LENGTH = 4000
_MESSAGE_MAX_LENGTH = 2000
_FIX_MAX_LENGTH = 500
_FAULTS_MAX = 20
_REASON_MAX_BYTES = 32 * 1024
_HEADERS_MAX_BYTES = 24 * 1024
# Headers that belong to one publish and must not be repeated by the next.
_OF_ONE_PUBLISH = {MSG_ID, "ce-id", "ce-time", REASON, RETRY_OF}


@dataclass(frozen=True)
class Reason:
    """Why a message died.

    Attributes:
        service: who could not handle it.
        consumer: the durable consumer it came from.
        kind: ``permanent``, ``exhausted`` (retries), ``invalid`` (cannot be parsed), ``crashing`` (never a result).
        subject: where it was published.
        sequence: its place in its stream.
        message_id: the publisher's id; None where it gave none.
        delivery_count: how often it was delivered.
        error: class of the error.
        message: its text.
        fix: how to mend it, where the error knows.
        faults: for an invalid body: path and message of each fault.
        traceback: the last lines.
        time: when it died, RFC 3339.
    """

    service: str
    consumer: str
    kind: str
    subject: str
    sequence: int | None
    message_id: str | None
    delivery_count: int
    error: str
    message: str
    fix: str | None
    faults: tuple[Mapping[str, str], ...]
    traceback: str
    time: str


@dataclass(frozen=True)
class DeadLetter:
    """A letter as stored.

    Attributes:
        sequence: its number in the dead-letter stream, by which ``show`` and ``retry`` name it.
        reason: why it died.
        data: the original body.
        headers: the original headers.
        retried_at: when it was last retried, RFC 3339; None if never.
    """

    sequence: int
    reason: Reason
    data: bytes
    headers: Mapping[str, str]
    retried_at: str | None = None


def reason_for(message: BusMessage, error: BaseException, *, service: str, consumer: str, kind: str) -> Reason:
    """Describe a death, bounded in size whatever the error holds."""
    faults: Sequence[Mapping[str, str]] = error.faults[:_FAULTS_MAX] if isinstance(error, InvalidPayload) else []
    text = "".join(traceback.format_exception(error, limit=-8))
    return Reason(
        service=service,
        consumer=consumer,
        kind=kind,
        subject=message.subject,
        sequence=message.sequence,
        message_id=message.message_id,
        delivery_count=message.delivery_count or 1,
        error=type(error).__name__,
        message=(error.message if isinstance(error, OarlockError) else str(error))[:_MESSAGE_MAX_LENGTH],
        fix=error.fix[:_FIX_MAX_LENGTH] if isinstance(error, OarlockError) and error.fix else None,
        faults=tuple({"path": f["path"][:200], "message": f["message"][:200]} for f in faults),
        traceback=text[-_TRACEBACK_MAX_LENGTH:],
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


async def bury(bus: Bus, message: BusMessage, reason: Reason) -> None:
    """Store a dead letter; the same death is stored once.

    Raises:
        BusUnavailable, PermanentError: it could not be stored; the message must then not be terminated.
    """
    headers = _kept_headers(message.headers)
    headers[REASON] = _as_header(reason)
    identity = f"dead:{reason.consumer}:{message.subject}:{message.sequence}:{reason.message_id}"
    await bus.publish(bus.subjects.dead(reason.service), message.data, msg_id=identity, headers=headers)


def _kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The original headers as far as there is room: the server stores at most 64 KiB of headers with a message."""
    kept: dict[str, str] = {}
    room = _HEADERS_MAX_BYTES
    for key, value in headers.items():
        if key in {MSG_ID, "ce-id", REASON}:
            continue
        room -= len(f"{key}: {value}\r\n".encode())
        if room >= 0:
            kept[key] = value
    return kept


def _as_header(reason: Reason) -> str:
    """One line of ASCII within the room that is left for it, giving up the least telling parts first."""
    text = json.dumps(asdict(reason))
    for shorter in (
        replace(reason, faults=reason.faults[:3]),
        replace(reason, faults=(), traceback=reason.traceback[-500:], message=reason.message[:500]),
        replace(reason, faults=(), traceback="", message=reason.message[:200], fix=None, message_id=None),
    ):
        if len(text) <= _REASON_MAX_BYTES:
            break
        text = json.dumps(asdict(shorter))
    return text


class DeadLetters:
    """Reading and retrying. Used by ``oarlock dead`` and the gateway."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._stream = f"{bus.subjects.prefix}_DEAD"
        self._retries = bus.bucket("attempts")

    async def list(self, service: str | None = None, *, limit: int = 1000) -> list[DeadLetter]:
        """The newest ``limit`` letters, oldest first; only those of ``service`` where one is named."""
        subject = self._bus.subjects.dead(service) if service else self._bus.subjects.dead()
        letters: list[DeadLetter] = []
        reader = read_ordered(self._bus, self._stream, [subject], start="all")
        try:
            async for message in reader:
                if message is None:
                    break
                if letter := _letter(message.sequence or 0, message.data, message.headers, None):
                    letters.append(letter)
                    del letters[:-limit]
        finally:
            await reader.aclose()
        retried = await self._retries.items("retried.*")
        return [_with_retry(letter, retried) for letter in letters]

    async def show(self, sequence: int) -> DeadLetter:
        """One letter.

        Raises:
            PermanentError: there is none of that number.
        """
        try:
            stored = await self._bus.jetstream.get_msg(self._stream, seq=sequence)
        except nats.js.errors.NotFoundError as error:
            raise PermanentError(f"no dead letter {sequence}", fix="see `oarlock dead list`") from error
        except (nats.errors.Error, TimeoutError) as error:
            raise BusUnavailable(f"the dead letters do not answer: {error}") from error
        letter = _letter(
            sequence, stored.data or b"", {str(k): str(v) for k, v in (stored.headers or {}).items()}, None
        )
        if letter is None:
            raise PermanentError(f"message {sequence} of {self._stream} is no dead letter")
        entry = await self._retries.get(f"retried.{sequence}")
        return _with_retry(letter, {f"retried.{sequence}": entry} if entry else {})

    async def retry(self, sequence: int) -> int:
        """Publish the original body again where it came from, as a new message; returns its sequence.

        The letter stays, marked as retried.
        """
        letter = await self.show(sequence)
        headers = {k: v for k, v in letter.headers.items() if k not in _OF_ONE_PUBLISH}
        headers[RETRY_OF] = letter.reason.message_id or str(letter.reason.sequence)
        identity = f"retry:{sequence}:{uuid.uuid4().hex[:12]}"
        published = await self._bus.publish(letter.reason.subject, letter.data, msg_id=identity, headers=headers)
        await self._retries.put(
            f"retried.{sequence}", {"time": datetime.now(UTC).isoformat(timespec="seconds"), "sequence": published}
        )
        return published


def _letter(sequence: int, data: bytes, headers: Mapping[str, str], retried_at: str | None) -> DeadLetter | None:
    try:
        fields: dict[str, Any] = json.loads(headers.get(REASON, ""))
        fields["faults"] = tuple(fields["faults"])
        reason = Reason(**fields)
    except (ValueError, KeyError, TypeError):
        return None
    original = {k: v for k, v in headers.items() if k not in {REASON, MSG_ID, "ce-id"}}
    return DeadLetter(sequence, reason, data, original, retried_at)


def _with_retry(letter: DeadLetter, retried: Mapping[str, Any]) -> DeadLetter:
    entry = retried.get(f"retried.{letter.sequence}")
    if entry is None:
        return letter
    return DeadLetter(letter.sequence, letter.reason, letter.data, letter.headers, entry.value["time"])
