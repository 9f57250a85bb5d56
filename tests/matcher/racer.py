"""One of two processes that fight for the same devices: reserves and releases, and looks for double bookings."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from datetime import UTC, datetime

from oarlock_matcher.adapters.lease_books import BusBooks
from oarlock_matcher.core.devices import Share
from oarlock_matcher.ports import Booked
from oarlock_runtime import Bus
from oarlock_schemas import LeaseBook

GIB = 2**30


async def race(url: str, token: str, name: str, attempts: int) -> dict[str, int]:
    chance = random.Random(name)
    capacities = {f"GPU-{n}": 40 * GIB for n in range(4)}
    counts = {"booked": 0, "taken": 0, "double": 0}
    async with await Bus.connect(url, token=token, name=name) as bus:
        books = BusBooks(bus, capacities, lambda: datetime.now(UTC).isoformat())
        bucket = bus.bucket("leases", LeaseBook)
        for number in range(attempts):
            uids = sorted(chance.sample(sorted(capacities), chance.choice((1, 1, 2, 3))))
            exclusive = chance.random() < 0.6
            size = chance.choice((10, 25, 40)) * GIB
            shares = tuple(Share(uid, "n", size, 1000 if exclusive else 300, exclusive) for uid in uids)
            task = f"{name}-{number}"
            result = await books.reserve(task, 1, name, shares)
            if not isinstance(result, Booked):
                counts["taken"] += 1
                continue
            counts["booked"] += 1
            for uid in uids:
                entry = await bucket.get(uid)
                leases = entry.value.leases if entry else []
                alone = all(lease.task_id == task for lease in leases)
                fits = sum(lease.bytes for lease in leases) <= capacities[uid]
                mine = any(lease.task_id == task for lease in leases)
                if not mine or not fits or (any(lease.exclusive for lease in leases) and not alone):
                    counts["double"] += 1
            await books.release(task, 1, shares)
    return counts


if __name__ == "__main__":
    print(json.dumps(asyncio.run(race(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))))
