"""Learning from completed runs: how far measured peaks stand from raw estimates, and how much to book for safety.

**Factor.** A run's residual is ``log(measured / raw)``. Residuals are kept in cells along a path that goes from coarse
to fine: framework × family, then × precision, then × device kind; then the very script, on any device and on that
kind. A cell's estimate is drawn towards its parent's (partial pooling): ``(n · mean + k · parent) / (n + k)``, so that
little data moves little. Families do not share a parent, so what one family teaches leaves the others alone.

**Bounded influence.** A residual is clipped around the cell's present estimate (Huber), an owner's runs weigh at most
:data:`OWNER_CAP` in a cell, and factors stay within :data:`FACTOR_FLOOR` and :data:`FACTOR_CEILING`.

**Censoring.** A run that died of out-of-memory used more than the device had; it counts only when the estimate said
less.

**Reservation.** See :mod:`.reservation`.

The state is plain JSON, so that many profilers can learn as one by compare-and-set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from oarlock_profiler.core import reservation

State = dict[str, Any]

FACTOR_FLOOR = 0.6
FACTOR_CEILING = 1.8
PRIOR_RUNS = 4.0
"""How many runs a cell's parent is worth."""

SCRIPT_PRIOR_RUNS = 0.5
"""The same for the cell of one script: a script seen before is trusted after one run."""

CLIP = 0.25
SCRIPT_CLIP = 1.0
"""Largest step, in log units, that one run may ask of a cell whose estimate it contradicts."""

OWNER_CAP = 20.0
MAX_OWNERS = 32
MAX_CELLS_BYTES = 320 * 1024
"""The state is one value of a bucket, which holds 1 MiB: what cannot be written cannot be learned."""

MAX_NAME_LENGTH = 96

OOM_MARGIN = 0.05


class Cell(NamedTuple):
    """One cell on a key's path: its name, what its parent is worth in runs, and how far one run may pull."""

    name: str
    prior_runs: float
    clip: float


@dataclass(frozen=True, slots=True)
class Key:
    """What a cell is chosen by; None where it is not known."""

    framework: str | None
    family: str | None
    precision: str | None
    device_kind: str | None
    source_digest: str | None = None

    def path(self) -> list[Cell]:
        """The cells from coarse to fine that this key reaches; what is not known is passed over."""
        names = [self.family_cell]
        if self.precision is not None:
            names.append(f"{self.family_cell}/{self.precision}")
            if self.device_kind is not None:
                names.append(f"{names[-1]}/{self.device_kind}")
        cells = [Cell(name, PRIOR_RUNS, CLIP) for name in names]
        if self.source_digest is not None:
            script = f"{self.family_cell}/#{self.source_digest[:32]}"
            cells.append(Cell(script, SCRIPT_PRIOR_RUNS, SCRIPT_CLIP))
            if self.device_kind is not None:
                cells.append(Cell(f"{script}/{self.device_kind}", SCRIPT_PRIOR_RUNS, SCRIPT_CLIP))
        return cells

    @property
    def family_cell(self) -> str:
        """The coarsest cell: framework and family."""
        return f"{self.framework or '-'}/{self.family or '-'}"


@dataclass(frozen=True, slots=True)
class Correction:
    """What calibration says of one estimate: multiply by ``factor``, book ``reserve_ratio`` times the result.

    ``observations`` counts the runs behind the factor (0: nothing has been learned that applies).
    """

    factor: float
    reserve_ratio: float
    observations: int


@dataclass(frozen=True, slots=True)
class Change:
    """A cell moved: what ``estimator.recalibrated`` announces."""

    cell: dict[str, str | None]
    factor_before: float
    factor_after: float
    observations: int


def empty() -> State:
    """A state that has learned nothing."""
    return {"version": 1, "cells": {}, "scores": {}, "runs": 0}


def correction(state: State, key: Key) -> Correction:
    """What ``state`` says of an estimate with ``key``."""
    log_factor, observations = _estimate(state, key.path())
    return Correction(_clamp_factor(log_factor), reservation.ratio(state["scores"], key.family_cell), observations)


def update(
    state: State,
    key: Key,
    *,
    owner: str,
    raw_bytes: int,
    measured_bytes: int | None,
    out_of_memory_at_bytes: int | None = None,
) -> tuple[State, Change | None]:
    """Learn from one run: ``raw_bytes`` estimated before calibration, ``measured_bytes`` seen.

    ``out_of_memory_at_bytes`` is the device's capacity when the run died of out-of-memory. Returns the new state (the
    old one is left as it was) and the change, None when nothing could be learned.
    """
    if raw_bytes <= 0:
        return state, None
    before = correction(state, key)
    path = key.path()
    centre = math.log(before.factor)
    if out_of_memory_at_bytes is not None:
        bound = math.log(max(out_of_memory_at_bytes, 1) / raw_bytes) + OOM_MARGIN
        if bound <= centre:
            return state, None
        residual = bound
    elif measured_bytes is not None and measured_bytes > 0:
        residual = math.log(measured_bytes / raw_bytes)
    else:
        return state, None
    new = {**state, "cells": dict(state["cells"]), "runs": state["runs"] + 1}
    cells = new["cells"]
    for index, cell in enumerate(path):
        centre, _ = _estimate(state, path[: index + 1])
        clipped = min(max(residual, centre - cell.clip), centre + cell.clip)
        cells[cell.name] = _add(cells.get(cell.name) or {"owners": {}}, owner, clipped)
    _bound(cells, spared={cell.name for cell in path})
    score = residual - math.log(before.factor)
    new["scores"] = reservation.observed(state["scores"], key.family_cell, owner, score)
    after = correction(new, key)
    names = {
        "framework": key.framework,
        "family": key.family,
        "precision": key.precision,
        "device_kind": key.device_kind,
    }
    return new, Change(names, before.factor, after.factor, after.observations)


def learn(state: State, record: Any) -> tuple[State, Change | None]:
    """:func:`update` from a run record (``oarlock_schemas.RunRecord`` or anything with its fields).

    Only runs that ended well, or of out-of-memory, teach; a cancelled or failed run may have been cut short.
    """
    named = (record.framework, record.family, record.precision, record.device_kind, record.source_digest)
    key = Key(*map(_name, named))
    raw = record.predicted.raw_device_bytes or record.predicted.device_bytes
    if raw is None:
        return state, None
    if record.outcome == "oom":
        if record.device_total_bytes is None:
            return state, None
        return update(
            state,
            key,
            owner=record.owner,
            raw_bytes=raw,
            measured_bytes=None,
            out_of_memory_at_bytes=record.device_total_bytes,
        )
    if record.outcome != "ok":
        return state, None
    measured = record.measured.peak_process_bytes or record.measured.peak_device_bytes
    return update(state, key, owner=record.owner, raw_bytes=raw, measured_bytes=measured)


def reset(state: State, prefix: str | None = None) -> State:
    """Forget everything, or the cells and scores whose name begins with ``prefix`` (``pytorch/cnn``)."""
    if prefix is None:
        return empty()
    keep = {name: cell for name, cell in state["cells"].items() if not _under(name, prefix)}
    scores = {name: score for name, score in state["scores"].items() if not _under(name, prefix)}
    return {**state, "cells": keep, "scores": scores}


def _under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix.rstrip("/") + "/")


def _clamp_factor(log_factor: float) -> float:
    return min(max(math.exp(log_factor), FACTOR_FLOOR), FACTOR_CEILING)


def _estimate(state: State, path: list[Cell]) -> tuple[float, int]:
    """The pooled log factor along ``path``, and the number of runs in the coarsest cell that has any."""
    value, runs = 0.0, 0
    for name, prior, _ in path:
        cell = state["cells"].get(name)
        if cell is None:
            continue
        weight, mean, count = _mean(cell)
        value = (weight * mean + prior * value) / (weight + prior)
        runs = max(runs, count)
    return value, runs


def _add(cell: Mapping[str, Any], owner: str, residual: float) -> dict[str, Any]:
    owners = dict(cell["owners"])
    if owner not in owners and len(owners) >= MAX_OWNERS:
        owner = "*others"
    count, total = owners.get(owner, (0, 0.0))
    if count >= OWNER_CAP:
        total *= (OWNER_CAP - 1) / OWNER_CAP  # old runs fade, so that the mean follows the owner's recent ones
    owners[owner] = [count + 1, total + residual]
    return {"owners": owners}


def _bound(cells: dict[str, Any], spared: set[str]) -> None:
    """Forget the cells with the least behind them, though not those that have just learned."""
    size = sum(map(_cell_bytes, cells, cells.values()))
    if size <= MAX_CELLS_BYTES:
        return
    for name in sorted(cells.keys() - spared, key=lambda name: (_mean(cells[name])[0], name)):
        size -= _cell_bytes(name, cells.pop(name))
        if size <= MAX_CELLS_BYTES:
            return


def _cell_bytes(name: str, cell: Mapping[str, Any]) -> int:
    """What a cell takes of the state's JSON, rather too much than too little."""
    return len(name.encode()) + 24 + sum(len(owner) + 48 for owner in cell["owners"])


def _name(text: str | None) -> str | None:
    """What a record names, short enough to be part of a cell's name."""
    return None if text is None else text[:MAX_NAME_LENGTH]


def _mean(cell: Mapping[str, Any]) -> tuple[float, float, int]:
    """Weight, mean and number of runs; each owner weighs at most the cap."""
    weight = total = 0.0
    runs = 0
    for count, summed in cell["owners"].values():
        effective = min(float(count), OWNER_CAP)
        weight += effective
        total += summed
        runs += int(count)
    return weight, total / weight if weight else 0.0, runs


def _weight(cell: Mapping[str, Any]) -> float:
    return _mean(cell)[0]


def describe(state: State) -> list[dict[str, Any]]:
    """Each cell by name, with the factor that its own runs suggest and how many they are."""
    cells = []
    for name, cell in sorted(state["cells"].items()):
        _, mean, runs = _mean(cell)
        cells.append({"cell": name, "factor": round(_clamp_factor(mean), 6), "runs": runs})
    return cells
