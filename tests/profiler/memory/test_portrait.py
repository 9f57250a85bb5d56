"""From a reading to the portrait: numbers with their evidence, verdict and advice."""

from __future__ import annotations

import pytest
from tests.profiler.memory.hand_traces import A100, GIB, RTX_3090, THIS_MACHINE, linear_trace, reading_of

from oarlock_profiler.core import calibration, cost
from oarlock_profiler.core.advice import recompute_share
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.findings import Findings, Where
from oarlock_profiler.core.portrait import Setting, build
from oarlock_profiler.core.reading import DistributedInfo, ModuleNode, Reading
from oarlock_schemas import Portrait

TINY = RTX_3090.__class__(
    "Tiny", "nvidia", GIB, arch="sm_86", bandwidth_bytes_per_second=300e9, fp32_flops_per_second=5e12
)


def portrait(batch: int = 512, **setting: object) -> Portrait:
    return build(reading_of(linear_trace(batch=batch), batch=batch), Setting(**setting))  # type: ignore[arg-type]


def test_parts_add_up_to_the_device_peak() -> None:
    memory = portrait(target=RTX_3090).memory
    parts = memory.parts.model_dump()
    assert sum(parts.values()) == memory.peak.device_bytes
    assert memory.peak.low_bytes <= memory.peak.device_bytes <= memory.peak.high_bytes  # type: ignore[operator]
    assert memory.peak.reserve_bytes >= memory.peak.device_bytes  # type: ignore[operator]
    assert memory.peak.raw_device_bytes == memory.peak.device_bytes


def test_evidence_and_unknowns_are_carried() -> None:
    reading = reading_of(linear_trace(batch=8), batch=8)
    reading.findings.gap("learning rate", Where("main.py", 9), "comes from a file", 0.1)
    found = build(reading)
    assert ("batch size", 8, "main.py", 3) in [(e.fact, e.value, e.file, e.line) for e in found.evidence]
    gap = next(u for u in found.unknowns if u.what == "learning rate")
    assert (gap.line, gap.assumed) == (9, 0.1)
    assert found.confidence < 0.97


def test_declared_fields_win_only_where_the_script_is_silent() -> None:
    reading = reading_of(linear_trace(batch=8), batch=8)
    declared = {"batch_size_per_gpu": 99, "distributed_strategy": "ddp"}
    found = build(reading, Setting(declared=declared))
    assert found.batch.size_per_device == 8
    assert found.distributed.strategy == "ddp"
    assert [(e.fact, e.how) for e in found.evidence if e.how == "declared"] == [("distributed_strategy", "declared")]


def test_cold_start_says_what_it_assumed() -> None:
    nothing = Reading("paddlepaddle", "training", Trace(), Findings())
    found = build(nothing, Setting(declared={"batch_size_per_gpu": 16, "sequence_length": 512}))
    assert found.method == "cold_start"
    assert found.memory.peak.device_bytes == round(16 * 512 * 768 * 4 * 1.5)
    assert ("hidden_size", 768) in [(u.what, u.assumed) for u in found.unknowns]
    assert found.confidence <= 0.2
    assert found.memory.parts.weights_bytes is None


def test_a_model_that_was_not_read_is_not_sized_by_its_data() -> None:
    reading = reading_of(linear_trace(batch=8), batch=8)
    reading.parameters_total = None
    assert build(reading).method == "cold_start"


def test_a_learned_factor_is_used_and_named() -> None:
    key = calibration.Key("pytorch", "mlp", "float32", "RTX 3090", "digest")
    state = calibration.empty()
    raw = portrait(target=RTX_3090).memory.peak.device_bytes
    assert raw is not None
    state, _ = calibration.update(state, key, owner="a", raw_bytes=raw, measured_bytes=round(raw * 1.3))
    again = portrait(target=RTX_3090, calibration=state, source_digest="digest")
    assert again.method == "calibrated"
    assert again.memory.peak.raw_device_bytes == raw
    assert again.memory.peak.device_bytes == pytest.approx(1.3 * raw, rel=0.05)
    assert any(e.how == "calibrated" for e in again.evidence)


@pytest.mark.parametrize(("sequence", "flagged"), [(512, False), (513, True), (1024, True)])
def test_a_long_transformer_is_flagged(sequence: int, flagged: bool) -> None:
    reading = reading_of(linear_trace(batch=8), batch=8)
    reading.roots = [ModuleNode("encoder", "TransformerEncoder", 1, 1, [(8, sequence, 64)])]
    found = build(reading)
    assert found.family == "transformer"
    assert ("high_memory" in found.flags) is flagged


def test_a_distributed_script_exchanges_its_gradients() -> None:
    reading = reading_of(linear_trace(batch=8), batch=8)
    reading.distributed = DistributedInfo("ddp", 4)
    found = build(reading, Setting(target=A100))
    assert "distributed" in found.flags
    assert found.compute.communication_bytes_per_step == round(2 * 3 / 4 * 4 * 1024 * 1024)
    assert found.memory.parts.communication_bytes


def test_a_main_memory_script_gets_no_accelerator_time() -> None:
    reading = reading_of(linear_trace(batch=64, device="cpu"), batch=64)
    found = build(reading, Setting(fleet=[RTX_3090, THIS_MACHINE]))
    assert "cpu_only" in found.flags
    assert set(found.compute.step_seconds) == {"cpu"}


def test_it_fits_and_the_largest_batch_is_said() -> None:
    found = portrait(batch=65_536, target=RTX_3090)
    assert found.fit is not None
    assert found.fit.verdict == "fits"
    (advice,) = found.advice
    assert advice.change == "batch_size"
    assert advice.reserve_bytes is not None
    assert 0.9 * RTX_3090.capacity_bytes < advice.reserve_bytes <= RTX_3090.capacity_bytes


def test_what_does_not_fit_gets_advice_that_does_gentlest_first() -> None:
    batch = 300_000
    found = portrait(batch=batch, target=TINY, fleet=[TINY, RTX_3090, A100])
    assert found.fit is not None
    assert found.fit.verdict == "oom"
    changes = [advice.change for advice in found.advice]
    assert changes[0] == "device"
    assert found.advice[0].value == "RTX 3090"
    assert changes.index("accumulation") < changes.index("batch_size")
    for advice in found.advice:
        assert advice.text
        assert advice.text_zh
        if advice.change != "device":
            assert advice.reserve_bytes is not None
            assert advice.reserve_bytes <= TINY.capacity_bytes


def test_with_no_larger_device_the_size_that_is_needed_is_said() -> None:
    found = portrait(batch=300_000, target=TINY, fleet=[TINY])
    assert found.advice[0].text.startswith("needs a device of at least")


def test_a_rejection_of_the_whole_fleet_can_be_explained() -> None:
    found = portrait(batch=300_000, fleet=[TINY])
    assert found.fit is None
    assert "batch_size" in [advice.change for advice in found.advice]


def test_recomputing_rows_of_equal_blocks_keeps_their_outputs_and_one_inside() -> None:
    blocks = [
        ModuleNode(f"b{i}", "Block", 1, 1, [(1, 250)], saved_bytes=10_000, children=[ModuleNode("x", "Linear", 1, 1)])
        for i in range(10)
    ]
    root = ModuleNode("", "Net", 10, 10, saved_bytes=100_000, children=blocks)
    assert recompute_share([root]) == pytest.approx((10 * 1000 + 10_000) / 100_000)
    assert recompute_share([ModuleNode("", "Net", 1, 1, saved_bytes=5)]) is None


def test_step_time_follows_the_roofline() -> None:
    work = cost.work_of(linear_trace(batch=65536))
    fast, slow = cost.step_seconds(work, A100, "paddlepaddle"), cost.step_seconds(work, TINY, "pytorch")
    assert fast is not None
    assert slow is not None
    assert slow > 10 * fast
    assert slow == pytest.approx(work.flops / (5e12 * cost.MATMUL_SHARE["fp32"]), rel=0.05)


def test_small_steps_are_bound_by_the_host() -> None:
    work = cost.work_of(linear_trace(batch=1, layers=50))
    seconds = cost.step_seconds(work, A100, "pytorch")
    assert seconds is not None
    assert seconds >= work.launches * cost.LAUNCH_SECONDS["pytorch"]


def test_a_device_is_busy_for_as_long_as_its_kernels_run() -> None:
    large, small = (cost.work_of(linear_trace(batch=batch, layers=50)) for batch in (65536, 1))
    assert busy_share(large) == pytest.approx(1.0)
    waiting = busy_share(small)
    seconds = cost.step_seconds(small, A100, "pytorch")
    assert waiting is not None
    assert seconds is not None
    assert seconds == pytest.approx(small.launches * cost.LAUNCH_SECONDS["pytorch"], rel=0.01)
    assert len(small.ops) * cost.KERNEL_SECONDS <= waiting * seconds < seconds
    assert busy_share(cost.work_of(Trace())) is None


def busy_share(work: cost.Work) -> float | None:
    timed = cost.timed_step(work, A100, "pytorch")
    return None if timed is None else timed.busy_share


def test_price_and_duration() -> None:
    assert cost.duration_seconds(0.5, 100, 3) == 150
    assert cost.duration_seconds(None, 100, 3) is None
    assert cost.price_of(1800, RTX_3090, 2) == 2.0
    assert cost.price_of(1800, A100) is None


def test_a_device_without_rates_has_no_step_time() -> None:
    bare = RTX_3090.__class__("Bare", "huawei", GIB)
    found = portrait(fleet=[bare])
    assert found.compute.step_seconds == {"Bare": None}
    assert "step time on Bare" in [u.what for u in found.unknowns]
