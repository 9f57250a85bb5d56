"""Everything of `oarlock up`, really running, once for all tests of the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from oarlock import AsyncClient
from oarlock.up import Up

ROOT = Path(__file__).parents[2]
SEED = ROOT / "deploy" / "fleets" / "seed.yaml"


def started(data: Path) -> Up:
    up = Up(data, fleet=SEED, environment={"OARLOCK_SIMULATED_LONGEST_SECONDS": "2"})
    up.start()
    return up


@pytest.fixture(scope="session")
def shared_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = started(tmp_path_factory.mktemp("up"))
    try:
        yield up
    finally:
        up.stop()


@pytest.fixture
async def client(shared_up: Up) -> AsyncIterator[AsyncClient]:
    async with await AsyncClient.connect(shared_up.connection) as connected:
        yield connected
