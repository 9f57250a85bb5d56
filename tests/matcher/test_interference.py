"""Sharers slow each other: how much is predicted, and what the matcher makes of it."""

from __future__ import annotations

import pytest

from oarlock_matcher.core.devices import Share
from oarlock_matcher.core.interference import speed_together
from oarlock_matcher.core.lease_book import holders
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_schemas import Lease, LeaseBook

from .fleets import RTX_3090, Driver, need, node


def test_no_slowdown_until_the_device_is_busy_all_the_time() -> None:
    assert speed_together([0, 400, 1000]).tolist() == [1.0, 1.0, 1.0]
    assert speed_together(2000).item() == pytest.approx(0.53)
    assert speed_together(9000).item() == 0.0


def test_a_calmer_device_is_preferred_and_a_crowded_one_refused() -> None:
    driver = Driver(PolicySettings(least_shared_speed=0.8)).fleet(node("r", RTX_3090, 2))
    shared = {"compute_milli": 300, "busy_milli": 800}
    first = driver.place(need("one", 2, **shared)).shares[0].device_uid
    second = driver.place(need("two", 2, **shared)).shares[0].device_uid
    assert second != first, "two jobs of 80 % on one device would run at 72 %"
    waits = driver.queue(need("three", 2, **shared))
    assert {reason.code for reason in waits.reasons} == {"interference"}
    assert "72%" in waits.reasons[0].sentence
    calm = driver.place(need("calm", 2, compute_milli=300, busy_milli=200))
    assert calm.shares[0].device_uid in (first, second)
    assert "interference" in calm.candidates[0].parts
    assert driver.finish("one") == ["three"]


def test_the_limit_is_the_operators() -> None:
    driver = Driver(PolicySettings(least_shared_speed=0.5)).fleet(node("r", RTX_3090, 1))
    for name in ("one", "two"):
        driver.place(need(name, 2, compute_milli=300, busy_milli=900))


def test_a_lease_says_how_busy_its_task_keeps_the_device() -> None:
    lease = Lease(task_id="t", attempt=1, bytes=5, compute_milli=250, busy_milli=600, since="2026-12-01T00:00:00Z")
    ((task_id, share),) = holders(LeaseBook(device_uid="GPU-a", leases=[lease]), "n1")
    assert (task_id, share) == ("t", Share("GPU-a", "n1", 5, 250, exclusive=False, busy_milli=600))
