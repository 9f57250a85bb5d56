"""Device kinds of the catalogue, as the reader's core wants them."""

from __future__ import annotations

import pytest

from oarlock_profiler.adapters.devices import catalogue, spec_named
from oarlock_profiler.core.memory.context import context_of


@pytest.mark.parametrize("name", ["A100-SXM4-40GB", "V100-32GB", "RTX_3090", "Tesla V100-PCIE-32GB", "Ascend 910B2"])
def test_names_as_people_write_them(name: str) -> None:
    spec = spec_named(name)
    assert spec is not None
    assert spec.memory_bytes > 16 * 2**30


def test_an_unheard_of_name_is_none() -> None:
    assert spec_named("Abacus 9000") is None


def test_every_accelerator_of_the_catalogue_has_a_context_with_a_source() -> None:
    kinds = [spec for spec in catalogue() if not spec.is_host]
    assert len(kinds) > 60
    for spec in kinds:
        context = context_of(spec, "pytorch")
        assert 0 < context.bytes.low <= context.bytes.value <= context.bytes.high
        assert context.source
        if spec.vendor != "nvidia":
            assert context.assumed, f"{spec.name}: no context of this vendor was found by anyone"


def test_a_measured_kind_is_not_assumed() -> None:
    t4 = spec_named("T4")
    assert t4 is not None
    assert context_of(t4, "pytorch").bytes.value == 135 * 2**20
    assert not context_of(t4, "pytorch").assumed
