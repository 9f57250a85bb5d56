"""Reservations and maintenance as operators write them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from oarlock import AsyncClient
from oarlock.cli.window_verbs import covers
from oarlock.sdk import FleetDevice, WindowExists, WindowNotFound
from oarlock.times import duration_of, time_of
from oarlock_runtime import Bus, EmbeddedServer
from oarlock_schemas import DeviceState, InvalidMessage, LeaseBook, Window, read

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=timezone(timedelta(hours=8)))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("4h", 14400), ("1d12h", 129600), ("1.5h", 5400), ("30s", 30), ("1w", 604800)]
)
def test_durations(text: str, seconds: int) -> None:
    assert duration_of(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "4", "h", "4 hours", "-1h", "1h-"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        duration_of(text)


def test_times_without_an_offset_are_local() -> None:
    assert time_of("2026-12-01T09:30", NOW) == NOW + timedelta(minutes=90)
    assert time_of("2026-12-01T01:30:00Z", NOW) == NOW + timedelta(minutes=90)
    assert time_of("+2h", NOW) == NOW + timedelta(hours=2)
    assert time_of("now", NOW) == NOW
    with pytest.raises(ValueError, match="is no time"):
        time_of("noon", NOW)


def state(uid: str, kind: str = "A100-SXM4-40GB", node: str = "n1", site: str = "s1") -> FleetDevice:
    device = DeviceState(
        uid=uid, site=site, node=node, kind=kind, vendor="nvidia", memory_bytes=1, seen_at=NOW.isoformat()
    )
    return FleetDevice(device, LeaseBook(device_uid=uid))


def window(**what: object) -> Window:
    times = {"begins_at": "2026-12-01T08:00:00Z", "ends_at": "2026-12-01T09:00:00Z"}
    return read(Window, {**times, **what})[0]


def test_what_a_window_covers() -> None:
    devices = [state("a"), state("b", node="n2"), state("c", "RTX 3090"), state("d", site="s2")]

    def of(**what: object) -> list[str]:
        return [d.state.uid for d in devices if covers(window(**what), d)]

    assert of(everything=True) == ["a", "b", "c", "d"]
    assert of(kinds=["A100"], nodes=["n1"], sites=["s1"]) == ["a"]
    assert of(devices=["c"]) == ["c"]
    assert of(devices=["c"], nodes=["n2"]) == ["b", "c"]


@pytest.mark.parametrize("what", [{}, {"everything": True, "nodes": ["n1"]}, {"nodes": ["n1"], "ends_at": "soon"}])
def test_a_window_that_says_nothing_or_too_much_is_refused(what: dict[str, object]) -> None:
    with pytest.raises(InvalidMessage):
        window(**what)


async def test_windows_come_and_go_and_leave_the_rest_of_the_policy_alone(bus: Bus) -> None:
    client = AsyncClient(bus)
    await client.policy({"preset": "cost"})
    soon = datetime.now(UTC) + timedelta(hours=1)
    past = read(Window, {"begins_at": "2020-01-01T00:00:00Z", "ends_at": "2020-01-02T00:00:00Z", "nodes": ["n"]})[0]
    times = {"begins_at": soon.isoformat(), "ends_at": (soon + timedelta(hours=1)).isoformat()}
    coming = read(Window, {**times, "nodes": ["n"], "owner": "alice"})[0]
    await client.add_window("old", past)
    await client.add_window("soon", coming)
    assert await client.windows() == {"soon": coming}
    with pytest.raises(WindowExists):
        await client.add_window("soon", past)
    await client.remove_window("soon")
    with pytest.raises(WindowNotFound):
        await client.remove_window("soon")
    assert await client.policy() == {"preset": "cost"}


async def test_the_verbs_of_operators(bus: Bus, nats: EmbeddedServer, tmp_path: Path) -> None:
    async def oarlock(*arguments: str) -> tuple[int, str, str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OARLOCK_")}
        environment |= {"OARLOCK_NATS_URL": nats.url, "OARLOCK_NATS_TOKEN": nats.token or ""}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "oarlock", *arguments, env=environment, cwd=tmp_path, stdout=pipe, stderr=pipe
        )
        out, errors = await process.communicate()
        return process.returncode or 0, out.decode(), errors.decode()

    await bus.bucket("devices", DeviceState).put("s1.n1.a", state("a").state)
    code, out, errors = await oarlock("maintenance", "add", "power", "--from", "+1h", "--for", "2h", "--node", "n1")
    assert (code, errors) == (0, "") and "1 of the devices that report now" in out
    code, out, _ = await oarlock("maintenance", "list", "--format", "json")
    assert (code, json.loads(out)["power"]["nodes"]) == (0, ["n1"])
    assert json.loads((await oarlock("reserve", "list", "--format", "json"))[1]) == {}
    code, _, errors = await oarlock("reserve", "add", "x", "--owner", "bob", "--for", "1h")
    assert code == 2 and "name devices, nodes, sites or kinds" in errors
    assert (await oarlock("maintenance", "remove", "power"))[0] == 0
    assert (await oarlock("maintenance", "remove", "power"))[0] == 1
