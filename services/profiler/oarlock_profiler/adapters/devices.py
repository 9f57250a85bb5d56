"""Device kinds of the accelerators' catalogue, as the reader's core wants them."""

from __future__ import annotations

from oarlock_accelerators import Kind, all_kinds, find_kind
from oarlock_profiler.core.devices import DeviceSpec


def spec_of(kind: Kind, *, price_per_hour: float | None = None, memory_bytes: int | None = None) -> DeviceSpec | None:
    """``kind`` for the core, with what one fleet adds (price, reported memory); None when its memory is unknown."""
    memory = memory_bytes or kind.memory_bytes
    if memory is None:
        return None
    return DeviceSpec(
        name=kind.name,
        vendor=kind.vendor,
        memory_bytes=memory,
        usable_bytes=kind.usable_bytes if memory_bytes in (None, kind.memory_bytes) else None,
        arch=kind.arch,
        bandwidth_bytes_per_second=kind.memory_bandwidth_bytes_per_second,
        fp32_flops_per_second=kind.peak.fp32_flops_per_second,
        tf32_flops_per_second=kind.peak.tf32_flops_per_second,
        fp16_flops_per_second=kind.peak.fp16_flops_per_second,
        bf16_flops_per_second=kind.peak.bf16_flops_per_second,
        bf16_supported=bool(kind.bf16_supported),
        link_kind=kind.link.kind,
        link_bytes_per_second=kind.link.bytes_per_second,
        context_bytes=kind.context_bytes,
        context_source=kind.context_source,
        price_per_hour=price_per_hour if price_per_hour is not None else kind.price_per_hour,
    )


def spec_named(name: str, *, memory_bytes: int | None = None, price_per_hour: float | None = None) -> DeviceSpec | None:
    """The kind that ``name`` means (aliases and spelling as the catalogue accepts them), or None when there is none."""
    kind = find_kind(name, memory_bytes=memory_bytes)
    if kind is None:
        return None
    return spec_of(kind, memory_bytes=memory_bytes, price_per_hour=price_per_hour)


def catalogue() -> list[DeviceSpec]:
    """Every kind whose memory is known."""
    return [spec for kind in all_kinds() if (spec := spec_of(kind)) is not None]
