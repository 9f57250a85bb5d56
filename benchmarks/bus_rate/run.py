"""Messages per second through the whole runtime, beside the bare client, in one run on one server.

    python benchmarks/bus_rate/run.py [--messages 5000]

Absolute figures depend on the machine; compare the ratios within one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable

from pydantic import BaseModel

from oarlock_runtime import Bus, Context, EmbeddedServer, Service


class Event(BaseModel):
    """About a kilobyte, as an event of a task is."""

    n: int
    text: str = "x" * 950


async def timed(count: int, work: Callable[[], Awaitable[object]]) -> float:
    """Messages per second."""
    began = time.perf_counter()
    await work()
    return count / (time.perf_counter() - began)


async def publish(bus: Bus, subject: str, count: int, at_once: int) -> None:
    numbers = iter(range(count))

    async def lane() -> None:
        for n in numbers:
            await bus.publish(subject, Event(n=n))

    await asyncio.gather(*(lane() for _ in range(at_once)))


async def fetch_and_ack(bus: Bus, subject: str, count: int, batch: int) -> None:
    """The bare client: no parsing, no metrics, no traces."""
    subscription = await bus.jetstream.pull_subscribe(subject, durable=f"bare-{batch}", stream="oarlock_TASKS")
    done = 0
    while done < count:
        for message in await subscription.fetch(batch, timeout=5):
            await message.ack()
            done += 1
    await subscription.unsubscribe()


async def handle(bus: Bus, subject: str, count: int, durable: str, prefetch: int, concurrency: int) -> None:
    done = asyncio.Event()
    left = count

    async def handler(_: Event, __: Context) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    service = Service(bus, "bench")
    service.consume(durable, subject, Event, handler, prefetch=prefetch, concurrency=concurrency)
    async with service:
        await done.wait()


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(folder) as server:
        async with await Bus.connect(server.url, token=server.token, name="bench") as bus:
            await bus.ensure()
            subject = bus.subjects.submitted("bench")
            rates = {
                "publish, one at a time": await timed(count // 4, lambda: publish(bus, subject, count // 4, 1)),
                "publish, 64 at once": await timed(
                    count - count // 4, lambda: publish(bus, subject, count - count // 4, 64)
                ),
                "bare client, fetch(1)": await timed(count, lambda: fetch_and_ack(bus, subject, count, 1)),
                "bare client, fetch(256)": await timed(count, lambda: fetch_and_ack(bus, subject, count, 256)),
                "service, prefetch 1": await timed(count, lambda: handle(bus, subject, count, "p1", 1, 1)),
                "service, prefetch 16": await timed(count, lambda: handle(bus, subject, count, "p16", 16, 1)),
                "service, prefetch 256": await timed(count, lambda: handle(bus, subject, count, "p256", 256, 1)),
                "service, prefetch 256, 16 at once": await timed(
                    count, lambda: handle(bus, subject, count, "p256x16", 256, 16)
                ),
            }
    base = rates["bare client, fetch(256)"]
    print(
        json.dumps({name: {"per_second": round(r), "ratio": round(r / base, 2)} for name, r in rates.items()}, indent=2)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=5000)
    asyncio.run(main(parser.parse_args().messages))
