"""Writes one row of a vendor's table of device kinds in the units that data sheets use."""

from __future__ import annotations

from oarlock_accelerators.model import MIB, Kind, Link, PeakFlops

_GIGA = 1e9
_TERA = 1e12


def kind(
    name: str,
    vendor: str,
    memory_mib: int,
    *,
    aliases: tuple[str, ...] = (),
    families: tuple[str, ...] = (),
    arch: str | None = None,
    bandwidth_gb: float | None = None,
    tflops: tuple[float | None, float | None, float | None, float | None] = (None, None, None, None),
    bf16: bool = False,
    link: str | None = None,
    link_gb: float | None = None,
    watts: int | None = None,
    domestic: bool = False,
    year: int | None = None,
    usable_bytes: int | None = None,
    context: tuple[int, str] | None = None,
    idle_mib: tuple[int, str] | None = None,
    operators: str | None = None,
    source: str,
    notes: str = "",
) -> Kind:
    """A ``Kind`` from MiB, GB/s (decimal), dense TFLOPS ``(fp32, tf32, fp16, bf16)`` and watts.

    ``context`` is bytes and its source, ``idle_mib`` is MiB and its source.
    """
    fp32, tf32, fp16, bf16_rate = (None if rate is None else rate * _TERA for rate in tflops)
    return Kind(
        name=name,
        vendor=vendor,
        memory_bytes=memory_mib * MIB,
        aliases=aliases,
        families=families,
        arch=arch,
        usable_bytes=usable_bytes,
        memory_bandwidth_bytes_per_second=None if bandwidth_gb is None else bandwidth_gb * _GIGA,
        peak=PeakFlops(fp32, tf32, fp16, bf16_rate),
        bf16_supported=bf16,
        link=Link(link, None if link_gb is None else link_gb * _GIGA),
        tdp_watts=watts,
        domestic=domestic,
        year=year,
        context_bytes=None if context is None else context[0],
        context_source=None if context is None else context[1],
        idle_bytes=None if idle_mib is None else idle_mib[0] * MIB,
        idle_source=None if idle_mib is None else idle_mib[1],
        operators=operators,
        source=source,
        notes=notes,
    )
