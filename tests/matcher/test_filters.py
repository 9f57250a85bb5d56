"""Each filter names its reason, in code and words."""

from dataclasses import replace

import pytest

from oarlock_matcher.core.devices import Health
from oarlock_matcher.core.events import DeviceChanged, DeviceLost, NodeDrained
from oarlock_matcher.core.machine import why

from .fleets import A100, ASCEND_910, GIB, RTX_3090, SEED_FLEET, V100, Driver, need, node


def codes(effect: object) -> set[str]:
    return {reason.code for reason in effect.reasons}  # type: ignore[attr-defined]


def test_memory_threshold_is_explained_with_numbers() -> None:
    rejected = Driver().fleet(node("r", RTX_3090, 1)).reject(need("t", 31.2))
    assert rejected.code == "no_device_fits"
    assert [r.sentence for r in rejected.reasons] == ["needs 31.2 GiB, 24.0 GiB × 0.85 = 20.4 GiB usable"]
    assert rejected.smallest_bytes == pytest.approx(31.2 * GIB / 0.85, rel=1e-6)
    assert rejected.largest_bytes_seen == 24 * GIB


def test_threshold_is_the_tasks_own() -> None:
    driver = Driver().fleet(node("r", RTX_3090, 1))
    assert driver.place(need("t", 23.0, memory_threshold=0.99)).kind == "RTX 3090"


def test_reservation_must_fit_even_when_the_prediction_does() -> None:
    rejected = Driver().fleet(node("r", RTX_3090, 1)).reject(need("t", 20.0, reserve_bytes=25 * GIB))
    assert "its reservation of 25.0 GiB exceeds the 24.0 GiB usable" in rejected.reasons[0].sentence


@pytest.mark.parametrize(
    ("fields", "model", "code"),
    [
        ({"required_kinds": frozenset({"RTX 3090"})}, A100, "kind_not_required"),
        ({"forbidden_kinds": frozenset({"A100-SXM4-40GB"})}, A100, "kind_forbidden"),
        ({"precision": "bf16"}, ASCEND_910, "precision_unsupported"),
        ({"kernels": frozenset({"grid_sample", "relu"})}, ASCEND_910, "kernel_unsupported"),
        ({"site": "elsewhere"}, A100, "other_site"),
        ({"cpu_milli": 65_000}, A100, "node_too_small"),
        ({"memory_bytes": 300 * GIB}, A100, "node_too_small"),
    ],
)
def test_what_can_never_fit_is_rejected(fields: dict[str, object], model: object, code: str) -> None:
    rejected = Driver().fleet(node("n", model, 2)).reject(need("t", 8, **fields))  # type: ignore[arg-type]
    assert codes(rejected) == {code}


def test_unknown_precision_support_admits() -> None:
    assert Driver().fleet(node("v", V100, 1)).place(need("t", 8, precision="bf16")).kind == V100.kind


def test_busy_device_names_its_holder_and_what_would_free_it() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("first", expected_seconds=300.0))
    queued = driver.queue(need("second"))
    assert codes(queued) == {"busy"}
    assert "held by first" in queued.reasons[0].sentence
    assert queued.would_free_it[0] == "the end of first on v-0, expected in about 300 s"


def test_gang_larger_than_what_is_free_on_one_node() -> None:
    driver = Driver().fleet(node("a", A100, 4))
    driver.place(need("one"))
    queued = driver.queue(need("gang", device_count=4))
    assert codes(queued) == {"busy", "gang_size"}
    assert any("needs 4 devices on one node, 3 fit on a" in r.sentence for r in queued.reasons)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (DeviceChanged("v-0", health=Health.FAILED), "unavailable"),
        (DeviceChanged("v-0", cordoned=True), "unavailable"),
        (NodeDrained("v", True), "draining"),
        (DeviceLost("v-0"), "no_devices"),
    ],
)
def test_unavailable_devices_take_no_work_until_they_are_back(event: object, code: str) -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.tell(event)  # type: ignore[arg-type]
    queued = driver.queue(need("t")) if code != "no_devices" else driver.arrive(need("t"))
    assert code in codes(queued)


def test_device_coming_back_serves_the_queue() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.tell(DeviceChanged("v-0", cordoned=True))
    driver.queue(need("t"))
    effects = driver.tell(DeviceChanged("v-0", cordoned=False))
    assert [type(e).__name__ for e in effects] == ["Reserve"]


def test_sharing_is_by_bytes_and_compute() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("a", 10, compute_milli=400))
    driver.place(need("b", 10, compute_milli=400))
    assert codes(driver.queue(need("c", 1, compute_milli=300))) == {"compute_share"}
    assert codes(driver.queue(need("d", 11, compute_milli=100))) == {"memory_in_use"}


def test_exclusive_means_exclusive_in_both_directions() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("alone", 2, compute_milli=100, exclusive=True))
    assert driver.queue(need("guest", 2, compute_milli=100)).task_id == "guest"
    driver.finish("alone")
    assert "guest" in driver.state.tasks and driver.state.tasks["guest"].shares
    assert codes(driver.queue(need("again", 2, compute_milli=100, exclusive=True))) == {"busy"}


def test_small_fleets_explain_every_device() -> None:
    rejected = Driver().fleet(*SEED_FLEET).reject(need("t", 90))
    assert sorted(uid for r in rejected.reasons for uid in r.devices) == sorted(
        d.uid for n in SEED_FLEET for d in n.devices
    )


def test_large_fleets_are_explained_by_cause_and_model() -> None:
    rejected = Driver().fleet(*(node(f"n{i}", V100, 8) for i in range(10))).reject(need("t", 90))
    assert [(r.code, r.count) for r in rejected.reasons] == [("memory_too_small", 80)]
    assert rejected.reasons[0].sentence.startswith("80 × V100-PCIE-32GB, e.g. n0-0: needs 90.0 GiB")


def test_why_says_what_a_task_that_the_matcher_does_not_know_is() -> None:
    assert why(Driver().state, "nobody", 0.0).phase == "unknown"


def test_unchanged_inventory_is_not_a_change() -> None:
    driver = Driver().fleet(*SEED_FLEET)
    before = driver.state.fleet.inventory_version, driver.state.fleet.touched_end
    driver.fleet(*(replace(n) for n in SEED_FLEET))
    assert (driver.state.fleet.inventory_version, driver.state.fleet.touched_end) == before
