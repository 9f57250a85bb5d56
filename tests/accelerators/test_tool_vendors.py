"""Each vendor's tool output, in its documented layouts, to devices, samples and hand-over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from textwrap import dedent

import pytest

from oarlock_accelerators import Device, DeviceSample, HandoverError, Health, vendors
from oarlock_accelerators.tool import ToolError, ToolMissing
from oarlock_accelerators.tool_vendor import ToolVendor
from oarlock_accelerators.vendors import (
    amd,
    ascend,
    cambricon,
    enflame,
    gaudi,
    hygon,
    iluvatar,
    kunlunxin,
    metax,
    moorethreads,
)

_MIB = 1024**2


class Recorded:
    """Stands in for the tool runner: answers a command line with a text, as a machine with the tool would.

    Texts can be replaced while it is in use.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = {command: dedent(text).lstrip("\n") for command, text in texts.items()}

    def __call__(self, command: Sequence[str]) -> str:
        line = " ".join(command)
        if line in self.texts:
            return self.texts[line]
        if not any(known.split()[0] == command[0] for known in self.texts):
            raise ToolMissing(f"{command[0]} is not on the PATH")
        raise ToolError(f"{line} ended with status 1")

    def show(self, command: str, text: str) -> None:
        self.texts[command] = dedent(text).lstrip("\n")


def _numbers(sample: DeviceSample) -> tuple[float | None, ...]:
    """used MiB, load, degrees, watts."""
    used = None if sample.used_bytes is None else sample.used_bytes // _MIB
    return used, sample.utilization_ratio, sample.temperature_celsius, sample.power_watts


_NPU = """
    +---------------------------+---------------+----------------------------------------------------+
    | npu-smi 25.2.0                   Version: 25.2.0                                               |
    +---------------------------+---------------+----------------------------------------------------+
    | NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
    | Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
    +===========================+===============+====================================================+
    | 2     910B4               | OK            | 151.2       55                0    / 0             |
    | 0                         | 0000:41:00.0  | 73          0    / 0          21000/ 32768         |
    +===========================+===============+====================================================+
    | 3     910B4               | Warning       | 90.0        47                0    / 0             |
    | 0                         | 0000:42:00.0  | 0           0    / 0          2800 / 32768         |
    +===========================+===============+====================================================+
    | 5     310P3               | OK            | NA          49                15   / 15            |
    | 0     6                   | 0000:81:00.0  | 12          1507 / 44280                           |
    +---------------------------+---------------+----------------------------------------------------+
    | 5     310P3               | UNKNOWN       | NA          NA                NA   / NA            |
    | 1     7                   | 0000:81:00.1  | NA          NA   / NA                              |
    +===========================+===============+====================================================+
    | NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
    +===========================+===============+====================================================+
    | 2       0                 | 5150          | python3                  | 18200                   |
    | 2       0                 | 5151          | python3                  | NA                      |
    +===========================+===============+====================================================+
    | No running processes found in NPU 3                                                            |
    +===========================+===============+====================================================+
"""
_NPU_MAP = """
    NPU ID         Chip ID        Chip Logic ID     Chip Name
    2              0              0                 Ascend 910B4
    2              1              -                 Mcu
    3              0              1                 Ascend 910B4
    5              0              2                 Ascend 310P3
    5              1              3                 Ascend 310P3
"""


def test_ascend() -> None:
    tool = Recorded(
        {
            "npu-smi info": _NPU,
            "npu-smi info -m": _NPU_MAP,
            "npu-smi info -t board -i 2 -c 0": "Chip Name : 910B4\nVDie ID : AA00 BB11 CC22\nNDie ID : NA\n",
            "npu-smi info -t board -i 5 -c 0": "VDie ID : NA\n",
        }
    )
    vendor = ascend.AscendVendor(tool)
    devices = vendor.probe().devices
    assert devices[0].uid == "NPU-AA00-BB11-CC22"
    assert devices[1].uid.endswith("0000:42:00.0")
    assert [d.kind.name if d.kind else None for d in devices][:3] == [
        "Ascend 910B4", "Ascend 910B4", "Ascend 310P3-44GB",
    ]  # fmt: skip
    assert [(d.index, d.minor) for d in devices] == [(0, 2), (1, 3), (2, 6), (3, 7)]
    snapshot = vendor.sample()
    first, second, third, fourth = snapshot.samples
    assert _numbers(first) == (21000, 0.73, 55, 151.2)
    assert (second.health, second.health_reason) == (Health.DEGRADED, "npu-smi says Warning")
    assert _numbers(third) == (1507, 0.12, 49, None)
    assert third.health is Health.OK
    assert (fourth.health, fourth.used_bytes, fourth.total_bytes) == (Health.UNKNOWN, None, None)
    assert snapshot.process_bytes(first.uid) == {5150: 18200 * _MIB, 5151: None}
    handed = vendor.container(devices[1:2])
    assert handed.device_nodes[0].host_path == "/dev/davinci3"  # the physical id, not the logic id
    assert handed.kubernetes_resources == {"huawei.com/Ascend910": 1}
    assert vendor.container(devices[2:3]).kubernetes_resources == {"huawei.com/Ascend310P": 1}
    assert vendor.process(devices[1:2]).environment == {
        "ASCEND_RT_VISIBLE_DEVICES": "1", "PADDLE_XCCL_BACKEND": "npu",
    }  # fmt: skip


_XPU = """
    Tue Apr  7 08:00:00 2026
    +-----------------------------------------------------------------------------+
    | XPU-SMI               Driver Version: 5.0.21.99    XPU-RT Version: 5.0.21   |
    |-------------------------------+----------------------+----------------------+
    | XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
    | Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
    |                               |             L3-Usage |            SR-IOV M. |
    |===============================+======================+======================|
    |   0  P800 OAM           N/A   | 00000000:21:00.0 N/A |                    0 |
    | N/A   51C  N/A    210W / 400W |  40960MiB / 98304MiB |     64%      Default |
    |                               |     77MiB /    96MiB |             Disabled |
    +-------------------------------+----------------------+----------------------+
    |   1  P800 OAM           N/A   | 00000000:22:00.0 N/A |                  N/A |
    | N/A   N/A  N/A     N/A / 400W |    N/AMiB / 98304MiB |      N/A     Default |
    |                               |      0MiB /    96MiB |             Disabled |
    +-------------------------------+----------------------+----------------------+
    |   2  P800 OAM           N/A   | 00000000:23:00.0 N/A |                    2 |
    | N/A   40C  N/A     90W / 400W |      0MiB / 98304MiB |      0%      Default |
    |                               |      0MiB /    96MiB |             Disabled |
    +-------------------------------+----------------------+----------------------+

    +-----------------------------------------------------------------------------+
    | Processes:                                                                  |
    |  XPU   GI   CI        PID   Type   Process name                  XPU Memory |
    |        ID   ID                                                   Usage      |
    |=============================================================================|
    |    0   N/A  N/A      6001      C   python3 train.py               40000MiB  |
    +-----------------------------------------------------------------------------+
"""


def test_kunlunxin() -> None:
    tool = Recorded(
        {
            "xpu-smi": _XPU,
            "xpu-smi -m": "0000:21:00.0 0 SN-A 1 51\n0000:22:00.0 1 N/A 1 N/A\n0000:23:00.0 2 SN-C 1 40\n",
            "xpu-smi -i 0 -q": "XPU 00000000:21:00.0\n    Minor Number        : 3\n",
        }
    )
    vendor = kunlunxin.KunlunxinVendor(tool)
    devices = vendor.probe().devices
    assert devices[0].uid == "SN-A"
    assert devices[1].uid.endswith("0000:22:00.0")
    assert devices[0].kind is not None
    assert devices[0].kind.name == "Kunlun P800"
    first, second, third = vendor.sample().samples
    assert _numbers(first) == (40960, 0.64, 51, 210)
    assert second.health is Health.UNKNOWN
    assert (third.health, third.error_count) == (Health.DEGRADED, 2)
    assert vendor.sample().process_bytes("SN-A") == {6001: 40000 * _MIB}
    assert vendor.container(devices[:1]).device_nodes[0].host_path == "/dev/xpu3"
    with pytest.raises(HandoverError, match="index may differ"):
        vendor.container(devices[2:])
    assert "CUDA_VISIBLE_DEVICES" in vendor.process(devices[:1]).unset


def test_kunlunxin_legacy_tool() -> None:
    tool = Recorded(
        {
            "xpu_smi": """
                Runtime Version: 4.31
                Driver Version: 4.0
                  DEVICES
                ---------------------------------------------------------------------------------------
                | DevID |   PCI Addr   | Model |  SN  |    INODE   | UseRate |    L3     |    Memory    |
                ---------------------------------------------------------------------------------------
                |     0 | 0000:0A:00.0 | R200  | 02K1 | /dev/xpu1  |    41 % | 9 / 63 MB | 900 / 32768 MB |
                |     1 | 0000:0B:00.0 | R200  | N/A  | /dev/xpu0  |   N/A   | N/A       | N/A            |
                  VIDEO
                | DevID | Model |         DEC         |         ENC         |       IMGPROC       |
                |     0 |  R200 | 0 %, 0 fps, 800 MHz | 0 %, 0 fps, 800 MHz | 0 %, 0 fps, 800 MHz |
                  PROCESSES
                | DevID | PID | Streams | L3 | Memory | Command |
                |     0 | 712 | 4 | 9 MB | 880 MB | python |
                """
        }
    )
    vendor = kunlunxin.KunlunxinVendor(tool)
    devices = vendor.probe().devices
    assert (devices[0].uid, devices[0].minor) == ("02K1", 1)
    snapshot = vendor.sample()
    assert _numbers(snapshot.samples[0]) == (900, 0.41, None, None)
    assert [s.health for s in snapshot.samples] == [Health.OK, Health.UNKNOWN]
    assert snapshot.process_bytes("02K1") == {712: 880 * _MIB}


def test_cambricon() -> None:
    text = """
        ================CNMON v5.10.30================
        Card 0
            Product Name                   : MLU370-X8
            UUID                           : aa11
            Driver                         : v5.10.30
            Health State                   :
                Device                     : Good
            Utilization                    :
                MLU Average                : 55 %
                MLU 0-1                    : 50 % 60 %
            Temperature                    :
                Board                      : 44 C
                Chip                       : 52 C
            Physical Memory Usage          :
                Total                      : 23374 MiB
                Used                       : 1000 MiB
            Power                          :
                Usage                      : 130 W
                Cap                        : 250 W
            PCI                            :
                Domain ID                  : 0000
                Bus num                    : 3b
                Device                     : 00
                Function                   : 0
            Processes                      :
                Process                    : 0
                    PID                    : 811
                    cmdline                : python a:b.py
                    MLU Memory Usage       : 990 MiB
        Card 1
            Product Name                   : MLU370-X8
            UUID                           : bb22
            Health State                   :
                Device                     : Warning
            Physical Memory Usage          :
                Total                      : 23374 MiB
                Used                       : 0 MiB
            Processes                      :
        """
    vendor = cambricon.CambriconVendor(Recorded({"cnmon info": text}))
    devices = vendor.probe().devices
    assert [d.uid for d in devices] == ["MLU-aa11", "MLU-bb22"]
    assert devices[0].pci_bus_id == "0000:3b:00.0"
    snapshot = vendor.sample()
    assert _numbers(snapshot.samples[0]) == (1000, 0.55, 52, 130)
    assert [s.health for s in snapshot.samples] == [Health.OK, Health.DEGRADED]
    assert snapshot.samples[1].used_bytes == 0
    assert snapshot.process_bytes("MLU-aa11") == {811: 990 * _MIB}
    assert vendor.container(devices[1:]).cdi_names == ("cambricon.com/mlu=1",)


def _amd(gpu: int, used: object, **other: object) -> dict[str, object]:
    return {
        "gpu": gpu,
        "usage": {"gfx_activity": other.get("busy", {"value": 40, "unit": "%"})},
        "power": {"socket_power": other.get("power", {"value": 300, "unit": "W"})},
        "temperature": {"edge": "N/A", "hotspot": other.get("hot", {"value": 66, "unit": "C"})},
        "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": used},
    }


def _amd_static(gpu: int, serial: str) -> dict[str, object]:
    return {
        "gpu": gpu,
        "asic": {"market_name": "AMD Instinct MI300X OAM", "asic_serial": serial},
        "bus": {"bdf": f"0000:{gpu + 16:x}:00.0"},
        "vram": {"size": {"value": 196592, "unit": "MB"}},
        "driver": {"version": "6.12"},
    }


@pytest.mark.parametrize("wrapped", [True, False])
def test_amd_both_json_forms_and_shifted_numbers(wrapped: bool) -> None:
    def text(gpus: list[dict[str, object]]) -> str:
        return json.dumps({"gpu_data": gpus} if wrapped else gpus)

    metric = "amd-smi metric --usage --power --temperature --mem-usage --json"
    static = "amd-smi static --asic --vram --bus --driver --json"
    tool = Recorded(
        {
            metric: text([_amd(0, {"value": 2, "unit": "GB"}), _amd(1, "N/A", busy="N/A", hot="N/A", power="N/A")]),
            static: text([_amd_static(0, "0xAB01"), _amd_static(1, "0xAB02")]),
            "amd-smi process --json": text(
                [
                    {
                        "gpu": 0,
                        "process_list": [
                            {"process_info": {"pid": 90, "mem_usage": {"value": 5 * _MIB, "unit": "B"}}},
                            {"process_info": {"pid": 91, "mem_usage": "N/A"}},
                        ],
                    },
                    {"gpu": 1, "process_list": [{"process_info": "No running processes detected"}]},
                ]
            ),
        }
    )
    vendor = amd.AmdVendor(tool)
    devices = vendor.probe().devices
    assert [(d.uid, d.pci_bus_id) for d in devices] == [("AMD-ab01", "0000:10:00.0"), ("AMD-ab02", "0000:11:00.0")]
    snapshot = vendor.sample()
    assert _numbers(snapshot.samples[0]) == (2048, 0.4, 66, 300)
    assert snapshot.samples[1].health is Health.UNKNOWN
    assert snapshot.process_bytes("AMD-ab01") == {90: 5 * _MIB, 91: None}
    # GPU 0 drops out and the other becomes number 0: its readings stay its own
    tool.show(metric, text([_amd(0, {"value": 7, "unit": "MB"})]))
    tool.show(static, text([_amd_static(0, "0xAB02")]))
    samples = {s.uid: s for s in vendor.sample().samples}
    assert samples["AMD-ab02"].used_bytes == 7 * _MIB
    assert (samples["AMD-ab01"].health, samples["AMD-ab01"].used_bytes) == (Health.LOST, None)
    handed = vendor.container(devices[:1]).resolved(lambda path: path.replace("by-path/pci-0000:10:00.0-render", "R"))
    assert handed.device_nodes[0].host_path == "/dev/dri/R"
    assert "--group-add" in handed.docker_arguments()


def _dcu(**extra: str) -> dict[str, str]:
    return {
        "Card Series": "K100_AI",
        "Unique ID": "0xCAFE",
        "Average Graphics Package Power (W)": "120.0",
        "Temperature (Sensor junction) (C)": "58.0",
        "vram Total Memory (MiB)": "65520",
        "vram Total Used Memory (MiB)": "4000",
        **extra,
    }


_ROCM = " ".join(amd._ROCM)
_DCU_OLD = " ".join(("rocm-smi", *hygon._ASKED))
_DCU_NEW = " ".join(("hy-smi", *hygon._ASKED))


def test_rocm_smi_of_amd_and_of_old_hygon_toolkits_are_told_apart() -> None:
    card = {
        "Card Series": "AMD Instinct MI210",
        "Unique ID": "0xbeef",
        "PCI Bus": "0000:21:00.0",
        "Temperature (Sensor junction) (C)": "N/A",
        "Temperature (Sensor edge) (C)": "50.0",
        "Average Graphics Package Power (W)": "99.0",
        "GPU use (%)": "12",
        "VRAM Total Memory (B)": str(65520 * _MIB),
        "VRAM Total Used Memory (B)": str(10 * _MIB),
    }
    ours = json.dumps({"card0": card, "system": {"Driver version": "6.3"}})
    theirs = json.dumps({"card0": _dcu(**{"DCU use (%)": "95"})})
    vendor = amd.AmdVendor(Recorded({_ROCM: ours}))
    assert vendor.probe().devices[0].uid == "AMD-beef"
    assert _numbers(vendor.sample().samples[0]) == (10, 0.12, 50, 99)
    assert amd.AmdVendor(Recorded({_ROCM: theirs})).probe().reason == "amd-smi lists no device"
    dcu = hygon.HygonVendor(Recorded({_DCU_OLD: theirs}))
    assert dcu.probe().devices[0].uid == "DCU-cafe"
    assert _numbers(dcu.sample().samples[0]) == (4000, 0.95, 58, 120)
    assert hygon.HygonVendor(Recorded({_DCU_OLD: ours})).probe().devices == ()


@pytest.mark.parametrize(
    ("head", "tail"),
    [("HCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      HCU%      Mode", ""),
     ("HCU   Temp   AvgPwr   Perf   PwrCap   VRAM%   HCU%   Dec%   Enc%   Mode", "0.0%   0.0%   ")],
)  # fmt: skip
def test_hygon(head: str, tail: str) -> None:
    cards = {"card0": _dcu(**{"HCU use (%)": "97.5"}), "card1": _dcu(**{"HCU use (%)": "0", "Unique ID": "0xD00D"})}
    table = (
        f"====\n{head}\n0  58.0C  120.0W  auto  400.0W  6%  97.5%  {tail}Normal\n"
        f"1  N/A  N/A  auto  400.0W  N/A  N/A  {tail}Exception\n"
    )
    pids = (
        "PIDs for KFD processes:\nPID: 640\n\tHCU Index: ['0']\n\tVRAM USED(MiB): 3900\n"
        "PID: 641\n\tHCU Index: ['0', '1']\n\tVRAM USED(MiB): 8\nPID: 642\n\tHCU Index: ['UNKNOWN']\n"
        "\tVRAM USED(MiB): UNKNOWN\n"
    )
    bus = {"hy-smi --showbus --json": json.dumps({"card0": {"PCI Bus": "0000:07:00.0"}})}
    vendor = hygon.HygonVendor(
        Recorded({_DCU_NEW: json.dumps(cards), "hy-smi": table, "hy-smi --showpids": pids, **bus})
    )
    devices = vendor.probe().devices
    assert devices[0].kind is not None
    assert devices[0].kind.name == "DCU K100-AI"
    snapshot = vendor.sample()
    assert _numbers(snapshot.samples[0]) == (4000, 0.975, 58, 120)
    assert snapshot.samples[1].health_reason == "hy-smi shows mode Exception"
    assert snapshot.process_bytes("DCU-cafe") == {640: 3900 * _MIB, 641: None}
    handed = vendor.container(devices[:1])
    assert handed.device_nodes[0].host_path == "/dev/dri/by-path/pci-0000:07:00.0-render"
    assert handed.security_options == ("seccomp=unconfined",)
    with pytest.raises(HandoverError, match="no PCI bus id"):
        vendor.container(devices[1:])


def test_enflame() -> None:
    text = """
        +2026-04-07, 10:00:00 CST--------------------------------------------------+
        |EFSMI    V1.5.0.5         Driver Ver: 1.5.0.6                             |
        |--------------------------------------------------------------------------|
        | DEV    NAME                | FW VER          | BUS-ID      ECC           |
        | TEMP   Dpm   Pwr(Usage/Cap)| Mem     GCU Virt| DUsed       SN            |
        |--------------------------------------------------------------------------|
        | 0      S60                 | 33.6.5          | 00:08:00.0  Disable       |
        | 55 C   Active   180W  300W | 49120MiB Disable|  50.0%      SN01          |
        +--------------------------------------------------------------------------+
        | 1      S60                 | 33.6.5          | 00:09:00.0  Enable        |
        | -      Sleep    -          | 42976MiB Disable|   -         xxx           |
        +--------------------------------------------------------------------------+
        """
    vendor = enflame.EnflameVendor(Recorded({"efsmi": text}))
    devices = vendor.probe().devices
    assert devices[0].uid == "GCU-SN01"
    assert (devices[0].driver_version, devices[0].pci_bus_id) == ("1.5.0.6", "0000:08:00.0")
    first, second = vendor.sample().samples
    assert _numbers(first) == (24560, None, 55, 180)
    assert first.absent == {"utilization_ratio": "efsmi shows no value", "error_count": "efsmi shows no value"}
    assert (first.health, second.health) == (Health.OK, Health.UNKNOWN)
    assert vendor.process(devices[:1]).environment["TOPS_VISIBLE_DEVICES"] == "0"


def _mtt(index: int, uid: str, total: str, used: str) -> dict[str, object]:
    return {
        "Index": str(index),
        "Product Name": "MTT S4000",
        "GPU UUID": uid,
        "PCI": {"Bus Id": f"00000000:1{index}:00.0"},
        "FB Memory Usage": {"Total": total, "Used": used},
        "Utilization": {"Gpu": "31%"},
        "Temperature": {"GPU Current Temp": "48C"},
        "Power Readings": {"Power Draw ": "150.25W"},
        "Processes": [{"Process ID": "33", "GPU Memory": "900MiB"}] if index == 0 else [],
    }


def test_moorethreads_json_and_text_agree() -> None:
    gpus = [_mtt(0, "GPU-a", "49152MiB", "1000MiB"), _mtt(1, "GPU-b", "32768MiB", "N/A")]
    as_json = Recorded({"mthreads-gmi -q --json": json.dumps({"Driver Version": "2.7", "GPU": gpus})})
    lines = ["Driver Version        : 2.7"]
    for gpu in gpus:
        lines += [
            f"GPU{gpu['Index']} 00000000:1{gpu['Index']}:00.0",
            "    Product Name      : MTT S4000",
            f"    GPU UUID          : {gpu['GPU UUID']}",
            "    FB Memory Usage",
            f"        Total         : {gpu['FB Memory Usage']['Total']}",  # type: ignore[index]
            f"        Used          : {gpu['FB Memory Usage']['Used']}",  # type: ignore[index]
            "    Utilization",
            "        Gpu           : 31%",
            "    Temperature",
            "        GPU Current Temp : 48C",
            "    Power Readings",
            "        Power Draw    : 150.25W",
            "    Processes",
            *(
                ["        Process ID    : 33", "            GPU Memory : 900MiB"]
                if gpu["Processes"]
                else ["        None"]
            ),
        ]
    as_text = Recorded({"mthreads-gmi -q": "\n".join(lines)})
    by_json = moorethreads.MooreThreadsVendor(as_json)
    by_text = moorethreads.MooreThreadsVendor(as_text)
    assert by_json.probe() == by_text.probe()
    assert by_json.sample() == by_text.sample()
    snapshot = by_json.sample()
    assert _numbers(snapshot.samples[0]) == (1000, 0.31, 48, 150.25)
    assert snapshot.process_bytes("GPU-a") == {33: 900 * _MIB}
    assert snapshot.samples[1].health is Health.DEGRADED
    assert "IOMMU" in (snapshot.samples[1].health_reason or "")


_MX_22 = """
    | MX-SMI 2.2.8                        Kernel Mode Driver Version: 3.0.12          |
    |------------------------------------+---------------------+----------------------+
    | GPU     NAME         Persistence-M | Bus-id              | GPU-Util      sGPU-M |
    | Temp    Pwr:Usage/Cap         Perf | Memory-Usage        | GPU-State            |
    |====================================+=====================+======================|
    | 0       MetaX C500             Off | 0000:0e:00.0        | 20%           Native |
    | 50C     100W / 350W             P0 | 2000/65536 MiB      | Available            |
    +------------------------------------+---------------------+----------------------+
    | 1       MetaX C500             Off | 0000:0f:00.0        | N/A           Native |
    | N/A     N/A / 350W             N/A | N/A/65536 MiB       | Unavailable          |
    +------------------------------------+---------------------+----------------------+
    | Process:                                                                        |
    |  GPU                    PID         Process Name                 GPU Memory     |
    |  0                     1402         python3 train.py             1174           |
    |  1                     1403         python3                      N/A            |
"""
_MX_21 = """
    | GPU         NAME                   | Bus-id              | GPU-Util             |
    | Temp        Pwr:Usage/Cap          | Memory-Usage        |                      |
    |====================================+=====================+======================|
    | 0           MetaX C500             | 0000:0e:00.0        | 20%                  |
    | 50C         100W / 350W            | 2000/65536 MiB      |                      |
    +------------------------------------+---------------------+----------------------+
"""


def test_metax_both_layouts() -> None:
    ids = (
        "GPU#0  MXC500  0000:0e:00.0  Available  (UUID: GPU-x)\nGPU#1  MXC500  0000:0f:00.0  Unavailable  (UUID: N/A)\n"
    )
    new = metax.MetaxVendor(Recorded({"mx-smi": _MX_22, "mx-smi -L": ids}))
    devices = new.probe().devices
    assert (devices[0].uid, devices[0].name) == ("GPU-x", "MetaX C500")
    snapshot = new.sample()
    assert _numbers(snapshot.samples[0]) == (2000, 0.2, 50, 100)
    assert [s.health for s in snapshot.samples] == [Health.OK, Health.DEGRADED]
    assert snapshot.process_bytes("GPU-x") == {1402: 1174 * _MIB}
    assert snapshot.processes[1].reason == "mx-smi shows no value"
    old = metax.MetaxVendor(Recorded({"mx-smi": _MX_21}))
    assert old.probe().devices[0].name == "MetaX C500"
    assert _numbers(old.sample().samples[0]) == (2000, 0.2, 50, 100)
    assert old.sample().samples[0].health is Health.OK


def test_iluvatar_power_on_one_gpu_of_a_board_is_normal() -> None:
    table = """
        |  IX-ML: 4.3.0       Driver Version: 4.3.0       CUDA Version: 10.2          |
        |===============================+======================+======================|
        | 0    Iluvatar BI-V150         | 00000000:10:00.0     | 1500MHz   1600MHz    |
        | N/A  50C   P0    N/A / N/A    | 1000MiB / 32768MiB   | 33%       Default    |
        +-------------------------------+----------------------+----------------------+
        | 1    Iluvatar BI-V150         | 00000000:13:00.0     | 1500MHz   1600MHz    |
        | N/A  49C   P0    200W / 350W  | 64MiB / 32768MiB     | 0%        Default    |
        +-------------------------------+----------------------+----------------------+
        | Processes:                                                       GPU Memory |
        |  GPU        PID      Process name                                Usage(MiB) |
        |  0          2511     python3 train.py                            930        |
        """
    query = "index, uuid, name\n0, GPU-p, Iluvatar BI-V150\n1, N/A, Iluvatar BI-V150\n"
    vendor = iluvatar.IluvatarVendor(Recorded({"ixsmi": table, " ".join(iluvatar._QUERY): query}))
    devices = vendor.probe().devices
    assert devices[0].uid == "GPU-p"
    assert devices[1].uid.endswith("0000:13:00.0")
    snapshot = vendor.sample()
    assert [_numbers(s) for s in snapshot.samples] == [(1000, 0.33, 50, None), (64, 0.0, 49, 200)]
    assert [s.health for s in snapshot.samples] == [Health.OK, Health.OK]
    assert snapshot.process_bytes("GPU-p") == {2511: 930 * _MIB}
    full = "index, driver_version, memory.total, memory.used, utilization.gpu, temperature.gpu, board.power.draw\n"
    (row,) = iluvatar.parse_query(full + "0, 4.3.0, 32768 MiB, 64 MiB, 5 %, 40 C, 90 W\n")
    assert (row.used_bytes, row.utilization_ratio, row.power_watts) == (64 * _MIB, 0.05, 90)


def test_gaudi() -> None:
    query = (
        "0, UID-A, HL-225, 1.22.1, 98304 MiB, 5000 MiB, 93304 MiB, 250 W, 600 W, 44 C, 61 %\n"
        "1, UID-B, HL-225, 1.22.1, 98304 MiB, 768 MiB, 97536 MiB, N/A, 600 W, N/A, N/A\n"
    )
    table = """
        |===============================+======================+======================|
        |   0  HL-225              N/A  | 0000:19:00.0     N/A |                   0  |
        | N/A   44C   N/A  250W /  600W |  5000MiB /  98304MiB |    61%           60% |
        |-------------------------------+----------------------+----------------------+
        |   1  HL-225              N/A  | 0000:1a:00.0     N/A |                   9  |
        | N/A   N/A   N/A   N/A /  600W |   768MiB /  98304MiB |    N/A           N/A |
        |-------------------------------+----------------------+----------------------+
        | Compute Processes:                                               AIP Memory |
        |  AIP       PID   Type   Process name                             Usage      |
        |=============================================================================|
        |   0        1933     C   python3                                  4232MiB    |
        |   1        N/A   N/A    N/A                                      N/A        |
        """
    vendor = gaudi.GaudiVendor(Recorded({" ".join(gaudi._QUERY): query, "hl-smi": table}))
    devices = vendor.probe().devices
    assert [(d.uid, d.pci_bus_id) for d in devices] == [("UID-A", "0000:19:00.0"), ("UID-B", "0000:1a:00.0")]
    assert devices[0].kind is not None
    assert devices[0].kind.name == "Gaudi 2"
    snapshot = vendor.sample()
    assert _numbers(snapshot.samples[0]) == (5000, 0.61, 44, 250)
    assert (snapshot.samples[1].error_count, snapshot.samples[1].health) == (9, Health.DEGRADED)
    assert snapshot.process_bytes("UID-A") == {1933: 4232 * _MIB}
    assert vendor.container(devices[1:]).device_nodes[0].host_path == "/dev/accel/accel1"


def _tool_vendors() -> list[ToolVendor]:
    return [each for each in vendors() if isinstance(each, ToolVendor)]


@pytest.mark.parametrize("vendor", _tool_vendors(), ids=lambda v: v.name)
def test_missing_tool_is_a_reason_and_garbage_is_no_device(vendor: ToolVendor) -> None:
    absent = type(vendor)(Recorded({}))
    assert "is not on the PATH" in (absent.probe().reason or "")
    assert "is not on the PATH" in (absent.sample().reason or "")

    def garbage(command: object) -> str:
        return "| 0 | \x00 :: {[ 0000:00:00.0 \n| NaN | ]\n" * 50

    odd = type(vendor)(garbage)
    assert odd.probe().devices == ()
    assert odd.probe().reason
    assert odd.sample().samples == ()


@pytest.mark.parametrize("vendor", _tool_vendors(), ids=lambda v: v.name)
def test_hand_over_of_every_vendor_is_complete(vendor: ToolVendor) -> None:
    kind = vendor.kinds[0]
    devices = [
        Device(f"u{i}", vendor.name, kind.name, kind, kind.memory_bytes, index=i, minor=i, pci_bus_id=f"0000:0{i}:00.0")
        for i in (1, 3)
    ]
    container = vendor.container(devices)
    assert all(node.host_path.startswith("/dev/") for node in container.device_nodes)
    assert len({node.host_path for node in container.device_nodes}) == len(container.device_nodes)
    assert sum(container.kubernetes_resources.values()) == 2
    assert vendor.process(devices).environment[vendor.process_variable] == "1,3"
    with pytest.raises(HandoverError):
        vendor.container([])
    with pytest.raises(HandoverError, match="simulated"):
        vendor.container([Device("s", vendor.name, "x", None, 1, simulated=True)])
    with pytest.raises(HandoverError, match="no index"):
        vendor.process([Device("s", vendor.name, "x", None, 1)])


def test_lost_device_keeps_its_id_when_the_tool_stops_answering() -> None:
    tool = Recorded({"mx-smi": _MX_21})
    vendor = metax.MetaxVendor(tool)
    uid = vendor.probe().devices[0].uid
    tool.texts.clear()
    snapshot = vendor.sample()
    assert [(s.uid, s.health) for s in snapshot.samples] == [(uid, Health.LOST)]
    assert snapshot.reason
    tool.show("mx-smi", _MX_21)
    assert vendor.sample().samples[0].health is Health.OK
