"""Two processes reserve the same devices at the same time: none is ever booked twice."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from oarlock_runtime import Bus, EmbeddedServer
from oarlock_schemas import LeaseBook

ATTEMPTS = 10_000


async def test_two_processes_never_book_a_device_twice(nats: EmbeddedServer, bus: Bus) -> None:
    racers = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("racer.py")),
            nats.url,
            nats.token or "",
            name,
            str(ATTEMPTS),
            stdout=asyncio.subprocess.PIPE,
        )
        for name in ("left", "right")
    ]
    counts = [json.loads((await racer.communicate())[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert sum(count["double"] for count in counts) == 0
    # Both won often, and both met the other: it was a race.
    assert all(count["booked"] > ATTEMPTS / 10 for count in counts)
    assert all(count["taken"] > 0 for count in counts)
    books = await bus.bucket("leases", LeaseBook).items()
    assert all(entry.value.leases == [] for entry in books.values())
