"""Why a message could not be handled."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from oarlock_schemas.base import Message


class DeadReason(Message):
    """`dead.{service}` carries the original body and headers; this reason stands in the header `Oarlock-Dead`."""

    service: str
    consumer: str
    kind: str = Field(description="permanent, exhausted (retries), invalid (cannot be read), crashing (no result ever)")
    subject: str
    sequence: int | None = None
    message_id: str | None = None
    delivery_count: int
    error: str
    message: str
    fix: str | None = None
    faults: list[dict[str, Any]] = Field(default_factory=list)
    traceback: str
    time: str
