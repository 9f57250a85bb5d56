"""Bodies and headers: how a model becomes bytes and bytes a model, and what travels beside them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from nats.aio.msg import Msg
from pydantic import BaseModel

from oarlock_runtime.errors import InvalidPayload, PayloadTooLarge
from oarlock_runtime.logging import get_logger
from oarlock_runtime.tracing import TRACEPARENT, current_traceparent
from oarlock_schemas import InvalidMessage, read

M = TypeVar("M", bound=BaseModel)

MSG_ID: Final = "Nats-Msg-Id"
ERROR_HEADER: Final = "Oarlock-Error"
"""Set on the answer to a request that failed; its value is the kind of error."""

Payload = BaseModel | Mapping[str, Any] | bytes
"""What may be published: a model, a JSON object, or bytes that are sent as they are."""

_FAULTS_MAX = 50

log = get_logger("bus")


@dataclass(frozen=True)
class BusMessage:
    """A message as received.

    Attributes:
        subject: where it was published.
        data: the body.
        headers: text headers; empty where there were none.
        sequence: position in its stream; None for what is not stored.
        delivery_count: 1 on the first delivery; None for what is not stored.
        time: when the server stored it; None for what is not stored.
        reply: where an answer is awaited, None where none is.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    sequence: int | None = None
    delivery_count: int | None = None
    time: datetime | None = None
    reply: str | None = None

    @property
    def message_id(self) -> str | None:
        """The publisher's id of the message; None where it gave none."""
        return self.headers.get(MSG_ID) or self.headers.get("ce-id")

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            InvalidPayload: it is none.
        """
        return decode_json(self.data)

    def parse(self, model: type[M]) -> M:
        """The body as a model.

        Raises:
            InvalidPayload: it is no JSON, or not this model; holds every fault with its path.
        """
        return decode(self.data, model)

    @classmethod
    def received(cls, msg: Msg) -> BusMessage:
        """From the client's message, stored or not."""
        headers = {str(k): str(v) for k, v in (msg.headers or {}).items()}
        if msg.reply.startswith("$JS.ACK."):
            meta = msg.metadata
            return cls(msg.subject, msg.data, headers, meta.sequence.stream, meta.num_delivered, meta.timestamp, None)
        return cls(msg.subject, msg.data, headers, reply=msg.reply or None)


def encode(payload: Payload) -> bytes:
    """The body of a message.

    Raises:
        InvalidPayload: it cannot be written as JSON.
    """
    if isinstance(payload, bytes):
        data = payload
    elif isinstance(payload, BaseModel):
        data = payload.model_dump_json(by_alias=True).encode()
    else:
        try:
            data = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidPayload(f"the payload cannot be written as JSON: {error}") from error
    return data


def check_size(headers: Mapping[str, str], data: bytes, max_bytes: int) -> None:
    """Refuse what the server would answer by closing the connection: its limit counts headers and body.

    Raises:
        PayloadTooLarge: together they are over ``max_bytes``.
    """
    size = len(data) + len("NATS/1.0\r\n\r\n") + sum(len(f"{k}: {v}\r\n".encode()) for k, v in headers.items())
    if size > max_bytes:
        raise PayloadTooLarge(
            f"the message has {size} bytes with its headers, over the limit of {max_bytes}",
            fix="put large content into the bundle store and send its key",
        )


def decode_json(data: bytes) -> Any:
    """Parse JSON.

    Raises:
        InvalidPayload: not UTF-8, not JSON, or nested too deeply to be parsed.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(
            f"the body is not JSON: {error or type(error).__name__}", [{"path": "$", "message": str(error)}]
        ) from error


def decode(data: bytes, model: type[M]) -> M:
    """Parse and validate, tolerantly: fields that the model does not name are left out and logged.

    Raises:
        InvalidPayload: holds every fault (the first 50) with its JSON path.
    """
    try:
        value, ignored = read(model, data)
    except InvalidMessage as error:
        faults = [{"path": fault.path, "message": fault.message} for fault in error.faults[:_FAULTS_MAX]]
        raise InvalidPayload(
            f"not a valid {model.__name__}: {len(error.faults)} fault(s), first at {faults[0]['path']}: "
            f"{faults[0]['message']}",
            faults,
        ) from error
    if ignored:
        log.info("fields that are not known were ignored", model=model.__name__, paths=ignored[:_FAULTS_MAX])
    return value


def event_headers(
    event_type: str, source: str, message_id: str | None, extra: Mapping[str, str] | None
) -> dict[str, str]:
    """CloudEvents attributes in binary mode, the dedup id and the trace. ``extra`` wins."""
    identity = message_id or uuid.uuid4().hex
    headers = {
        MSG_ID: identity,
        "ce-specversion": "1.0",
        "ce-id": identity,
        "ce-type": event_type,
        "ce-source": source,
        "ce-time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "content-type": "application/json",
        TRACEPARENT: current_traceparent(),
    }
    # A header with a line break would smuggle further headers; the protocol has no escape for it.
    headers.update({_one_line(k): _one_line(v) for k, v in (extra or {}).items()})
    headers[MSG_ID] = headers["ce-id"] = _one_line(identity)
    return headers


def _one_line(text: str) -> str:
    return " ".join(text.split())
