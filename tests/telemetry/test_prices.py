"""What an hour of a device costs: from the fleet file, else from telemetry's settings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from oarlock_accelerators import Device, Kind, find_kind
from oarlock_telemetry.handlers.entries import device_state
from oarlock_telemetry.ports import Node
from oarlock_telemetry.settings import TelemetrySettings

NODE = Node("s1", "n1", None, None, ())


def price(kind: Kind | None, prices: dict[str, float]) -> float | None:
    device = Device("GPU-1", "nvidia", "some GPU", kind, 2**30)
    state = device_state(NODE, device, None, "process", "2026-01-01T00:00:00Z", prices)
    assert state is not None
    return state.price_per_hour


def test_a_price_is_found_by_the_kinds_own_name_first_then_by_one_that_means_it() -> None:
    a100, rtx = find_kind("A100-SXM4-40GB"), find_kind("RTX 3090")
    assert a100 is not None
    assert price(a100, {"A100": 2.5, "A100-SXM4-40GB": 2.0}) == 2.0
    assert price(a100, {"RTX 3090": 0.4, "A100": 2.5}) == 2.5
    assert price(rtx, {"A100": 2.5}) is None
    assert price(None, {"A100": 2.5}) is None
    assert price(replace(a100, price_per_hour=1.0), {"A100": 2.5}) == 1.0


def test_prices_are_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARLOCK_PRICES", '{"A100": 2.5}')
    assert TelemetrySettings().prices == {"A100": 2.5}
    monkeypatch.setenv("OARLOCK_PRICES", '{"A100": -1}')
    with pytest.raises(ValidationError, match="the price of A100"):
        TelemetrySettings()
