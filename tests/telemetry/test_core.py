"""Whose process is whose, what samples add up to, and that a record is written once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock_telemetry.core.attribution import owners
from oarlock_telemetry.core.follow import (
    KEEP_RECORDED_SECONDS,
    Event,
    Finished,
    Launched,
    Recorded,
    Sampled,
    Save,
    State,
    Write,
    decide,
)
from oarlock_telemetry.core.runs import Facts, Finish, Reading, Tally
from oarlock_telemetry.core.simulation import GROUP_SPREAD, RUN_SPREAD, simulated_bytes, simulated_utilization
from oarlock_telemetry.core.tally import add, close

FACTS = Facts("t", 1, "n", ("GPU-1",), "nvidia", "A100", "process", "7", 7, "2026-01-01T00:00:00Z")
FINISH = Finish("ok", None, "2026-01-01T00:01:00Z", 60.0)


def test_processes_belong_to_the_run_above_them() -> None:
    parents = {1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 21: 20, 30: 31, 31: 30}
    roots = {10: ("a", 1), 20: ("b", 1)}
    assert owners(parents, roots) == {10: ("a", 1), 11: ("a", 1), 12: ("a", 1), 20: ("b", 1), 21: ("b", 1)}
    assert owners(parents, roots, [12, 99]) == {12: ("a", 1)}


def test_samples_add_up() -> None:
    tally = Tally()
    for second, used, busy in ((0, 5, 0.0), (1, 9, 1.0), (2, 7, 0.5)):
        tally = add(tally, Reading(float(second), process_bytes=used, utilization_ratio=busy, power_watts=100.0))
    # A late one changes nothing.
    assert add(tally, Reading(1.5, process_bytes=999)) == tally
    totals = close(FACTS, tally, FINISH)
    assert totals.peak_process_bytes == 9
    assert totals.mean_utilization_ratio == pytest.approx(0.75)
    assert totals.energy_joules == pytest.approx(200.0)
    assert totals.absent == {
        "peak_device_bytes": "no sample had a value",
        "peak_temperature_celsius": "no sample had a value",
    }


def test_what_was_not_seen_has_a_reason() -> None:
    totals = close(FACTS, Tally(), FINISH)
    assert totals.absent["peak_process_bytes"] == "no sample fell into the run (it lasted 60.00 s)"
    gap = add(add(Tally(), Reading(0.0, power_watts=1.0)), Reading(100.0, power_watts=1.0))
    totals = close(FACTS, gap, FINISH)
    assert totals.energy_joules is None and "gap" in totals.absent["energy_joules"]
    told = add(Tally(), Reading(0.0, reasons={"process_bytes": "the driver does not tell"}))
    assert close(FACTS, told, FINISH).absent["peak_process_bytes"] == "the driver does not tell"
    cpu = replace(FACTS, vendor="cpu")
    assert close(cpu, Tally(), replace(FINISH, kernel_peak_bytes=5)).peak_device_bytes == 5
    # On an accelerator the kernel's count is of another memory.
    assert close(FACTS, Tally(), replace(FINISH, kernel_peak_bytes=5)).peak_process_bytes is None


def test_the_simulation_is_what_it_says() -> None:
    facts = replace(FACTS, simulated=True, raw_predicted_bytes=10**9, predicted_bytes=2 * 10**9, family="cnn")
    seen = {n: simulated_bytes(replace(facts, task_id=f"t{n}"), "seed", None) or 0 for n in range(50)}
    assert len(set(seen.values())) > 40
    assert max(seen.values()) / min(seen.values()) < ((1 + RUN_SPREAD) / (1 - RUN_SPREAD)) * 1.0001
    groups = [simulated_bytes(replace(facts, family=f"f{n}"), "seed", None) or 0 for n in range(200)]
    low, high = (1 - GROUP_SPREAD) * (1 - RUN_SPREAD), (1 + GROUP_SPREAD) * (1 + RUN_SPREAD)
    assert low * 10**9 <= min(groups) < 0.95 * 10**9 and 1.05 * 10**9 < max(groups) <= high * 10**9
    assert simulated_bytes(facts, "seed", None) == simulated_bytes(facts, "seed", None)
    assert simulated_bytes(facts, "seed", 10) == 10
    assert simulated_bytes(replace(facts, raw_predicted_bytes=None, predicted_bytes=None), "seed", None) is None
    assert 0.6 <= simulated_utilization(facts, "seed") <= 0.95


EVENTS = st.lists(
    st.sampled_from(
        [
            Launched(FACTS),
            Finished(FACTS.key, FINISH),
            Finished(FACTS.key, FINISH, FACTS),
            Recorded(FACTS.key),
            Sampled({FACTS.key: Reading(1.0, process_bytes=5)}),
            Sampled({("other", 1): Reading(1.0)}),
        ]
    ),
    max_size=15,
)


@given(EVENTS)
def test_a_record_that_was_stored_is_never_written_again(events: list[Event]) -> None:
    state, recorded = State(), False
    for now, event in enumerate(events):
        before = state.runs.get(FACTS.key)
        state, effects = decide(state, event, float(now))
        writes = [effect for effect in effects if isinstance(effect, Write)]
        assert not (recorded and writes)
        assert all(write.run.finish is not None for write in writes)
        recorded = recorded or (isinstance(event, Recorded) and before is not None)
        if isinstance(event, Finished) and not recorded and (before is not None or event.facts is not None):
            assert writes


def test_rising_peaks_are_written_down_and_old_records_forgotten() -> None:
    state, _ = decide(State(), Launched(FACTS), 0.0)
    state, effects = decide(state, Sampled({FACTS.key: Reading(1.0, process_bytes=1000)}), 1.0)
    assert effects == [Save()]
    state, effects = decide(state, Sampled({FACTS.key: Reading(2.0, process_bytes=1005)}), 2.0)
    assert effects == []
    ends: list[Event] = [Finished(FACTS.key, FINISH), Recorded(FACTS.key)]
    for event in ends:
        state, _ = decide(state, event, 3.0)
    other = replace(FACTS, task_id="u")
    late = 4.0 + KEEP_RECORDED_SECONDS
    life: list[Event] = [Launched(other), Finished(other.key, FINISH), Recorded(other.key)]
    for event in life:
        state, _ = decide(state, event, late)
    assert set(state.runs) == {other.key}
