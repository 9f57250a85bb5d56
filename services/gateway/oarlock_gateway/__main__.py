"""Wires the gateway: ``python -m oarlock_gateway``."""

from __future__ import annotations

import asyncio
import sys
import time

from oarlock_gateway.adapters.access import LOCAL_NAMES, Guard
from oarlock_gateway.adapters.bus_desk import BusDesk
from oarlock_gateway.adapters.bus_feed import BusFeed
from oarlock_gateway.adapters.http import routes
from oarlock_gateway.adapters.metrics import BoardCollector
from oarlock_gateway.settings import GatewaySettings
from oarlock_runtime import Service, Tracing, configure_logging, connect


async def main(settings: GatewaySettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    configure_logging("gateway", log_format=settings.log_format, level=settings.log_level)
    token = settings.gateway_token.get_secret_value() if settings.gateway_token else None
    if token is None and settings.http_host not in LOCAL_NAMES:
        sys.exit("set OARLOCK_GATEWAY_TOKEN: without one the gateway only listens on this machine (OARLOCK_HTTP_HOST)")
    bus = await connect(settings, "gateway")
    service = Service(
        bus,
        "gateway",
        http_host=settings.http_host,
        http_port=settings.http_port if settings.http_port is not None else 8750,
        tracing=Tracing("gateway", settings.otlp_endpoint),
        stop_grace_seconds=settings.stop_grace_seconds,
    )
    feed = BusFeed(bus)
    routes(
        service.app,
        BusDesk(bus),
        feed,
        Guard(token),
        max_body_bytes=settings.max_body_bytes,
        max_streams=settings.max_streams,
    )
    service.registry.register(BoardCollector(feed.board, time.time))
    service.background(feed.run, name="board")
    await service.run()


if __name__ == "__main__":
    asyncio.run(main(GatewaySettings()))
