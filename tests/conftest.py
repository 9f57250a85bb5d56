"""Fixtures every test may use: a real nats-server of its own, and a bus connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from oarlock_runtime import Bus, EmbeddedServer

# An example's wall time says how busy the machine is, nothing of the code.
settings.register_profile("oarlock", deadline=None)
settings.load_profile("oarlock")


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A running nats-server with JetStream in a folder of this test's own (ready in under 0.1 s)."""
    with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def bus(nats: EmbeddedServer) -> AsyncIterator[Bus]:
    """A connected bus whose streams and buckets exist."""
    async with await Bus.connect(nats.url, token=nats.token, name="test") as connected:
        await connected.ensure()
        yield connected
