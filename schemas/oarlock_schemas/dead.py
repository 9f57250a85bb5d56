"""A message that could not be handled."""

from __future__ import annotations

from pydantic import Field

from oarlock_schemas.base import Message


class DeadLetter(Message):
    """`dead.{service}`: the original message, as it came, with the error that ended its delivery."""

    service: str
    subject: str
    payload_base64: str
    headers: dict[str, str] = Field(default_factory=dict)
    error_type: str
    error: str
    fix: str | None = None
    traceback: str | None = None
    deliveries: int
    stream: str | None = None
    stream_sequence: int | None = None
    at: str
