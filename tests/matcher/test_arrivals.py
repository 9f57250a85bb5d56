"""A generated day on a small mixed fleet: deterministic, within quotas, nobody left behind, priorities first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from benchmarks.placement.arrivals import (
    DECLARES,
    QUOTA_DEVICES,
    STEP_FACTOR,
    compare,
    first_in_first_out,
    most_at_once,
    seed_fleet,
)

from oarlock_matcher.simulator.generated import Habits, philly_like

DAY = Habits(days=0.7, load=1.0, median_seconds=1200.0, declares=DECLARES)


def test_the_workload_is_the_seeds_and_asks_for_the_load() -> None:
    nodes = seed_fleet()
    jobs = philly_like(nodes, STEP_FACTOR, replace(DAY, days=5.0), 3)
    assert jobs == philly_like(nodes, STEP_FACTOR, replace(DAY, days=5.0), 3)
    assert jobs != philly_like(nodes, STEP_FACTOR, replace(DAY, days=5.0), 4)
    asked = sum((declared.job.duration_seconds or 0.0) * int(declared.job.demand.device_count) for declared in jobs)
    assert 0.8 < asked / (24 * 5 * 86_400) < 1.2
    predicted = [declared.job.demand.expected_seconds / declared.job.duration_seconds for declared in jobs]  # type: ignore[operator]
    assert 0.25 < float(np.std(np.log(predicted))) < 0.35


def test_first_in_first_out_never_overtakes_within_a_kind() -> None:
    nodes = seed_fleet()
    jobs = philly_like(nodes, STEP_FACTOR, DAY, 1)
    runs = first_in_first_out(nodes, jobs)
    assert len(runs) == len(jobs)
    for kind in STEP_FACTOR:
        assert [run.job for run in runs if run.kind == kind] == sorted(run.job for run in runs if run.kind == kind)
    assert all(run.kind == jobs[run.job].declared_kind for run in runs)
    assert most_at_once(jobs, runs) <= 24


def test_predicted_kinds_keep_more_devices_busy_and_waits_shorter() -> None:
    found = compare(1, DAY)
    assert found == compare(1, DAY)
    before, after = found["fifo_declared_kinds"], found["rule_based"]
    assert after.busy_percent > before.busy_percent + 15.0
    assert after.wait_mean < before.wait_mean / 5
    assert after.wait_longest < before.wait_longest
    assert after.never_started == 0
    assert after.most_devices_of_one_owner <= QUOTA_DEVICES
