"""What real processes use is what their records say."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from oarlock_runtime import BusMessage, EmbeddedServer
from oarlock_schemas import Memory, MemoryPeak, NodeMetrics, Portrait

if TYPE_CHECKING:
    from tests.service_process import ServiceProcess
    from tests.telemetry.conftest import Others

MIB = 1024**2
PORTRAIT = Portrait(
    framework="numpy",
    family="numpy",
    precision="float32",
    method="calibrated",
    confidence=0.9,
    memory=Memory(peak=MemoryPeak(device_bytes=220 * MIB, raw_device_bytes=200 * MIB, reserve_bytes=300 * MIB)),
    source_digest="sha256-x",
)


@asynccontextmanager
async def python(script: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A Python process; its standard output tells how far it is."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()


async def sampled(others: Others, task_id: str) -> None:
    """Await a published sample that shows the task on the device."""
    seen = asyncio.Event()

    async def look(message: BusMessage) -> None:
        metrics = message.parse(NodeMetrics)
        if any(p.task_id == task_id for d in metrics.devices for p in d.processes):
            seen.set()

    listening = await others.bus.subscribe(others.bus.subjects.metrics(), look)
    await asyncio.wait_for(seen.wait(), 20)
    await listening.unsubscribe()


async def test_a_tree_of_processes_is_measured_and_recorded_once(others: Others, telemetry: ServiceProcess) -> None:
    child = "b = b'x' * (100 << 20); print('child', flush=True); input()"
    parent = (
        "import subprocess, sys\n"
        f"p = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE)\n"
        "a = b'x' * (50 << 20); print('parent', flush=True); input()\np.kill()"
    )
    device = others.cpu()
    async with python(parent) as process:
        assert {await line(process), await line(process)} == {"parent", "child"}
        await others.place("tree", device, PORTRAIT)
        launched = await others.launch("tree", device, process.pid, predicted=220 * MIB)
        await sampled(others, "tree")
    await others.finish("tree", device, started_at=launched.at)
    record = await others.record("tree")
    peak = record.measured.peak_process_bytes
    assert peak is not None and 150 * MIB < peak < 190 * MIB
    assert record.measured.peak_device_bytes == peak
    assert record.measured.samples >= 1 and record.measured.duration_seconds is not None
    assert record.measured.absent["energy_joules"] == "power is not measured on the host"
    assert (record.predicted.device_bytes, record.predicted.raw_device_bytes) == (220 * MIB, 200 * MIB)
    assert (record.owner, record.family, record.device_kind) == ("ann", "numpy", "CPU")
    assert record.device_total_bytes is not None and not record.simulated
    # The same end again, as after a lost acknowledgement.
    await others.finish("tree", device, msg_id="again")
    await others.launch("next", device, None)
    await others.finish("next", device)
    await others.record("next")
    assert await others.stored(others.bus.subjects.completed("tree")) == 1


async def test_a_run_between_two_samples_has_the_kernels_count(others: Others, telemetry: ServiceProcess) -> None:
    device = others.cpu()
    await others.device(f"local.node1.{device.uid}")
    launched = await others.launch("short", device, 2**22 - 1)
    await others.finish("short", device, started_at=launched.at, kernel_peak_bytes=77 * MIB)
    record = await others.record("short")
    assert record.measured.peak_process_bytes == 77 * MIB
    await others.launch("silent", device, 2**22 - 1)
    await others.finish("silent", device)
    silent = (await others.record("silent")).measured
    assert silent.peak_process_bytes is None and silent.duration_seconds is None
    assert {"peak_process_bytes", "duration_seconds", "energy_joules"} <= silent.absent.keys()


async def test_telemetry_killed_in_mid_run_keeps_the_peak(others: Others, telemetry: ServiceProcess) -> None:
    device = others.cpu()
    # The peak comes before the crash and is given back before telemetry is there again.
    script = "b = b'x' * (120 << 20); print('up', flush=True); input(); del b; print('down', flush=True); input()"
    async with python(script) as process:
        await line(process)
        await others.place("crash", device, PORTRAIT)
        launched = await others.launch("crash", device, process.pid)
        await sampled(others, "crash")
        await telemetry.kill()
        assert process.stdin is not None
        process.stdin.write(b"\n")
        await line(process)
        await telemetry.start()
        await sampled(others, "crash")
    # Both the end and a restart: the event waits for whoever comes.
    await telemetry.kill()
    await others.finish("crash", device, started_at=launched.at)
    await telemetry.start()
    record = await others.record("crash")
    peak = record.measured.peak_process_bytes
    assert peak is not None and peak > 120 * MIB
    assert await others.stored(others.bus.subjects.completed("crash")) == 1


async def test_records_lost_with_the_disk_are_not_written_twice(others: Others, telemetry: ServiceProcess) -> None:
    device = others.cpu()
    await others.launch("once", device, None)
    await others.finish("once", device)
    await others.record("once")
    assert await telemetry.stop() == 0
    (telemetry.folder / "runs.json").unlink()
    await telemetry.start()
    await others.finish("once", device, msg_id="later")
    await others.launch("after", device, None)
    await others.finish("after", device)
    await others.record("after")
    assert await others.stored(others.bus.subjects.completed("once")) == 1


async def test_refused_and_foreign_runs_leave_no_record(others: Others, telemetry: ServiceProcess) -> None:
    device = others.cpu()
    await others.finish("refused", device, outcome="refused")
    elsewhere = device.model_copy(update={"node": "node2"})
    await others.launch("elsewhere", elsewhere, None)
    await others.finish("elsewhere", elsewhere)
    await others.launch("here", device, None)
    await others.finish("here", device)
    await others.record("here")
    for task_id in ("refused", "elsewhere"):
        assert await others.stored(others.bus.subjects.completed(task_id)) == 0


FLEET = """
fleet: test
currency: USD
include_this_machine: true
nodes:
  - name: sim-1
    site: simulated
    cpu_cores: 64
    memory: 512GiB
    devices: [{kind: A100-SXM4-40GB, count: 2, price_per_hour: 1.5}]
"""


async def test_a_simulated_fleet_says_so_and_follows_its_model(
    others: Others, telemetry: ServiceProcess, tmp_path: Path
) -> None:
    await telemetry.stop()
    (tmp_path / "fleet.yaml").write_text(FLEET)
    telemetry.extra["OARLOCK_FLEET"] = str(tmp_path / "fleet.yaml")
    await telemetry.start()
    state = await others.device("simulated.sim-1.*")
    assert state.simulated and state.kind == "A100-SXM4-40GB" and state.price_per_hour == 1.5
    assert state.node_cpu_milli == 64_000 and state.healthy and state.link_group is not None
    real = await others.device(f"local.node1.{others.cpu().uid}")
    assert not real.simulated and real.memory_bytes > 0 and real.used_bytes
    device = others.cpu().model_copy(
        update={"uid": state.uid, "kind": state.kind, "vendor": "nvidia", "node": "sim-1", "simulated": True}
    )
    shown = asyncio.Event()

    async def look(message: BusMessage) -> None:
        for sample in message.parse(NodeMetrics).devices:
            if sample.uid == device.uid and (sample.used_bytes or 0) > 150 * MIB:
                assert sample.simulated
                shown.set()

    await others.bus.subscribe(others.bus.subjects.metrics("simulated", "sim-1"), look)
    await others.place("sim", device, PORTRAIT, site="simulated")
    launched = await others.launch("sim", device, None, site="simulated")
    await asyncio.wait_for(shown.wait(), 20)
    await others.finish("sim", device, started_at=launched.at)
    record = await others.record("sim")
    assert record.simulated and record.device_kind == "A100-SXM4-40GB"
    peak = record.measured.peak_process_bytes
    assert peak is not None and abs(peak / (200 * MIB) - 1) <= 0.0909 and peak != 200 * MIB
    assert record.measured.peak_device_bytes is not None and record.measured.peak_device_bytes >= peak


async def test_the_server_goes_away_in_mid_run(others: Others, telemetry: ServiceProcess, nats: EmbeddedServer) -> None:
    device = others.cpu()
    async with python("b = b'x' * (90 << 20); print('up', flush=True); input()") as process:
        await line(process)
        launched = await others.launch("away", device, process.pid)
        await sampled(others, "away")
        nats.kill()
        nats.start()
        await sampled(others, "away")
    await others.finish("away", device, started_at=launched.at)
    record = await others.record("away")
    peak = record.measured.peak_process_bytes
    assert peak is not None and peak > 90 * MIB
    # The inventory is back as well.
    assert (await others.device(f"local.node1.{device.uid}")).healthy
    assert await others.stored(others.bus.subjects.completed("away")) == 1
