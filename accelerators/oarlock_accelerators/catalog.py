"""Finds the kind of device that a person or a tool means by a name.

A name is reduced to a key: lower case, without vendor words, separators, memory size and filler (``V100-32GB``,
``Tesla V100-PCIE-32GB`` and ``v100 pcie 32 gb`` differ only in what they leave open). The memory size, when the name
has one, must agree with the kind's. A name that several kinds share (``A100``, ``V100-32GB``) is resolved to the one
with the least memory, then the slowest memory, then the lowest peak rate, then the first in the vendor's table: an
estimate made for it never promises what a sibling could not hold. The resolution names all candidates, so that a
wish for "an A100" can accept any. A name exactly as a vendor's tool prints it (``NVIDIA H100 80GB HBM3``) leaves
nothing open; when it is cut short (``H100``) the kind whose tool name was cut goes first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from oarlock_accelerators.discovery import all_kinds, vendors
from oarlock_accelerators.model import Kind

_MAX_NAME = 200
_GIB = 1024**3
_MEMORY_TOLERANCE = 0.16
"""Tools and labels disagree by up to this share of the label: 80 GB is 79.6 GiB, 24 GB is 22.5 GiB with ECC."""

_MEMORY = re.compile(r"(?<![a-z0-9])(\d{1,4})\s*(?:gib|gb|g)(?![a-z0-9])")
_SLICE = re.compile(r"\bmig\b.*$")
_FORM_NUMBER = re.compile(r"\bsxm\d?\b")
_FORM_FACTORS = ("pcie", "sxm", "nvl", "oam")
# fmt: off
_FILLER = frozenset((
    "gpu", "npu", "xpu", "dcu", "gcu", "mlu", "card", "accelerator", "graphics", "generation", "edition", "series",
    "hbm", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr6x", "simulated",
))
# fmt: on
_OPTIONAL_PREFIX = ("rtx", "gtx")


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a name was taken to mean."""

    name: str
    kind: Kind | None
    """``None``: nothing is called so."""
    candidates: tuple[Kind, ...] = ()
    """Every kind the name could mean, ``kind`` first."""
    note: str | None = None
    """A sentence for a person when the name was ambiguous or unknown."""
    suggestions: tuple[str, ...] = ()
    """Names near an unknown one, nearest first."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether more than one kind is called so."""
        return len(self.candidates) > 1


@dataclass(frozen=True, slots=True)
class _Key:
    core: str
    memory_bytes: int | None


def find_kind(name: str, *, memory_bytes: int | None = None, vendor: str | None = None) -> Kind | None:
    """The kind called ``name``, or ``None``. See ``resolve_kind`` for why."""
    return resolve_kind(name, memory_bytes=memory_bytes, vendor=vendor).kind


def resolve_kind(name: str, *, memory_bytes: int | None = None, vendor: str | None = None) -> Resolution:
    """Resolve ``name``; ``memory_bytes`` (what the tool reports) settles names that differ only in memory.

    ``vendor`` restricts the search. A reported memory that fits none of the candidates is ignored, since partitioning
    and misconfiguration change it; a memory size written in the name itself is never ignored.
    """
    key = _key(name[:_MAX_NAME])
    exact = [k for k in _exact_names().get(_letters(name[:_MAX_NAME]), ()) if vendor is None or k.vendor == vendor]
    found = exact or [k for k in _index().get(key.core, ()) if vendor is None or k.vendor == vendor]
    if key.memory_bytes is not None and not exact:
        fitting = [k for k in found if _near(k.memory_bytes, key.memory_bytes)]
        if found and not fitting:
            sizes = ", ".join(sorted({_gib(k) for k in found}))
            return Resolution(
                name,
                None,
                note=f"{name!r}: there is no such device with that much memory; known: {sizes}",
                suggestions=tuple(k.name for k in found),
            )
        found = fitting
    if memory_bytes is not None and len(found) > 1:
        found = _nearest(found, memory_bytes)
    if not found:
        return _unknown(name, key.core, vendor)
    ranked = _ranked(found, key)
    if len(ranked) == 1:
        return Resolution(name, ranked[0], tuple(ranked))
    others = ", ".join(k.name for k in ranked[1:])
    note = f"{name!r} could also be {others}; taken as {ranked[0].name}"
    return Resolution(name, ranked[0], tuple(ranked), note)


def means(name: str, kind: Kind) -> bool:
    """Whether ``kind`` is one of the kinds that ``name`` could mean (so "A100" accepts every A100)."""
    return any(candidate.name == kind.name for candidate in resolve_kind(name).candidates)


def _key(name: str) -> _Key:
    text = name.lower().replace("pci-e", "pcie").replace("pci express", "pcie").replace("_", " ")
    text = _SLICE.sub("", text)
    memory = _MEMORY.search(text.replace("-", " "))
    text = _MEMORY.sub(" ", text.replace("-", " "))
    text = re.sub(r"[^a-z0-9.]+", " ", text)
    text = _FORM_NUMBER.sub("sxm", text)
    words = [w for w in text.split() if w not in _FILLER and w not in _vendor_words()]
    core = "".join(words).replace(".", "")
    if not core:  # the words were all filler: the name is the vendor's own ("CPU")
        core = _letters(name)
    for word in sorted(_vendor_words(), key=len, reverse=True):
        # "Ascend910B3", "HuaweiAscend910": the vendor's word written without a space
        if len(word) > 3 and core.startswith(word) and len(core) > len(word):
            core = core.removeprefix(word)
    return _Key(core, None if memory is None else int(memory.group(1)) * _GIB)


@cache
def _vendor_words() -> frozenset[str]:
    return frozenset(word.lower() for vendor in vendors() for word in (vendor.name, *vendor.words))


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _exact_names() -> dict[str, tuple[Kind, ...]]:
    """Full names as catalogue and vendors' tools write them: these leave nothing open."""
    names: dict[str, list[Kind]] = {}
    for kind in all_kinds():
        for spelling in dict.fromkeys(_letters(n) for n in (kind.name, *kind.aliases)):
            names.setdefault(spelling, []).append(kind)
    return {spelling: tuple(kinds) for spelling, kinds in names.items()}


@cache
def _index() -> dict[str, tuple[Kind, ...]]:
    index: dict[str, dict[str, Kind]] = {}
    for kind in all_kinds():
        for core in _cores(kind):
            index.setdefault(core, {})[kind.name] = kind
    return {core: tuple(kinds.values()) for core, kinds in index.items()}


def _cores(kind: Kind) -> set[str]:
    cores = {_key(n).core for n in (kind.name, *kind.aliases, *kind.families)}
    for core in tuple(cores):
        for form in _FORM_FACTORS:
            if core.endswith(form) and len(core) > len(form):
                cores.add(core.removesuffix(form))
    for core in tuple(cores):
        for prefix in _OPTIONAL_PREFIX:
            if core.startswith(prefix) and core.removeprefix(prefix)[:1].isdigit():
                cores.add(core.removeprefix(prefix))
    return cores


def _ranked(found: list[Kind], key: _Key) -> list[Kind]:
    """The default first: an exact vendor name, then by the rule of the module's docstring."""

    def rank(kind: Kind) -> tuple[bool, int, float, float]:
        return (
            # the exact name of a tool ("NVIDIA H200") goes before a family shortened from another ("H200 NVL")
            key.core not in {_key(n).core for n in (kind.name, *kind.aliases)},
            kind.memory_bytes or 0,
            kind.memory_bandwidth_bytes_per_second or 0.0,
            kind.peak.fp16_flops_per_second or kind.peak.fp32_flops_per_second or 0.0,
        )

    return sorted(found, key=rank)


def _near(known: int | None, wanted: int) -> bool:
    return known is not None and abs(known - wanted) <= wanted * _MEMORY_TOLERANCE


def _nearest(found: list[Kind], memory_bytes: int) -> list[Kind]:
    best = min(abs((k.memory_bytes or 0) - memory_bytes) for k in found)
    if best > memory_bytes * _MEMORY_TOLERANCE:
        return found
    return [k for k in found if abs((k.memory_bytes or 0) - memory_bytes) == best]


def _unknown(name: str, core: str, vendor: str | None) -> Resolution:
    by_core = {c: k for c, kinds in _index().items() for k in kinds if vendor is None or k.vendor == vendor}
    near = _unique(by_core[c].name for c in difflib.get_close_matches(core, by_core, n=6, cutoff=0.6))[:3]
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return Resolution(name, None, note=f"no device kind is called {name[:_MAX_NAME]!r}{hint}", suggestions=near)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _gib(kind: Kind) -> str:
    return "unknown" if kind.memory_bytes is None else f"{round(kind.memory_bytes / _GIB)} GB"
