"""This machine as a device, measured for real; control groups from small trees of files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from oarlock_accelerators import HandoverError, vendor
from oarlock_accelerators.cgroups import MemoryGroup, memory_group
from oarlock_accelerators.machine import machine_id
from oarlock_accelerators.vendors.cpu import CpuVendor

_MIB = 1024**2
_HOG = """
import subprocess, sys
block = bytearray(48 * 1024 * 1024)
for i in range(0, len(block), 4096):
    block[i] = 1
if len(sys.argv) > 1:
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], **pipes)
    child.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
"""


def test_probe_is_one_device_with_the_memory_of_this_machine() -> None:
    (device,) = CpuVendor(group=lambda: None).probe().devices
    assert device.total_bytes == psutil.virtual_memory().total
    assert device.kind is not None
    assert device.kind.name == "CPU"
    assert not device.simulated
    assert device.name


def test_id_is_stable_and_hides_the_machine_id(tmp_path: Path) -> None:
    assert vendor("cpu").probe().devices[0].uid == CpuVendor().probe().devices[0].uid
    secret = tmp_path / "machine-id"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    first = machine_id((secret,), "a")
    assert first == machine_id((secret,), "a")
    assert first != machine_id((secret,), "b")
    assert first != machine_id((tmp_path / "none",), "a")
    assert "0123456789abcdef" not in first.replace("-", "")


def test_first_sample_has_no_load_and_the_next_has() -> None:
    cpu = CpuVendor(group=lambda: None)
    first = cpu.sample().samples[0]
    assert first.utilization_ratio is None
    assert "first sample" in first.absent["utilization_ratio"]
    assert first.used_bytes is not None
    assert 0 < first.used_bytes < (first.total_bytes or 0)
    sum(i * i for i in range(2_000_000))  # spend processor time, so that the clock of /proc/stat moves on
    second = cpu.sample().samples[0]
    assert second.utilization_ratio is not None
    assert 0 < second.utilization_ratio <= 1


def test_resident_memory_of_a_process_and_its_children() -> None:
    cpu = CpuVendor()
    with subprocess.Popen(
        [sys.executable, "-c", _HOG, _HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as hog:
        assert hog.stdout is not None
        assert hog.stdin is not None
        assert hog.stdout.readline() == "ready\n"
        snapshot = cpu.sample()
        own = snapshot.process_bytes(snapshot.samples[0].uid, [hog.pid])[hog.pid]
        assert own is not None
        assert 48 * _MIB < own < 80 * _MIB
        tree = cpu.process_tree_bytes(hog.pid)
        assert tree is not None
        assert 96 * _MIB < tree < 160 * _MIB
        hog.stdin.write("\n")
        hog.stdin.flush()
        hog.wait(timeout=20)
    assert cpu.process_tree_bytes(hog.pid) is None


def test_memory_limit_of_the_control_group_is_the_device_size() -> None:
    cpu = CpuVendor(group=lambda: MemoryGroup(2 * 1024 * _MIB, 300 * _MIB))
    assert cpu.probe().devices[0].total_bytes == 2 * 1024 * _MIB
    sample = cpu.sample().samples[0]
    assert (sample.total_bytes, sample.used_bytes) == (2 * 1024 * _MIB, 300 * _MIB)
    larger = CpuVendor(group=lambda: MemoryGroup(1 << 59, 1))
    assert larger.probe().devices[0].total_bytes == psutil.virtual_memory().total


def _write(folder: Path, **values: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / name.replace("__", ".")).write_text(f"{value}\n")


def test_tightest_limit_on_the_way_to_the_root_counts_in_version_2(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("0::/slurm/job_7/step_0\n")
    tree = tmp_path / "fs"
    _write(tree / "slurm", memory__max=64 * _MIB, memory__current=5)
    _write(
        tree / "slurm/job_7",
        memory__max=16 * _MIB,
        memory__current=9 * _MIB,
        memory__stat=f"anon 1\ninactive_file {4 * _MIB}",
    )
    _write(tree / "slurm/job_7/step_0", memory__max="max", memory__current=3)
    assert memory_group(membership, tree) == MemoryGroup(16 * _MIB, 5 * _MIB)


def test_version_1_and_a_container_that_sees_only_its_own_part(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("9:name=systemd:/x\n4:cpu,memory:/docker/0123abc\n")
    tree = tmp_path / "fs"
    _write(tree / "memory", memory__limit_in_bytes=32 * _MIB, memory__usage_in_bytes=8 * _MIB)
    assert memory_group(membership, tree) == MemoryGroup(32 * _MIB, 8 * _MIB)
    _write(tree / "memory", memory__limit_in_bytes=9223372036854771712)
    assert memory_group(membership, tree) is None
    assert memory_group(tmp_path / "missing", tree) is None


def test_hand_over_hides_accelerators_and_takes_one_device() -> None:
    cpu = vendor("cpu")
    devices = cpu.probe().devices
    assert cpu.process(devices).environment["CUDA_VISIBLE_DEVICES"] == ""
    assert cpu.container(devices).device_nodes == ()
    with pytest.raises(HandoverError, match="one CPU"):
        cpu.process([*devices, *devices])
