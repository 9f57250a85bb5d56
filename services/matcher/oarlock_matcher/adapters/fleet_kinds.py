"""From inventory entries to the core's nodes and devices; and which of the fleet's kinds a name means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from oarlock_accelerators import Kind, all_kinds, find_kind, means
from oarlock_matcher.core.devices import Device, DeviceModel, Health, Node
from oarlock_schemas import DeviceState

CPU_VENDOR = "cpu"


def nodes_of(states: Iterable[DeviceState], cordoned: Collection[str] = ()) -> list[Node]:
    """The nodes that these devices make up, by name. ``cordoned``: uids and nodes that operators keep tasks off."""
    grouped: dict[str, list[DeviceState]] = {}
    for state in states:
        grouped.setdefault(state.node, []).append(state)
    return [_node(name, sorted(devices, key=lambda d: d.uid), cordoned) for name, devices in sorted(grouped.items())]


def _node(name: str, states: list[DeviceState], cordoned: Collection[str]) -> Node:
    first = states[0]
    return Node(
        name=name,
        site=first.site,
        cpu_milli=first.node_cpu_milli,
        memory_bytes=first.node_memory_bytes,
        devices=tuple(_device(state, cordoned) for state in states),
    )


def _device(state: DeviceState, cordoned: Collection[str]) -> Device:
    kind = find_kind(state.kind, vendor=state.vendor)
    return Device(
        uid=state.uid,
        node=state.node,
        model=device_model(state.kind, state.vendor, state.memory_bytes, state.price_per_hour, state.simulated),
        usable_bytes=_usable(kind, state.memory_bytes),
        health=Health.OK if state.healthy else Health.FAILED,
        cordoned=state.cordoned or state.uid in cordoned or state.node in cordoned,
        link_group=state.link_group,
    )


def _usable(kind: Kind | None, memory_bytes: int) -> int | None:
    """What an idle device gives a task: all but what the driver keeps, which is the same whatever the memory's size."""
    if kind is None or kind.vendor == CPU_VENDOR or kind.usable_bytes is None or kind.memory_bytes is None:
        return None
    return max(0, memory_bytes - max(0, kind.memory_bytes - kind.usable_bytes))


@lru_cache(maxsize=4096)
def device_model(name: str, vendor: str, memory_bytes: int, price: float | None, simulated: bool) -> DeviceModel:
    """What devices of a kind have in common; of a kind that the catalogue does not know, what is given here."""
    kind = find_kind(name, vendor=vendor)
    if kind is None:
        return DeviceModel(name, vendor, memory_bytes, price_per_hour=price, simulated=simulated)
    peak = kind.peak
    return DeviceModel(
        kind=name,
        vendor=vendor,
        memory_bytes=memory_bytes,
        fp32_flops=peak.fp32_flops_per_second,
        fp16_flops=peak.fp16_flops_per_second,
        bf16_flops=peak.bf16_flops_per_second,
        bandwidth_bytes_per_second=kind.memory_bandwidth_bytes_per_second,
        link=kind.link.kind if kind.link else None,
        price_per_hour=price if price is not None else kind.price_per_hour,
        tdp_watts=kind.tdp_watts,
        domestic=kind.domestic,
        precisions=_precisions(kind),
        simulated=simulated,
    )


def _precisions(kind: Kind) -> frozenset[str] | None:
    """What the kind computes in; None (which admits) where its data sheet is not known."""
    if kind.bf16_supported is None:
        return None
    return frozenset({"fp32", "fp16", "bf16"} if kind.bf16_supported else {"fp32", "fp16"})


def kinds_meant(names: Iterable[str], fleet: Mapping[str, str]) -> tuple[str, ...]:
    """The fleet's kinds (name → vendor) that each of ``names`` means, in the order of ``names``.

    A name that means none of them stays as its canonical kind, so that a device of it that joins later is meant.
    """
    found: dict[str, None] = {}
    for name in names:
        meant = [kind for kind in sorted(fleet) if kind == name or _means(name, kind)]
        for kind in meant or [canonical(name)]:
            found[kind] = None
    return tuple(found)


def every_kind_meant(names: Iterable[str]) -> frozenset[str]:
    """All kinds of the catalogue that any of ``names`` means, and the names that mean none of them."""
    meant = {name: {kind.name for kind in all_kinds() if kind.name == name or means(name, kind)} for name in names}
    return frozenset(kind for name, kinds in meant.items() for kind in kinds or {canonical(name)})


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The kind's canonical name; the name itself when it is not known."""
    kind = find_kind(name)
    return kind.name if kind is not None else name


@lru_cache(maxsize=16384)
def _means(name: str, kind_name: str) -> bool:
    kind = find_kind(kind_name)
    return kind is not None and means(name, kind)
