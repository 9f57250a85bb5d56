"""What the reader must know of a device kind: memory, speeds and link. Adapters fill it from the fleet's catalogue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One device kind; None where a figure is not known.

    Rates are dense peak floating-point operations per second by number format (``fp32`` is the vector or plain matrix
    rate, ``tf32`` the tensor-core rate for float32 inputs). ``link_bytes_per_second`` is the fastest link to a
    neighbour, both directions together, as data sheets give it. ``usable_bytes`` is what a process can really get.
    """

    name: str
    vendor: str
    memory_bytes: int
    usable_bytes: int | None = None
    arch: str | None = None
    bandwidth_bytes_per_second: float | None = None
    fp32_flops_per_second: float | None = None
    tf32_flops_per_second: float | None = None
    fp16_flops_per_second: float | None = None
    bf16_flops_per_second: float | None = None
    bf16_supported: bool = False
    link_kind: str | None = None
    link_bytes_per_second: float | None = None
    context_bytes: int | None = None
    context_source: str | None = None
    price_per_hour: float | None = None

    @property
    def capacity_bytes(self) -> int:
        """What one process can hold: the usable bytes when known, else the total."""
        return self.usable_bytes or self.memory_bytes

    @property
    def compute_capability(self) -> int | None:
        """NVIDIA's compute capability times ten (``sm_86`` is 86), or None for another vendor."""
        if self.arch and self.arch.startswith("sm_") and self.arch[3:].isdigit():
            return int(self.arch[3:])
        return None

    @property
    def is_host(self) -> bool:
        """Whether it is main memory and processor cores, not an accelerator."""
        return self.vendor == "cpu"
