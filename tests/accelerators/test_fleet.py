"""Fleet files and the devices that exist only in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock_accelerators import Fleet, FleetError, HandoverError, Health
from oarlock_accelerators.vendors.simulated import SimulatedLoad, SimulatedVendor, simulate_sample

_SEED = Path(__file__).parents[2] / "deploy" / "fleets" / "seed.yaml"
_GIB = 1024**3


def test_seed_fleet_has_its_four_kinds_on_several_nodes() -> None:
    fleet = Fleet.load(_SEED)
    kinds = {device.kind.name for device in fleet.devices if device.kind is not None}
    assert kinds == {"A100-SXM4-40GB", "V100-PCIE-32GB", "RTX 3090", "Ascend 910A"}
    assert len(fleet.nodes) >= 4
    assert fleet.include_this_machine
    assert all(device.simulated for device in fleet.devices)
    assert all(device.price_per_hour for device in fleet.devices)
    assert len({device.uid for device in fleet.devices}) == len(fleet.devices)
    assert "example" in fleet.notes


def test_ids_are_the_same_each_time_and_differ_between_fleets() -> None:
    text = _SEED.read_text()
    assert Fleet.parse(text).devices == Fleet.load(_SEED).devices
    renamed = Fleet.parse(text.replace("fleet: seed", "fleet: other"))
    assert not {d.uid for d in renamed.devices} & {d.uid for d in Fleet.parse(text).devices}
    device = Fleet.parse(text).devices[3]
    assert Fleet.parse(text).device(device.uid) == device


_HEAD = "fleet: f\ncurrency: USD\nnodes:\n"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", None, "is empty"),
        ("fleet: [", 1, "is not YAML"),
        ("- a\n", 1, "a mapping is expected"),
        ("fleet: f\n", 1, "'nodes' is missing"),
        ("fleet: f\nnodes: {}\n", 2, "must be a list"),
        ("fleet: f\nnodes: []\n", 2, "has no node"),
        ("fleet: f\nfleet: g\nnodes: []\n", 2, "written twice"),
        ("fleet: a/b\nnodes: []\n", 1, "cannot be 'a/b'"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: RTX 3009}\n", 6, "no device kind is called 'RTX 3009'"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: T4, count: 0}\n", 6, "a count of 0"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: T4, count: many}\n", 6, "is not a whole number"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: T4, count: true}\n", 6, "is not a whole number"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: T4, price_per_hour: -1}\n", 6, "-1.0 cannot be"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: T4, price_per_hour: .nan}\n", 6, "nan cannot be"),
        (_HEAD + "  - name: n\n    memory: lots\n    devices:\n      - {kind: T4}\n", 5, "'lots' is not a size"),
        (_HEAD + "  - name: n\n    gpus: 3\n    devices: []\n", 5, "'gpus' is not known here"),
        (_HEAD + "  - name: n\n    devices: []\n", 5, "a node of 0 device entries"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: CPU}\n", 6, "no memory size"),
        (_HEAD + "  - name: n\n    devices:\n      - {kind: T4, count: 200000}\n      - {kind: T4}\n", 4, "more than"),
        (_HEAD + "  - {name: n, devices: [{kind: T4}]}\n  - {name: n, devices: [{kind: T4}]}\n", 5, "written twice"),
        ("fleet: f\nnodes:\n  - {name: n, devices: [{kind: T4, price_per_hour: 1}]}\n", 3, "no currency"),
    ],
)
def test_fault_is_placed_and_says_how_to_mend_it(text: str, line: int | None, what: str) -> None:
    with pytest.raises(FleetError) as caught:
        Fleet.parse(text, "my.yaml")
    assert caught.value.line == line
    assert what in caught.value.what
    assert caught.value.how
    assert str(caught.value).startswith("my.yaml")


def test_unknown_kind_suggests_the_nearest() -> None:
    with pytest.raises(FleetError, match="Try RTX 3090"):
        Fleet.parse(_HEAD + "  - name: n\n    devices:\n      - {kind: RTX 3009}\n")


def test_missing_and_oversized_files(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="cannot be read: No such file"):
        Fleet.load(tmp_path / "none.yaml")
    big = tmp_path / "big.yaml"
    big.write_text("#" * (4 * 1024**2 + 1))
    with pytest.raises(FleetError, match="larger than 4 MiB"):
        Fleet.load(big)


def test_anchors_cannot_blow_up_the_fleet() -> None:
    entries = "[" + ",".join(["*d"] * 2000) + "]"
    with pytest.raises(FleetError, match="device entries"):
        Fleet.parse(f"fleet: f\nnotes: &d x\nnodes:\n  - {{name: n, devices: {entries}}}\n")
    with pytest.raises(FleetError):
        Fleet.parse("fleet: f\nnodes: &n [*n]\n")


def test_node_count_makes_numbered_nodes_and_memory_overrides() -> None:
    fleet = Fleet.parse(
        _HEAD + "  - name: n\n    count: 3\n    cpu_cores: 8\n    memory: 1.5GiB\n    labels: {zone: east}\n"
        "    devices:\n      - {kind: CPU, memory: 64GiB}\n      - {kind: T4, count: 2, price_per_hour: 0.3}\n"
    )
    assert [node.name for node in fleet.nodes] == ["n-1", "n-2", "n-3"]
    node = fleet.nodes[0]
    assert (node.cpu_cores, node.memory_bytes, node.labels) == (8, 3 * _GIB // 2, {"zone": "east"})
    assert [d.total_bytes for d in node.devices] == [64 * _GIB, 15 * _GIB, 15 * _GIB]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_fleet_or_a_placed_error(text: str) -> None:
    with pytest.raises(FleetError):
        Fleet.parse("fleet: f\nnodes:\n" + text)


def test_samples_follow_what_is_placed() -> None:
    fleet = Fleet.load(_SEED)
    device = fleet.devices[0]
    placed: dict[str, list[SimulatedLoad]] = {}
    vendor = SimulatedVendor(fleet, lambda: placed)
    idle = vendor.sample().samples[0]
    assert (idle.uid, idle.used_bytes, idle.utilization_ratio, idle.simulated) == (device.uid, 0, 0.0, True)
    placed[device.uid] = [SimulatedLoad(6 * _GIB, 0.5, pid=77), SimulatedLoad(2 * _GIB, 0.2)]
    snapshot = vendor.sample()
    busy = snapshot.samples[0]
    assert busy.used_bytes == 8 * _GIB
    assert busy.utilization_ratio == pytest.approx(0.7)
    assert (busy.power_watts or 0) > (idle.power_watts or 0)
    assert snapshot.process_bytes(device.uid) == {77: 6 * _GIB}
    assert all(sample.simulated for sample in snapshot.samples)


def test_loads_beyond_the_memory_are_cut_off_and_flagged() -> None:
    device = Fleet.load(_SEED).devices[0]
    sample = simulate_sample(device, [SimulatedLoad(90 * _GIB, 1.0), SimulatedLoad(1, 1.0)])
    assert (sample.used_bytes, sample.utilization_ratio) == (device.total_bytes, 1.0)
    assert sample.health is Health.DEGRADED


def test_simulated_hand_over_gives_nothing_real() -> None:
    vendor = SimulatedVendor(Fleet.load(_SEED))
    devices = vendor.probe().devices[:2]
    container = vendor.container(devices)
    assert (container.device_nodes, container.device_requests, container.mounts) == ((), (), ())
    assert container.environment == {"OARLOCK_SIMULATED_DEVICES": f"{devices[0].uid},{devices[1].uid}"}
    with pytest.raises(HandoverError):
        vendor.process([])


def test_without_a_fleet_there_are_no_devices_and_a_reason() -> None:
    assert SimulatedVendor().probe().reason == "no fleet file was given"
    assert SimulatedVendor().sample().reason == "no fleet file was given"
