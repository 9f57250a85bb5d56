"""Compare-and-set, expiry, watching."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from pydantic import BaseModel

from oarlock_runtime import (
    DELETE,
    Bus,
    Contended,
    EmbeddedServer,
    InvalidName,
    InvalidPayload,
    StaleRevision,
)


class Counter(BaseModel):
    count: int


async def test_round_trip_as_dict_and_as_model(bus: Bus) -> None:
    plain, typed = bus.bucket("tasks"), bus.bucket("tasks", Counter)
    assert await plain.get("a.b") is None
    revision = await typed.create("a.b", Counter(count=1))
    entry = await typed.get("a.b")
    assert entry is not None
    assert (entry.value, entry.revision) == (Counter(count=1), revision)
    assert (await plain.items())["a.b"].value == {"count": 1}


async def test_create_update_delete_hold_to_the_revision(bus: Bus) -> None:
    tasks = bus.bucket("tasks")
    first = await tasks.create("k", {"n": 1})
    with pytest.raises(StaleRevision, match="expected no value"):
        await tasks.create("k", {"n": 9})
    second = await tasks.update("k", {"n": 2}, first)
    assert second > first
    with pytest.raises(StaleRevision) as lost:
        await tasks.update("k", {"n": 9}, first)
    assert lost.value.__cause__ is not None
    with pytest.raises(StaleRevision):
        await tasks.delete("k", first)
    await tasks.delete("k", second)
    assert await tasks.get("k") is None
    assert await tasks.keys() == []
    third = await tasks.create("k", {"n": 3})  # over the marker that the deletion left
    assert third > second


async def test_keys_and_items_take_patterns(bus: Bus) -> None:
    devices = bus.bucket("devices")
    for key in ("lab.n1.gpu0", "lab.n1.gpu1", "lab.n2.gpu0"):
        await devices.put(key, {"key": key})
    assert await devices.keys("lab.n1.*") == ["lab.n1.gpu0", "lab.n1.gpu1"]
    assert set(await devices.items()) == {"lab.n1.gpu0", "lab.n1.gpu1", "lab.n2.gpu0"}


@pytest.mark.parametrize("key", ["", ".a", "a.", "a..b", "a b", "*", "a.>", "k\r\n", "x" * 257])
async def test_hostile_keys_are_refused(bus: Bus, key: str) -> None:
    with pytest.raises(InvalidName):
        await bus.bucket("tasks").put(key, {})


async def test_a_value_of_another_shape_is_named(bus: Bus) -> None:
    await bus.bucket("tasks").put("k", {"count": "many"})
    with pytest.raises(InvalidPayload) as error:
        await bus.bucket("tasks", Counter).get("k")
    assert error.value.faults[0]["path"] == "$.count"


async def test_change_leaves_creates_changes_and_deletes(bus: Bus) -> None:
    tasks = bus.bucket("tasks", Counter)

    def increment(old: Counter | None) -> Counter:
        return Counter(count=old.count + 1 if old else 1)

    assert await tasks.change("k", lambda _: None) is None
    for expected in (1, 2):
        entry = await tasks.change("k", increment)
        assert entry is not None
        assert entry.value.count == expected
    unchanged = await tasks.change("k", lambda _: None)
    assert unchanged is not None
    assert unchanged.revision == (entry.revision if entry else None)
    assert await tasks.change("k", lambda _: DELETE) is None
    again = await tasks.change("k", increment)
    assert again is not None
    assert again.value.count == 1


async def test_change_gives_up_when_it_always_loses(bus: Bus) -> None:
    tasks = bus.bucket("tasks", Counter)
    calls = 0

    async def disturb(stop: asyncio.Event) -> None:
        while not stop.is_set():
            await tasks.put("k", Counter(count=0))

    stop = asyncio.Event()
    disturbing = asyncio.create_task(disturb(stop))

    def increment(old: Counter | None) -> Counter:
        nonlocal calls
        calls += 1
        return Counter(count=1)

    # One attempt against a writer that never rests loses sooner or later; with attempts=1 that is "contended".
    with pytest.raises(Contended):
        for _ in range(1000):
            await tasks.change("k", increment, attempts=1)
    stop.set()
    await disturbing
    assert calls >= 1


async def test_expiry_is_seen_by_get_keys_and_watch(bus: Bus) -> None:
    devices = bus.bucket("devices")
    await devices.put("lab.n1", {"n": 1}, ttl_seconds=1)
    await devices.put("lab.n2", {"n": 2})
    kinds: dict[str, list[str]] = {}
    async with asyncio.timeout(10):
        async for change in devices.watch():
            kinds.setdefault(change.key, []).append(change.kind)
            if change.kind != "put":
                break
    assert kinds == {"lab.n1": ["put", "expired"], "lab.n2": ["put"]}
    assert await devices.get("lab.n1") is None
    assert await devices.keys() == ["lab.n2"]
    await devices.create("lab.n1", {"n": 3})


async def test_watch_goes_on_over_a_server_restart(nats: EmbeddedServer, bus: Bus) -> None:
    tasks = bus.bucket("tasks")
    await tasks.put("before", {"n": 0})
    caught_up = asyncio.Event()
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def follow() -> None:
        async for change in tasks.watch(caught_up=caught_up):
            seen.put_nowait(change.key)

    following = asyncio.create_task(follow())
    async with asyncio.timeout(20):
        await caught_up.wait()
        assert await seen.get() == "before"
        nats.kill()
        nats.start()
        await bus.publish(bus.subjects.submitted("x"), {})  # retried until the server is back
        await tasks.put("after", {"n": 1})
        assert await seen.get() == "after"
    following.cancel()


async def test_a_write_during_an_outage_waits_for_the_server(nats: EmbeddedServer, bus: Bus) -> None:
    tasks = bus.bucket("tasks")
    first = await tasks.put("t", {"n": 0})
    nats.kill()
    async with asyncio.timeout(20):
        while bus.connected:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0)
        writing = asyncio.create_task(tasks.update("t", {"n": 1}, first))
        await asyncio.sleep(0)
        nats.start()
        await writing
    entry = await tasks.get("t")
    assert entry is not None and entry.value == {"n": 1}


RACER = """
import asyncio, sys
from oarlock_runtime import Bus, Contended

async def main(url, token, rounds):
    async with await Bus.connect(url, token=token) as bus:
        tasks = bus.bucket("tasks")
        print("ready", flush=True)
        sys.stdin.readline()
        done = 0
        while done < rounds:
            try:
                await tasks.change("shared", lambda old: {"count": (old or {"count": 0})["count"] + 1})
                done += 1
            except Contended:
                pass

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def test_two_processes_lose_no_update(nats: EmbeddedServer, bus: Bus) -> None:
    rounds = 300
    racers = [
        subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-c", RACER, nats.url, nats.token or "", str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert (await asyncio.to_thread(racer.stdout.readline)).strip() == "ready"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        for racer in racers:
            assert await asyncio.to_thread(racer.wait, 60) == 0
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    entry = await bus.bucket("tasks").get("shared")
    assert entry is not None
    assert entry.value == {"count": 2 * rounds}
