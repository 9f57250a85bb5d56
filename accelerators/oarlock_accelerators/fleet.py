"""Fleet files: nodes and devices written down in YAML, for simulation, planning and prices.

    fleet: example
    currency: USD
    nodes:
      - name: a100-1
        site: lab
        cpu_cores: 64
        memory: 512GiB
        devices:
          - {kind: A100-SXM4-40GB, count: 8, price_per_hour: 1.3}

Every device of a fleet file is simulated and says so. A fault is reported with file, line, what and how to mend it.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from oarlock_accelerators.catalog import resolve_kind
from oarlock_accelerators.model import Device, Kind

_MAX_FILE_BYTES = 4 * 1024**2
_MAX_DEVICES = 200_000
_MAX_GROUPS = 1_000
_NAMESPACE = uuid.UUID("6a1cbe5a-7d0e-5f0b-9d7b-0a41c0ffee00")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?i?B?)\Z", re.IGNORECASE)
_UNITS = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip


class FleetError(ValueError):
    """A fault in a fleet file."""

    def __init__(self, path: str, line: int | None, what: str, how: str) -> None:
        """Keep the parts for those who show them apart; ``line`` counts from 1."""
        self.path, self.line, self.what, self.how = path, line, what, how
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {what}. {how}")


@dataclass(frozen=True, slots=True)
class FleetNode:
    """One machine of a fleet."""

    name: str
    site: str
    cpu_cores: float | None
    memory_bytes: int | None
    devices: tuple[Device, ...]
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fleet:
    """A simulated fleet."""

    name: str
    nodes: tuple[FleetNode, ...]
    currency: str | None = None
    """Unit of the devices' ``price_per_hour``; ``None`` when the file gives no prices."""
    include_this_machine: bool = False
    """Whether the machine that reads the file should offer its real CPU beside the simulated devices."""
    notes: str = ""

    @classmethod
    def load(cls, path: str | Path) -> Fleet:
        """Read a fleet file.

        Raises:
            FleetError: the file is missing, too large, not YAML, or says something a fleet cannot be.
        """
        where = str(path)
        try:
            with Path(path).open("rb") as file:
                raw = file.read(_MAX_FILE_BYTES + 1)
        except OSError as error:
            raise FleetError(
                where, None, f"cannot be read: {error.strerror}", "Give the path of a YAML file"
            ) from error
        if len(raw) > _MAX_FILE_BYTES:
            raise FleetError(where, None, "is larger than 4 MiB", "Use count: for nodes and devices that repeat")
        return cls.parse(raw.decode("utf-8", errors="replace"), where)

    @classmethod
    def parse(cls, text: str, path: str = "<fleet>") -> Fleet:
        """Read a fleet from YAML text; ``path`` only names it in errors.

        Raises:
            FleetError: as ``load``.
        """
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            what = f"is not YAML: {getattr(error, 'problem', None) or error}"
            raise FleetError(path, None if mark is None else mark.line + 1, what, "Mend the syntax") from error
        except RecursionError as error:
            raise FleetError(path, None, "is nested too deeply", "A fleet has three levels") from error
        return _Reader(path).fleet(root)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices of all nodes."""
        return tuple(device for node in self.nodes for device in node.devices)

    def device(self, uid: str) -> Device:
        """The device of that id.

        Raises:
            KeyError: it is not in this fleet.
        """
        for device in self.devices:
            if device.uid == uid:
                return device
        raise KeyError(uid)


def device_uid(fleet: str, node: str, ordinal: int) -> str:
    """The id of the ``ordinal``-th device of a simulated node: the same each time the same fleet is read."""
    return f"SIM-{uuid.uuid5(_NAMESPACE, f'{fleet}/{node}/{ordinal}')}"


def _devices(fleet: str, node: str, kinds: Sequence[Kind]) -> tuple[Device, ...]:
    return tuple(
        Device(
            uid=device_uid(fleet, node, ordinal),
            vendor=kind.vendor,
            name=f"{kind.name} (simulated)",
            kind=kind,
            total_bytes=kind.memory_bytes,
            usable_bytes=kind.usable_bytes,
            index=ordinal,
            simulated=True,
        )
        for ordinal, kind in enumerate(kinds)
    )


class _Reader:
    """Walks the YAML node tree, which knows the line of everything."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._devices = 0

    def fleet(self, root: yaml.Node | None) -> Fleet:
        if root is None:
            raise FleetError(self._path, None, "is empty", "Write fleet:, currency: and nodes:")
        top = self._mapping(root, ("fleet", "currency", "include_this_machine", "notes", "nodes"), ("fleet", "nodes"))
        name = self._name(top["fleet"], "fleet")
        currency = self._text(top["currency"]) if "currency" in top else None
        include = (
            self._scalar(top["include_this_machine"], bool, "true or false") if "include_this_machine" in top else False
        )
        nodes = [n for entry in self._sequence(top["nodes"], "nodes") for n in self._nodes(entry, name, currency)]
        seen: set[str] = set()
        for node, mark in nodes:
            if node.name in seen:
                raise self._fault(mark, f"node {node.name!r} is written twice", "Give each node its own name")
            seen.add(node.name)
        if not nodes and not include:
            raise self._fault(top["nodes"], "the fleet has no node", "List at least one, or include_this_machine: true")
        notes = self._text(top["notes"]) if "notes" in top else ""
        return Fleet(name, tuple(node for node, _ in nodes), currency, include, notes)

    def _nodes(self, entry: yaml.Node, fleet: str, currency: str | None) -> list[tuple[FleetNode, yaml.Node]]:
        fields = self._mapping(
            entry, ("name", "count", "site", "cpu_cores", "memory", "labels", "devices"), ("name", "devices")
        )
        base = self._name(fields["name"], "a node's name")
        count = self._count(fields["count"]) if "count" in fields else None
        site = self._name(fields["site"], "a site") if "site" in fields else "simulated"
        cores = self._positive(fields["cpu_cores"]) if "cpu_cores" in fields else None
        memory = self._size(fields["memory"]) if "memory" in fields else None
        labels = self._labels(fields["labels"]) if "labels" in fields else {}
        entries = self._sequence(fields["devices"], "devices")
        if not 0 < len(entries) <= _MAX_GROUPS:
            raise self._fault(
                fields["devices"], f"a node of {len(entries)} device entries", f"List 1 to {_MAX_GROUPS}; use count:"
            )
        groups = [self._group(group, currency) for group in entries]
        self._devices += (count or 1) * sum(number for _, number in groups)
        if self._devices > _MAX_DEVICES:
            raise self._fault(entry, f"the fleet has more than {_MAX_DEVICES} devices", "Split it into several files")
        names = [base] if count is None else [f"{base}-{i + 1}" for i in range(count)]
        kinds = [kind for kind, number in groups for _ in range(number)]
        return [(FleetNode(name, site, cores, memory, _devices(fleet, name, kinds), labels), entry) for name in names]

    def _group(self, entry: yaml.Node, currency: str | None) -> tuple[Kind, int]:
        fields = self._mapping(entry, ("kind", "count", "price_per_hour", "memory"), ("kind",))
        wanted = self._text(fields["kind"])
        found = resolve_kind(wanted)
        if found.kind is None:
            known = ", ".join(found.suggestions) or "a name of `oarlock_accelerators.all_kinds()`"
            raise self._fault(fields["kind"], f"no device kind is called {wanted!r}", f"Try {known}")
        kind = found.kind
        if "memory" in fields:
            kind = replace(kind, memory_bytes=self._size(fields["memory"]), usable_bytes=None)
        if kind.memory_bytes is None:
            raise self._fault(fields["kind"], f"{kind.name} has no memory size of its own", "Add memory:, e.g. 64GiB")
        if "price_per_hour" in fields:
            if currency is None:
                raise self._fault(
                    fields["price_per_hour"], "there is a price but no currency", "Add currency: at the top"
                )
            kind = replace(kind, price_per_hour=self._positive(fields["price_per_hour"]))
        return kind, self._count(fields["count"]) if "count" in fields else 1

    def _mapping(self, node: yaml.Node, allowed: tuple[str, ...], required: tuple[str, ...]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self._fault(node, "a mapping is expected here", f"Write {', '.join(allowed)} as key: value")
        out: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = self._text(key_node)
            if key not in allowed:
                raise self._fault(key_node, f"{key!r} is not known here", f"Known are {', '.join(allowed)}")
            if key in out:
                raise self._fault(key_node, f"{key!r} is written twice", "Keep one of them")
            out[key] = value
        for key in required:
            if key not in out:
                raise self._fault(node, f"{key!r} is missing", f"Add {key}:")
        return out

    def _sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._fault(node, f"{what} must be a list", "Start each entry with a dash")
        return list(node.value)

    def _labels(self, node: yaml.Node) -> dict[str, str]:
        if not isinstance(node, yaml.MappingNode):
            raise self._fault(node, "labels must be a mapping", "Write key: value")
        return {self._text(key): self._text(value) for key, value in node.value}

    def _text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node, "a plain value is expected here", "Write a single word or number")
        return str(node.value)

    def _scalar(self, node: yaml.Node, kind: type, how: str) -> Any:
        text = self._text(node)
        value = yaml.safe_load(text) if len(text) < 100 else text
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
            raise self._fault(node, f"{text[:50]!r} is not {how}", f"Write {how}")
        return value

    def _positive(self, node: yaml.Node) -> float:
        value = float(self._scalar(node, int | float, "a number"))  # type: ignore[arg-type]
        if not math.isfinite(value) or value < 0:
            raise self._fault(node, f"{value} cannot be", "Write a number of zero or more")
        return value

    def _count(self, node: yaml.Node) -> int:
        value = int(self._scalar(node, int, "a whole number"))
        if not 0 < value <= _MAX_DEVICES:
            raise self._fault(node, f"a count of {value} cannot be", f"Write a whole number from 1 to {_MAX_DEVICES}")
        return value

    def _size(self, node: yaml.Node) -> int:
        text = self._text(node)
        match = _SIZE.match(text.strip())
        unit = None if match is None else _UNITS.get(match.group(2).lower())
        if match is None or unit is None:
            raise self._fault(node, f"{text[:50]!r} is not a size", "Write for example 64GiB")
        return int(float(match.group(1)) * unit)

    def _name(self, node: yaml.Node, what: str) -> str:
        text = self._text(node)
        if not _NAME.match(text):
            raise self._fault(
                node,
                f"{what} cannot be {text[:80]!r}",
                "Use up to 63 letters, digits, '.', '_' and '-', no leading sign",
            )
        return text

    def _fault(self, node: yaml.Node, what: str, how: str) -> FleetError:
        return FleetError(self._path, node.start_mark.line + 1, what, how)
