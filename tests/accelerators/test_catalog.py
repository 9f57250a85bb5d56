"""Names that people and tools write, and the kinds they mean."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock_accelerators import Kind, all_kinds, find_kind, means, resolve_kind, supported_ops, vendor, vendors
from oarlock_accelerators.operators import operator_table

_GIB = 1024**3


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("V100-32GB", "V100-PCIE-32GB"),
        ("Tesla V100-PCIE-32GB", "V100-PCIE-32GB"),
        ("RTX_3090", "RTX 3090"),
        ("rtx3090", "RTX 3090"),
        ("3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 3090 24GB", "RTX 3090"),
        ("A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100-SXM4-40GB"),
        ("a100 sxm 80g", "A100-SXM4-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"),
        ("H200", "H200 SXM"),
        ("Ascend 910", "Ascend 910A"),
        ("Ascend910B3", "Ascend 910B3"),
        ("HUAWEI Ascend 910B", "Ascend 910B4"),
        ("P800", "Kunlun P800"),
        ("K100_AI", "DCU K100-AI"),
        ("mlu370x8", "MLU370-X8"),
        ("MXC500", "MetaX C500"),
        ("HL-225", "Gaudi 2"),
        ("cpu", "CPU"),
    ],
)
def test_name_is_understood(written: str, meant: str) -> None:
    kind = find_kind(written)
    assert kind is not None
    assert kind.name == meant


@pytest.mark.parametrize(
    ("written", "count"), [("A100", 4), ("V100", 4), ("V100-32GB", 2), ("H100", 3), ("910B", 5), ("Ascend 910", 2)]
)
def test_ambiguous_name_says_so_and_takes_the_smallest(written: str, count: int) -> None:
    resolution = resolve_kind(written)
    assert resolution.is_ambiguous
    assert len(resolution.candidates) == count
    assert resolution.kind == resolution.candidates[0]
    assert resolution.note is not None
    assert "could also be" in resolution.note
    assert resolution.kind.memory_bytes == min(k.memory_bytes or 0 for k in resolution.candidates)


def test_wish_for_a_family_accepts_each_of_it() -> None:
    a100 = [kind for kind in all_kinds() if kind.name.startswith("A100")]
    assert len(a100) == 4
    assert all(means("A100", kind) for kind in a100)
    assert means("A100-80GB", find_kind("A100-SXM4-80GB") or a100[0])
    assert not means("A100-80GB", find_kind("A100-SXM4-40GB") or a100[0])
    assert not means("V100", a100[0])


def test_reported_memory_settles_names_that_differ_only_in_it() -> None:
    big = find_kind("Ascend 310P3", memory_bytes=44280 * 1024**2)
    small = find_kind("Ascend 310P3", memory_bytes=21527 * 1024**2)
    assert (big and big.name, small and small.name) == ("Ascend 310P3-44GB", "Ascend 310P3-24GB")
    two_dies = find_kind("Ascend910", memory_bytes=64 * _GIB)
    assert two_dies is not None
    assert two_dies.name == "Ascend 910C"


def test_memory_in_the_name_is_never_ignored() -> None:
    resolution = resolve_kind("RTX 3090 48GB")
    assert resolution.kind is None
    assert resolution.suggestions == ("RTX 3090",)
    assert resolution.note is not None
    assert "24 GB" in resolution.note


def test_unknown_name_suggests_the_nearest() -> None:
    resolution = resolve_kind("RTX 3009")
    assert resolution.kind is None
    assert "RTX 3090" in resolution.suggestions
    assert resolution.note is not None
    assert "did you mean" in resolution.note
    assert resolve_kind("abacus").suggestions == ()


def _names() -> list[tuple[str, Kind]]:
    return [(name, kind) for kind in all_kinds() for name in (kind.name, *kind.aliases)]


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(_names()),
    st.sampled_from(["-", "_", " ", "  "]),
    st.sampled_from([str.lower, str.upper, str.title, str]),
    st.booleans(),
)
def test_spelling_of_a_name_does_not_matter(
    named: tuple[str, Kind], separator: str, case: type[str], with_vendor: bool
) -> None:
    name, kind = named
    written = case(name.replace("-", separator).replace("_", separator).replace(" ", separator))
    if with_vendor and kind.vendor != "cpu":
        written = f"{vendor(kind.vendor).words[0].upper()}{separator}{written}"
    resolution = resolve_kind(written)
    assert kind.name in [candidate.name for candidate in resolution.candidates], resolution.note


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400))
def test_any_text_gets_an_answer(text: str) -> None:
    resolution = resolve_kind(text)
    assert (resolution.kind is None) == (resolution.candidates == ())
    assert resolution.kind is not None or resolution.note


def test_names_and_numbers_of_the_table_are_sound() -> None:
    kinds = all_kinds()
    assert len({kind.name for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert kind.vendor in {each.name for each in vendors()}
        assert kind.source, kind.name
        assert (kind.context_bytes is None) == (kind.context_source is None)
        assert (kind.idle_bytes is None) == (kind.idle_source is None)
        if kind.memory_bytes is not None:
            assert 4 * _GIB < kind.memory_bytes < 300 * _GIB, kind.name
            assert kind.usable_bytes is None or 0.85 < kind.usable_bytes / kind.memory_bytes <= 1, kind.name
        rates = [r for r in dataclasses.astuple(kind.peak) if r is not None]
        assert all(1e12 < rate < 1e16 for rate in rates), kind.name
        bandwidth = kind.memory_bandwidth_bytes_per_second
        assert bandwidth is None or 1e11 < bandwidth < 1e13, kind.name
        assert kind.price_per_hour is None


def test_every_file_of_the_package_is_a_vendor() -> None:
    assert {v.name for v in vendors()} == {
        "amd", "ascend", "cambricon", "cpu", "enflame", "gaudi", "hygon", "iluvatar", "kunlunxin", "metax",
        "moorethreads", "nvidia", "simulated",
    }  # fmt: skip
    with pytest.raises(KeyError, match="there are amd, ascend"):
        vendor("acme")


def test_operator_tables() -> None:
    npu = supported_ops(find_kind("Ascend 910B3") or all_kinds()[0])
    assert npu is not None
    assert npu.supports("softmax")
    assert npu.supports("adam", "bfloat16")
    assert not npu.supports("adagrad", "float16")
    assert not npu.supports("no_such_operator")
    assert npu.commit == "77090b642b (2024-10-18)"
    nvidia = supported_ops(find_kind("T4") or all_kinds()[0])
    assert nvidia is not None
    assert nvidia.everything
    assert nvidia.supports("anything", "float8")
    assert supported_ops(find_kind("MI300X") or all_kinds()[0]) is None  # unknown is not "nothing"
    for kind in all_kinds():
        table = supported_ops(kind)
        assert table is None or table.everything or len(table.dtypes) > 50
    assert len(operator_table("sdaa").dtypes) > 200
    with pytest.raises(KeyError):
        operator_table("../model")
