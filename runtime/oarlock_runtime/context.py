"""What a handler is told about its message, beside the event itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from oarlock_runtime.messages import BusMessage, Payload
from oarlock_runtime.tracing import current_trace_id

if TYPE_CHECKING:
    from oarlock_runtime.bus import Bus


@dataclass(frozen=True)
class Context:
    """The delivery a handler works on.

    Attributes:
        bus: for everything else a handler needs from the bus.
        message: the message as received: body, headers, sequence, time.
        delivery_count: 1 on the first delivery; 1 for a request.
        log: a logger with subject, task id and trace id bound.
    """

    bus: Bus
    message: BusMessage
    delivery_count: int
    log: structlog.stdlib.BoundLogger

    @property
    def subject(self) -> str:
        return self.message.subject

    @property
    def message_id(self) -> str | None:
        """The publisher's id; None where a foreign program gave none."""
        return self.message.message_id

    @property
    def headers(self) -> Mapping[str, str]:
        return self.message.headers

    @property
    def trace_id(self) -> str | None:
        """The task's trace in hexadecimal."""
        return current_trace_id()

    async def publish(
        self, subject: str, payload: Payload, *, msg_id: str | None = None, headers: Mapping[str, str] | None = None
    ) -> int:
        """Publish an effect of this message; it continues the same trace. See ``Bus.publish``.

        Without ``msg_id`` the effect's identity is derived from the cause's, so a second delivery of the cause
        publishes the same event again and the server drops it.
        """
        if msg_id is None and (self.message_id or self.message.sequence is not None):
            cause = self.message_id or f"{self.message.subject}:{self.message.sequence}"
            msg_id = f"{cause}>{subject}"
        return await self.bus.publish(subject, payload, msg_id=msg_id, headers=headers)
