"""Learning from runs: little data moves little, nobody moves it far, and what is booked holds."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock_profiler.core import calibration, reservation
from oarlock_profiler.core.calibration import Key, State, correction, empty, learn, reset, update
from oarlock_schemas import Measured, Predicted, RunRecord

CNN = Key("pytorch", "cnn", "float32", "RTX 3090")
MLP = Key("pytorch", "mlp", "float32", "RTX 3090")
GB = 10**9


def feed(state: State, key: Key, ratios: list[float], owner: str = "ann") -> State:
    for ratio in ratios:
        state, _ = update(state, key, owner=owner, raw_bytes=GB, measured_bytes=round(GB * ratio))
    return state


def test_nothing_learned_corrects_nothing() -> None:
    assert correction(empty(), CNN).factor == 1.0
    assert correction(empty(), CNN).observations == 0


def test_fifty_runs_of_a_family_shifted_by_20_percent_halve_the_error_and_leave_others_alone() -> None:
    random.seed(4)
    state = feed(empty(), CNN, [1.2 * math.exp(random.gauss(0, 0.03)) for _ in range(50)])
    assert abs(1.2 / correction(state, CNN).factor - 1) <= 0.10
    other_kind = Key("pytorch", "cnn", "float32", "A100-SXM4-40GB")
    assert abs(1.2 / correction(state, other_kind).factor - 1) <= 0.10
    assert abs(correction(state, MLP).factor - 1) <= 0.01


def test_one_run_moves_little() -> None:
    state = feed(empty(), CNN, [1.2])
    assert 1.0 < correction(state, CNN).factor < 1.12


def test_the_same_script_is_corrected_after_one_run_on_any_device() -> None:
    key = Key("paddlepaddle", "cnn", "float32", "RTX 3090", "abc123")
    state = feed(empty(), key, [1.3])
    unplaced = Key("paddlepaddle", "cnn", "float32", None, "abc123")
    assert abs(correction(state, key).factor / 1.3 - 1) < 0.05
    assert abs(correction(state, unplaced).factor / 1.3 - 1) < 0.12


def test_an_absurd_record_is_clipped() -> None:
    state = feed(empty(), CNN, [1.0] * 10)
    before = correction(state, CNN).factor
    state = feed(state, CNN, [1000.0], owner="mallory")
    assert correction(state, CNN).factor / before < 1.06


def test_a_hostile_owner_cannot_outvote_the_others() -> None:
    state = feed(empty(), CNN, [1.0] * 30, owner="ann")
    state = feed(state, CNN, [1.0] * 30, owner="bob")
    state = feed(state, CNN, [50.0] * 500, owner="mallory")
    assert correction(state, CNN).factor < 1.25
    assert correction(state, CNN).reserve_ratio <= reservation.RATIO_CEILING


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60))
def test_factors_and_ratios_stay_between_floor_and_ceiling(ratios: list[float]) -> None:
    state = empty()
    for ratio in ratios:
        state, _ = update(state, CNN, owner="x", raw_bytes=GB, measured_bytes=max(1, round(GB * ratio)))
    found = correction(state, CNN)
    assert calibration.FACTOR_FLOOR <= found.factor <= calibration.FACTOR_CEILING
    assert reservation.RATIO_FLOOR <= found.reserve_ratio <= reservation.RATIO_CEILING


def test_out_of_memory_says_more_was_needed() -> None:
    state, change = update(
        empty(), CNN, owner="a", raw_bytes=20 * GB, measured_bytes=None, out_of_memory_at_bytes=24 * GB
    )
    assert change is not None
    assert correction(state, CNN).factor > 1.0


def test_out_of_memory_that_was_foretold_teaches_nothing() -> None:
    state, change = update(
        empty(), CNN, owner="a", raw_bytes=30 * GB, measured_bytes=None, out_of_memory_at_bytes=24 * GB
    )
    assert change is None
    assert state == empty()


def test_the_old_state_is_left_as_it_was_and_the_new_one_is_json() -> None:
    old = empty()
    new, _ = update(old, CNN, owner="a", raw_bytes=GB, measured_bytes=2 * GB)
    assert old == empty()
    assert json.loads(json.dumps(new)) == new


def test_what_is_booked_holds_for_99_of_100_and_wastes_little() -> None:
    random.seed(9)
    state = feed(empty(), CNN, [math.exp(random.gauss(0, 0.03)) for _ in range(300)])
    missed = 0
    headroom = []
    for _ in range(1000):
        truth = math.exp(random.gauss(0, 0.03))
        found = correction(state, CNN)
        booked = found.factor * found.reserve_ratio
        missed += truth > booked
        headroom.append(booked / truth - 1)
        state = feed(state, CNN, [truth])
    assert missed <= 15
    assert sum(headroom) / len(headroom) < 0.10


def test_what_a_well_estimated_family_does_not_miss_is_left_to_the_others() -> None:
    rare = [1.4 if number % 66 == 0 else 1.0 for number in range(1, 500)]  # 1.5 % of the runs
    alone = mixed = empty()
    for ratio in rare:
        alone = feed(alone, CNN, [ratio])
        mixed = feed(feed(mixed, MLP, [1.0] * 3), CNN, [ratio])
    assert correction(alone, CNN).reserve_ratio > 1.35  # 99 of 100 of these runs
    assert correction(mixed, CNN).reserve_ratio < 1.05  # 99 of 100 of all runs, and 98 of these
    assert correction(mixed, MLP).reserve_ratio == reservation.RATIO_FLOOR


def test_a_run_record_teaches_and_says_what_moved() -> None:
    record = RunRecord(
        task_id="t",
        attempt=1,
        owner="ann",
        outcome="ok",
        framework="pytorch",
        family="cnn",
        precision="float32",
        device_kind="RTX 3090",
        device_uids=["GPU-1"],
        predicted=Predicted(device_bytes=GB, raw_device_bytes=GB),
        measured=Measured(peak_device_bytes=round(1.1 * GB)),
        finished_at="2026-01-01T00:00:00Z",
    )
    state, change = learn(empty(), record)
    assert change is not None
    assert change.factor_before == 1.0 < change.factor_after
    assert change.observations == 1
    assert change.cell["device_kind"] == "RTX 3090"
    unchanged, nothing = learn(state, record.model_copy(update={"outcome": "cancelled"}))
    assert nothing is None
    assert unchanged == state


@pytest.mark.parametrize("prefix", [None, "pytorch/cnn"])
def test_reset(prefix: str | None) -> None:
    state = feed(feed(empty(), CNN, [1.2] * 10), MLP, [1.1] * 10)
    forgotten = reset(state, prefix)
    assert correction(forgotten, CNN).factor == 1.0
    assert (correction(forgotten, MLP).factor == 1.0) is (prefix is None)


def test_the_state_fits_into_its_bucket_whoever_floods_it() -> None:
    state = feed(empty(), CNN, [1.2] * 30)
    for number in range(1500):
        key = Key(f"f{number % 90}", "ö" * 90, "float32", "x" * 90, f"{number:064d}")
        state, _ = update(state, key, owner=f"{number:0128d}", raw_bytes=GB, measured_bytes=GB)
    assert len(json.dumps(state)) < 700_000
    assert correction(state, CNN).factor == pytest.approx(1.2, rel=0.05)
    newest, change = update(state, Key("new", "new", None, None), owner="ann", raw_bytes=GB, measured_bytes=2 * GB)
    assert change is not None and correction(newest, Key("new", "new", None, None)).factor > 1


def test_names_of_any_length_are_learned_by_their_beginning() -> None:
    record = RunRecord(
        task_id="t",
        attempt=1,
        owner="ann",
        outcome="ok",
        framework="f" * 500_000,
        family="y" * 500_000,
        device_kind="CPU",
        device_uids=["u"],
        predicted=Predicted(device_bytes=GB),
        measured=Measured(peak_process_bytes=GB),
        finished_at="2026-01-01T00:00:00Z",
    )
    state, change = learn(empty(), record)
    assert change is not None and len(json.dumps(state)) < 5000
