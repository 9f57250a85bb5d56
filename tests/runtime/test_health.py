"""Alive, ready, counted."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from oarlock_runtime import Bus, Context, EmbeddedServer, OarlockError, PermanentError, Service

if TYPE_CHECKING:
    from tests.runtime.conftest import Recorder


class Event(BaseModel):
    n: int


async def get(svc: Service, path: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(f"http://127.0.0.1:{svc.http_port}{path}")


async def samples(svc: Service) -> dict[tuple[str, str], float]:
    """(name, kind label or "") to value."""
    text = (await get(svc, "/metrics")).text
    return {
        (sample.name, sample.labels.get("kind", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def until_ready(svc: Service, wanted: bool) -> httpx.Response:
    async with asyncio.timeout(20):
        while True:
            response = await get(svc, "/readyz")
            if response.is_success == wanted:
                return response


async def test_ready_says_why_not_and_recovers(nats: EmbeddedServer, bus: Bus, recorder: Recorder) -> None:
    svc = Service(bus, "profiler", http_port=0)
    svc.consume("profiler", bus.subjects.all_submitted(), Event, recorder)
    assert svc.troubles()["service"] == "not started"
    async with svc:
        assert (await get(svc, "/healthz")).json() == {"status": "alive", "service": "profiler"}
        assert (await until_ready(svc, True)).json() == {"ready": True, "service": "profiler", "troubles": {}}
        nats.kill()
        response = await until_ready(svc, False)
        assert response.status_code == 503
        assert response.json()["troubles"]["bus"] == "not connected"
        assert (await get(svc, "/healthz")).status_code == 200, "a lost bus is no reason to restart the process"
        nats.start()
        await until_ready(svc, True)
        assert (await samples(svc))["oarlock_bus_reconnects_total", ""] == 1


async def test_everything_is_counted(bus: Bus, recorder: Recorder) -> None:
    async def mixed(event: Event, context: Context) -> None:
        if event.n == 1:
            raise PermanentError("no")
        if event.n == 2 and context.delivery_count == 1:
            raise ValueError("once")

    recorder.behave = mixed
    svc = Service(bus, "profiler", http_port=0)
    svc.consume("profiler", bus.subjects.all_submitted(), Event, recorder, backoff=(0.01,))
    async with svc, asyncio.timeout(20):
        for n in range(4):
            await bus.publish(bus.subjects.submitted(f"t{n}"), Event(n=n))
        await recorder.take(5)
        while (found := await samples(svc))["oarlock_messages_in_flight", ""] > 0:
            pass
    assert found["oarlock_messages_handled_total", ""] == 3
    assert found["oarlock_messages_failed_total", "permanent"] == 1
    assert found["oarlock_messages_failed_total", "retried"] == 1
    assert found["oarlock_messages_redelivered_total", ""] == 1
    assert found["oarlock_messages_dead_total", ""] == 1
    assert found["oarlock_handler_seconds_count", ""] == 5
    assert found["oarlock_bus_connected", ""] == 1


async def test_a_background_loop_is_started_again_and_its_trouble_shown(bus: Bus) -> None:
    runs = 0
    again = asyncio.Event()
    failed = asyncio.Event()

    async def loop() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            failed.set()
            raise ValueError("first time unlucky")
        again.set()
        await asyncio.Event().wait()

    svc = Service(bus, "telemetry", http_port=0)
    svc.background(loop)
    async with svc, asyncio.timeout(10):
        await failed.wait()
        assert "first time unlucky" in (await until_ready(svc, False)).json()["troubles"]["background loop"]
        await again.wait()
        assert svc.troubles() == {}


async def test_a_taken_port_is_named(bus: Bus) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OarlockError, match=f"cannot listen on 127.0.0.1:{port}"):
            await Service(bus, "profiler", http_port=port).start()
