"""GPUs through NVML's own binding, on a stand-in driver library compiled here."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from oarlock_runtime import Bus, BusMessage, EmbeddedServer
from oarlock_schemas import DeviceSample, DeviceState, NodeMetrics, PlacedDevice, Portrait

if TYPE_CHECKING:
    from tests.service_process import ServiceProcess
    from tests.telemetry.conftest import Others

GIB = 1024**3
UIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000")
PORTRAIT = Portrait(framework="paddlepaddle", family="cnn", method="interpreted", confidence=1)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libnvidia-ml.so.1."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.fail("this test compiles a stand-in driver library: install gcc")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).parents[1] / "accelerators" / "standin" / "nvml.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([*command, "-o", str(folder / "libnvidia-ml.so.1"), str(source)], check=True, timeout=60)
    return folder


class Driver:
    """What the stand-in driver says now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: dict[str, str] = {"gpus": "2"}
        for index, uid in enumerate(UIDS):
            self.say(index, uuid=uid, name="NVIDIA A100-SXM4-40GB", total=40 * GIB, used=0, busy=0)
            self.say(index, celsius=40, milliwatts=60_000)

    def say(self, index: int, **values: object) -> None:
        for name, value in values.items():
            self.lines[f"{index}.{name.replace('__', '.')}"] = str(value)
        self.write()

    def write(self) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text("".join(f"{name} {value}\n" for name, value in self.lines.items()))
        temporary.replace(self._path)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path / "nvml-state")


@pytest.fixture
async def telemetry(
    nats: EmbeddedServer, bus: Bus, tmp_path: Path, library: Path, driver: Driver, telemetry: ServiceProcess
) -> AsyncIterator[ServiceProcess]:
    """The telemetry of a machine with two GPUs."""
    await telemetry.stop()
    telemetry.extra = {
        "LD_LIBRARY_PATH": str(library),
        "OARLOCK_NVML_STATE": str(tmp_path / "nvml-state"),
        "OARLOCK_HTTP_PORT": "0",
    }
    await telemetry.start()
    yield telemetry


def device(index: int) -> PlacedDevice:
    return PlacedDevice(
        uid=UIDS[index], kind="A100-SXM4-40GB", vendor="nvidia", node="node1", reserved_bytes=GIB, fence=1
    )


async def sample(others: Others, uid: str, wanted: Callable[[DeviceSample], bool]) -> DeviceSample:
    """Await a sample of a device that is as wanted."""
    found: asyncio.Queue[DeviceSample] = asyncio.Queue()

    async def look(message: BusMessage) -> None:
        for each in message.parse(NodeMetrics).devices:
            if each.uid == uid and wanted(each):
                found.put_nowait(each)

    listening = await others.bus.subscribe(others.bus.subjects.metrics("local", "node1"), look)
    result = await asyncio.wait_for(found.get(), 20)
    await listening.unsubscribe()
    return result


def using(used: int) -> Callable[[DeviceSample], bool]:
    """A sample with this much memory in use."""
    return lambda shown: shown.used_bytes == used


async def test_a_runs_own_share_of_a_shared_gpu(others: Others, telemetry: ServiceProcess, driver: Driver) -> None:
    process = await asyncio.create_subprocess_exec("sleep", "600")
    try:
        # One process is the run's, the other somebody's.
        driver.say(0, used=9 * GIB, busy=80, process__0=f"{process.pid} {3 * GIB}", process__1=f"1 {5 * GIB}")
        await others.place("shared", device(0), PORTRAIT)
        launched = await others.launch("shared", device(0), process.pid)
        shown = await sample(others, UIDS[0], lambda shown: any(p.task_id for p in shown.processes))
        assert {p.pid: p.task_id for p in shown.processes} == {process.pid: "shared", 1: None}
        await sample(others, UIDS[0], using(9 * GIB))
        await others.finish("shared", device(0), started_at=launched.at)
        record = await others.record("shared")
    finally:
        process.kill()
        await process.wait()
    measured = record.measured
    assert measured.peak_process_bytes == 3 * GIB
    assert measured.peak_device_bytes is None and "shared" in measured.absent["peak_device_bytes"]
    assert measured.energy_joules is None and "shared" in measured.absent["energy_joules"]
    assert measured.peak_temperature_celsius == 40
    assert measured.mean_utilization_ratio == pytest.approx(0.8)
    assert record.device_total_bytes == 40 * GIB


async def test_a_run_alone_has_the_devices_figures_too(
    others: Others, telemetry: ServiceProcess, driver: Driver
) -> None:
    process = await asyncio.create_subprocess_exec("sleep", "600")
    try:
        await others.place("alone", device(1), PORTRAIT)
        driver.say(1, used=4 * GIB, process__0=f"{process.pid} {3 * GIB}", milliwatts=200_000, busy=100)
        launched = await others.launch("alone", device(1), process.pid)
        await sample(others, UIDS[1], using(4 * GIB))
        driver.say(1, used=3 * GIB, process__0=f"{process.pid} -")
        await sample(others, UIDS[1], using(3 * GIB))
        await sample(others, UIDS[1], using(3 * GIB))
        await others.finish("alone", device(1), started_at=launched.at)
        measured = (await others.record("alone")).measured
    finally:
        process.kill()
        await process.wait()
    assert (measured.peak_process_bytes, measured.peak_device_bytes) == (3 * GIB, 4 * GIB)
    assert measured.energy_joules is not None and 100 < measured.energy_joules < 2000
    assert measured.samples >= 3


async def entry(others: Others, uid: str, **wanted: object) -> DeviceState:
    """Await an inventory entry with these values."""
    async with asyncio.timeout(20):
        async for change in others.bus.bucket("devices", DeviceState).watch(f"local.node1.{uid}"):
            state = change.value
            if state is not None and all(getattr(state, name) == value for name, value in wanted.items()):
                return state
    raise AssertionError


async def test_a_lost_gpu_is_cordoned_until_an_operator_lifts_it(
    others: Others, telemetry: ServiceProcess, driver: Driver
) -> None:
    sound = await entry(others, UIDS[0], healthy=True)
    assert sound.kind == "A100-SXM4-40GB" and sound.memory_bytes == 40 * GIB and not sound.cordoned
    assert sound.node_cpu_milli and sound.link_group
    driver.say(0, ecc=3)
    failed = await entry(others, UIDS[0], healthy=False)
    assert failed.cordoned and "memory errors" in str(failed.health_reason)
    driver.say(0, ecc=0)
    # Sound again, yet nobody has looked at it.
    assert (await entry(others, UIDS[0], healthy=True)).cordoned
    bucket = others.bus.bucket("devices", DeviceState)
    await bucket.change(f"local.node1.{UIDS[0]}", lambda known: known and known.model_copy(update={"cordoned": False}))
    seen = await entry(others, UIDS[0], cordoned=False)
    assert (await entry(others, UIDS[0], cordoned=False)).seen_at >= seen.seen_at


async def test_prometheus_reads_it(others: Others, telemetry: ServiceProcess, driver: Driver) -> None:
    driver.say(0, used=5 * GIB, busy=25, celsius=55, milliwatts=150_000)
    await sample(others, UIDS[0], using(5 * GIB))
    log = (telemetry.folder.parent / "telemetry.log").read_text()
    port = int(log.rpartition("http_port=")[2].split()[0])
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    labels = f'kind="A100-SXM4-40GB",node="node1",simulated="false",site="local",uid="{UIDS[0]}",vendor="nvidia"'
    for line in (
        f"oarlock_device_memory_used_bytes{{{labels}}} {float(5 * GIB)}",
        f"oarlock_device_utilization_ratio{{{labels}}} 0.25",
        f"oarlock_device_temperature_celsius{{{labels}}} 55.0",
        f"oarlock_device_power_watts{{{labels}}} 150.0",
    ):
        name, value = line.rsplit(" ", 1)
        found = [float(x.rsplit(" ", 1)[1]) for x in text.splitlines() if _same(x, name)]
        assert found == [float(value)], name
    promtool = shutil.which("promtool")
    if promtool is not None:
        checked = await asyncio.create_subprocess_exec(
            *(promtool, "check", "metrics"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await checked.communicate(text.encode())
        assert checked.returncode == 0, output.decode()


def _same(line: str, name: str) -> bool:
    """Whether a line of the exposition is the series ``name``, in whatever order its labels stand."""
    if not line.startswith(name.split("{", maxsplit=1)[0] + "{"):
        return False
    return set(line[line.index("{") + 1 : line.index("}")].split(",")) == set(name[name.index("{") + 1 : -1].split(","))
