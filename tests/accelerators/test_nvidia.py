"""The NVIDIA file through the real binding, on a stand-in driver library compiled here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oarlock_accelerators import Device, HandoverError, vendor

_STANDIN = Path(__file__).parent / "standin"
_GIB = 1024**3
_UUID = "GPU-11111111-2222-3333-4444-555555555555"
_OTHER = "GPU-66666666-7777-8888-9999-000000000000"

_TWO_GPUS = f"""gpus 2
0.uuid {_UUID}
0.name NVIDIA A100-SXM4-40GB
0.total {40 * _GIB}
0.reserved {_GIB // 2}
0.used {3 * _GIB}
0.busy 87
0.celsius 61
0.milliwatts 312500
0.process.0 4242 {2 * _GIB}
0.process.1 4243 -
1.uuid {_OTHER}
1.name NVIDIA GeForce RTX 3090
1.total {24 * _GIB}
1.used 0
"""


def _compile(folder: Path, *options: str) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.fail("these tests compile a stand-in driver library: install gcc")
    folder.mkdir()
    subprocess.run(
        [
            *(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1", *options),
            *("-o", str(folder / "libnvidia-ml.so.1"), str(_STANDIN / "nvml.c")),
        ],
        check=True,
        timeout=60,
    )
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compile(tmp_path_factory.mktemp("nvml") / "new")


@pytest.fixture(scope="module")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compile(tmp_path_factory.mktemp("nvml") / "old", "-DOLD_DRIVER")


class Driver:
    """A process that uses the vendor file, and the state of the stand-in it sees."""

    def __init__(self, library: Path | None, state: Path) -> None:
        self._state = state
        environment = {**os.environ, "OARLOCK_NVML_STATE": str(state)}
        environment.pop("LD_LIBRARY_PATH", None)
        if library is not None:
            environment["LD_LIBRARY_PATH"] = str(library)
        self._process = subprocess.Popen(
            [sys.executable, str(_STANDIN / "drive_nvidia.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def show(self, text: str) -> None:
        fresh = self._state.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self._state)

    def ask(self, request: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate(timeout=20)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Path | None, str], Driver]]:
    running: list[Driver] = []

    def begin(library: Path | None, text: str) -> Driver:
        driver = Driver(library, tmp_path / "state")
        driver.show(text)
        running.append(driver)
        return driver

    yield begin
    for driver in running:
        driver.end()


Start = Callable[[Path | None, str], Driver]


def test_probe_names_devices_by_uuid_and_finds_their_kind(library: Path, start: Start) -> None:
    inventory = start(library, _TWO_GPUS).ask("probe")
    assert inventory["reason"] is None
    first, second = inventory["devices"]
    assert first["uid"] == _UUID
    assert first["kind"]["name"] == "A100-SXM4-40GB"
    assert first["total_bytes"] == 40 * _GIB
    assert first["usable_bytes"] == 40 * _GIB - _GIB // 2
    assert first["driver_version"] == "570.10.01"
    assert first["pci_bus_id"] == "00000000:17:00.0"
    assert (second["uid"], second["kind"]["name"], second["index"]) == (_OTHER, "RTX 3090", 1)


def test_sample_reads_every_field_and_follows_the_live_state(library: Path, start: Start) -> None:
    driver = start(library, _TWO_GPUS)
    sample = driver.ask("sample")["samples"][0]
    assert sample["used_bytes"] == 3 * _GIB
    assert sample["utilization_ratio"] == pytest.approx(0.87)
    assert sample["temperature_celsius"] == 61
    assert sample["power_watts"] == pytest.approx(312.5)
    assert (sample["error_count"], sample["health"], sample["absent"]) == (0, "ok", {})
    driver.show(_TWO_GPUS.replace(f"0.used {3 * _GIB}", f"0.used {9 * _GIB}").replace("0.busy 87", "0.busy 12"))
    sample = driver.ask("sample")["samples"][0]
    assert (sample["used_bytes"], sample["utilization_ratio"]) == (9 * _GIB, pytest.approx(0.12))


def test_process_memory_that_the_driver_hides_is_none_with_a_reason(library: Path, start: Start) -> None:
    known, hidden = start(library, _TWO_GPUS).ask("sample")["processes"]
    assert known == {"uid": _UUID, "pid": 4242, "used_bytes": 2 * _GIB, "reason": None}
    assert hidden["used_bytes"] is None
    assert "does not tell" in hidden["reason"]


def test_unsupported_value_leaves_only_its_field_empty(library: Path, start: Start) -> None:
    text = _TWO_GPUS + "0.fail.nvmlDeviceGetPowerUsage 3\n0.fail.nvmlDeviceGetTotalEccErrors 3\n"
    sample = start(library, text).ask("sample")["samples"][0]
    assert sample["power_watts"] is None
    assert sample["error_count"] is None
    assert set(sample["absent"]) == {"power_watts", "error_count"}
    assert "Not Supported" in sample["absent"]["power_watts"]
    assert (sample["used_bytes"], sample["health"]) == (3 * _GIB, "ok")


def test_old_driver_without_newer_symbols_still_gives_memory_and_processes(old_library: Path, start: Start) -> None:
    driver = start(old_library, _TWO_GPUS)
    assert driver.ask("probe")["devices"][0]["usable_bytes"] is None
    snapshot = driver.ask("sample")
    # version 1 counts the reserved part as used
    assert snapshot["samples"][0]["used_bytes"] == 3 * _GIB + _GIB // 2
    assert snapshot["processes"][0]["pid"] == 4242


def test_lost_device_is_reported_under_its_uuid_and_the_other_goes_on(library: Path, start: Start) -> None:
    driver = start(library, _TWO_GPUS)
    driver.ask("probe")
    driver.show(_TWO_GPUS + "0.fail 15\n")
    samples = {s["uid"]: s for s in driver.ask("sample")["samples"]}
    assert samples[_UUID]["health"] == "lost"
    assert samples[_UUID]["used_bytes"] is None
    assert "lost" in samples[_UUID]["absent"]["used_bytes"]
    assert samples[_OTHER]["health"] == "ok"
    driver.show(_TWO_GPUS)
    assert driver.ask("sample")["samples"][0]["health"] == "ok"


def test_device_lost_in_mid_reading_is_lost(library: Path, start: Start) -> None:
    sample = start(library, _TWO_GPUS + "0.fail.nvmlDeviceGetUtilizationRates 15\n").ask("sample")["samples"][0]
    assert sample["health"] == "lost"


def test_device_that_the_driver_stops_listing_is_lost_even_if_indices_shift(library: Path, start: Start) -> None:
    driver = start(library, _TWO_GPUS)
    driver.ask("probe")
    driver.show(f"gpus 1\n0.uuid {_OTHER}\n0.name NVIDIA GeForce RTX 3090\n0.total {24 * _GIB}\n0.used 1024\n")
    samples = {s["uid"]: s for s in driver.ask("sample")["samples"]}
    assert samples[_UUID]["health"] == "lost"
    assert (samples[_OTHER]["health"], samples[_OTHER]["used_bytes"]) == ("ok", 1024)


def test_memory_errors_and_hardware_xids_degrade_but_application_xids_do_not(library: Path, start: Start) -> None:
    driver = start(library, _TWO_GPUS)
    driver.ask("sample")
    driver.show(_TWO_GPUS + "0.xid 31\n1.ecc 4\n")
    first, second = driver.ask("sample")["samples"]
    assert first["health"] == "ok"
    assert (second["health"], second["error_count"]) == ("degraded", 4)
    driver.show(_TWO_GPUS + "0.xid 79\n")
    first = driver.ask("sample")["samples"][0]
    assert (first["health"], first["health_reason"]) == ("degraded", "the driver reported Xid 79")


def test_partitioned_gpu_is_listed_as_its_slices(library: Path, start: Start) -> None:
    text = _TWO_GPUS + "".join(
        f"0/{i}.uuid MIG-{i}\n0/{i}.name NVIDIA A100-SXM4-40GB MIG 1g.5gb\n0/{i}.total {5 * _GIB}\n0/{i}.used {i}\n"
        for i in range(2)
    )
    driver = start(library, text)
    assert [d["uid"] for d in driver.ask("probe")["devices"]] == [_UUID, _OTHER]
    driver.show(text + "0.slices 2\n")
    devices = driver.ask("probe")["devices"]
    assert [d["uid"] for d in devices] == ["MIG-0", "MIG-1", _OTHER]
    assert devices[0]["parent_uid"] == _UUID
    assert (devices[0]["slice_profile"], devices[0]["total_bytes"]) == ("1g.5gb", 5 * _GIB)
    assert devices[0]["kind"]["name"] == "A100-SXM4-40GB"
    snapshot = driver.ask("sample")
    assert [s["uid"] for s in snapshot["samples"]] == ["MIG-0", "MIG-1", _OTHER]  # the whole GPU is not "lost"
    assert "Not Supported" in snapshot["samples"][0]["absent"]["utilization_ratio"]


def test_unreadable_device_is_a_problem_not_a_failure(library: Path, start: Start) -> None:
    inventory = start(library, _TWO_GPUS + "0.fail.nvmlDeviceGetHandleByIndex_v2 999\n").ask("probe")
    assert [d["uid"] for d in inventory["devices"]] == [_OTHER]
    assert "GPU 0 cannot be identified" in inventory["problems"][0]


def test_driver_without_a_gpu_says_so(library: Path, start: Start) -> None:
    assert start(library, "gpus 0\n").ask("probe")["reason"] == "the driver lists no GPU"


def test_no_library_says_so(start: Start) -> None:
    driver = start(None, "gpus 0\n")
    if (reason := driver.ask("probe")["reason"]) is None or "Not Found" not in reason:
        assert shutil.which("nvidia-smi"), reason  # a machine with a real driver loads the real library
    else:
        assert "Shared Library" in reason


def test_close_and_start_again(library: Path, start: Start) -> None:
    driver = start(library, _TWO_GPUS)
    driver.ask("sample")
    assert driver.ask("close") == "closed"
    assert len(driver.ask("sample")["samples"]) == 2


def test_hand_over_is_by_uuid(library: Path, start: Start) -> None:
    container, process = start(library, _TWO_GPUS).ask("hand-over")
    assert container["device_requests"] == [{"driver": "nvidia", "device_ids": [_UUID], "capabilities": ["gpu"]}]
    assert container["cdi_names"] == [f"nvidia.com/gpu={_UUID}"]
    assert container["kubernetes_resources"] == {"nvidia.com/gpu": 1}
    assert process["environment"]["CUDA_VISIBLE_DEVICES"] == _UUID


def test_slices_have_their_own_resource_and_go_one_at_a_time() -> None:
    nvidia = vendor("nvidia")
    parts = [Device(f"MIG-{i}", "nvidia", "A100", None, 1, slice_profile="1g.5gb") for i in range(2)]
    assert nvidia.container(parts[:1]).kubernetes_resources == {"nvidia.com/mig-1g.5gb": 1}
    with pytest.raises(HandoverError, match="one MIG slice"):
        nvidia.container(parts)


def test_simulated_device_is_not_handed_over_as_real() -> None:
    with pytest.raises(HandoverError, match="simulated"):
        vendor("nvidia").process([Device("SIM-1", "nvidia", "A100", None, 1, simulated=True)])
