"""Wires the matcher: ``python -m oarlock_matcher``."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import UTC, datetime

from oarlock_matcher.adapters.decision_log import DecisionLog
from oarlock_matcher.handlers.leading import Leading
from oarlock_matcher.handlers.records import Records
from oarlock_matcher.settings import MatcherSettings
from oarlock_runtime import Leadership, Service, Tracing, configure_logging, connect
from oarlock_schemas import RunRecord


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def main(settings: MatcherSettings) -> None:
    """Stand for election, lead when elected, until SIGTERM or SIGINT."""
    configure_logging("matcher", log_format=settings.log_format, level=settings.log_level)
    bus = await connect(settings, "matcher")
    service = Service(
        bus,
        "matcher",
        http_host=settings.http_host,
        http_port=settings.http_port,
        tracing=Tracing("matcher", settings.otlp_endpoint),
        stop_grace_seconds=settings.stop_grace_seconds,
    )
    holder = f"{socket.gethostname()}-{os.getpid()}"
    leadership = Leadership(bus.bucket("leaders"), "matcher", holder, settings.leader_ttl_seconds)
    decisions = DecisionLog(settings.record_decisions) if settings.record_decisions else None
    leading = Leading(bus, service, _now, settings.tick_seconds, decisions)

    async def lead() -> None:
        await leadership.run(leading.reign)

    service.consume("matcher-completed", bus.subjects.completed(), RunRecord, Records(bus).completed)
    service.background(lead, name="leadership")
    await service.run()


if __name__ == "__main__":
    asyncio.run(main(MatcherSettings()))
