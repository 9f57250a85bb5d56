"""The worked example of the documentation is a vendor that works."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import pytest

from oarlock_accelerators import Health

from .conftest import ROOT

if TYPE_CHECKING:
    from oarlock_accelerators.tool_vendor import ToolVendor

PAGE = (ROOT / "docs" / "add-an-accelerator.md").read_text()
MIB = 2**20


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture
def acme() -> Iterator[ToolVendor]:
    """The vendor of the page, on a machine whose tool prints what the page shows."""
    module = types.ModuleType("acme_of_the_page")
    sys.modules[module.__name__] = module
    exec(compile(block("python"), "docs/add-an-accelerator.md", "exec"), module.__dict__)

    def tool(command: Sequence[str]) -> str:
        assert tuple(command) == ("acme-smi", "--csv")
        return block("text")

    yield cast("ToolVendor", type(module.VENDOR)(tool))
    del sys.modules[module.__name__]


def test_devices_have_stable_ids_and_sizes(acme: ToolVendor) -> None:
    inventory = acme.probe()
    assert (inventory.reason, inventory.problems) == (None, ())
    assert [device.uid for device in inventory.devices] == ["ACME-7f3a", "ACME-90bd"]
    assert {device.total_bytes for device in inventory.devices} == {65536 * MIB}


def test_a_sample_has_what_the_tool_shows_and_a_reason_for_what_it_does_not(acme: ToolVendor) -> None:
    acme.probe()
    snapshot = acme.sample()
    busy, idle = snapshot.samples
    assert (busy.used_bytes, busy.utilization_ratio, busy.temperature_celsius) == (2048 * MIB, 0.37, 51)
    assert idle.utilization_ratio is None and "utilization_ratio" in idle.absent
    assert busy.health is Health.OK and idle.health is Health.OK
    assert snapshot.process_bytes("ACME-7f3a") == {4121: 1800 * MIB}


def test_a_device_is_handed_over_alone(acme: ToolVendor) -> None:
    second = acme.probe().devices[1:]
    container = acme.container(second)
    assert [node.host_path for node in container.device_nodes] == ["/dev/acme1", "/dev/acmectl"]
    assert container.kubernetes_resources == {"acme.example/accelerator": 1}
    assert acme.process(second).environment["ACME_VISIBLE_DEVICES"] == "1"


def test_the_page_names_what_it_says_it_needs(acme: ToolVendor) -> None:
    assert all(kind.source and kind.vendor == acme.name for kind in acme.kinds)
    assert acme.kinds[0].peak.for_precision("bf16") == 320e12
