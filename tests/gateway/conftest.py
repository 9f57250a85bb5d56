"""A gateway on a port of its own, and somebody who answers submissions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from oarlock_gateway.adapters.access import Guard
from oarlock_gateway.adapters.bus_desk import BusDesk
from oarlock_gateway.adapters.bus_feed import BusFeed
from oarlock_gateway.adapters.http import routes
from oarlock_profiler.handlers.submission import Submission
from oarlock_runtime import Bus, EmbeddedServer, Service

TOKEN = "right-token"
AT = "2026-01-01T00:00:00+00:00"


@dataclass
class Gateway:
    url: str
    client: httpx.AsyncClient


@pytest.fixture
async def gateway(bus: Bus, nats: EmbeddedServer) -> AsyncIterator[Gateway]:
    """A gateway on a port of its own, and somebody who answers submissions."""
    async with await Bus.connect(nats.url, token=nats.token, name="gateway") as own:
        service = Service(own, "gateway", http_port=0)
        feed = BusFeed(own)
        routes(service.app, BusDesk(own), feed, Guard(TOKEN), max_body_bytes=100_000, max_streams=3)
        service.background(feed.run, name="board")
        desk = Service(bus, "profiler")
        desk.serve(bus.subjects.submit(), Submission(bus, lambda: AT).submit)
        async with service, desk:
            url = f"http://127.0.0.1:{service.http_port}"
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx.AsyncClient(base_url=url, headers=headers, timeout=10, trust_env=False) as client:
                yield Gateway(url, client)
