"""Learning from completed runs: how far measured peaks stand from raw estimates, and how much to book for safety.

**Factor.** A run's residual is ``log(measured / raw)``. Residuals are kept in cells along a path that goes from coarse
to fine: framework × family, then × precision, then × device kind, then the very script on that device kind. A cell's
estimate is drawn towards its parent's (partial pooling): ``(n · mean + k · parent) / (n + k)``, so that little data
moves little. Families do not share a parent, so what one family teaches leaves the others alone.

**Bounded influence.** A residual is clipped around the cell's present estimate (Huber), an owner's runs weigh at most
:data:`OWNER_CAP` in a cell, and factors stay within :data:`FACTOR_FLOOR` and :data:`FACTOR_CEILING`.

**Censoring.** A run that died of out-of-memory used more than the device had; it counts only when the estimate said
less.

**Reservation.** What is booked is the estimate times a ratio that held for the chosen share of past runs: an empirical
quantile of ``measured / predicted`` (conformal prediction), whose level is adapted on-line to the share of misses that
is really seen (Gibbs and Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021).

The state is plain JSON, so that many profilers can learn as one by compare-and-set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

State = dict[str, Any]

FACTOR_FLOOR = 0.6
FACTOR_CEILING = 1.8
PRIOR_RUNS = (4.0, 3.0, 3.0, 0.5)
"""How many runs the parent's estimate is worth, by level. A script seen before is trusted after one run."""

CLIP = 0.25
"""Largest step, in log units, that one run may ask of a cell whose estimate it contradicts."""

OWNER_CAP = 20.0
MAX_OWNERS = 32
MAX_CELLS = 4096

RATIO_FLOOR = 1.02
RATIO_CEILING = 1.6
RATIO_PRIOR = 1.08
"""What is booked beyond the estimate before any run has completed."""

PROBABILITY = 0.99
LEVEL_STEP = 0.005
BIN = 0.005
"""Width of a bin of the residual histogram, in log units."""
DECAY = 0.998
OOM_MARGIN = 0.05


class Record(Protocol):
    """What is learned from: a completed run, in the names of ``oarlock_schemas.RunRecord``."""

    @property
    def owner(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def framework(self) -> str | None: ...
    @property
    def family(self) -> str | None: ...
    @property
    def precision(self) -> str | None: ...
    @property
    def device_kind(self) -> str: ...
    @property
    def source_digest(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Key:
    """What a cell is chosen by; None where it is not known."""

    framework: str | None
    family: str | None
    precision: str | None
    device_kind: str | None
    source_digest: str | None = None

    def path(self) -> list[str]:
        """The cells from coarse to fine that this key reaches."""
        parts = [f"{self.framework or '-'}/{self.family or '-'}"]
        if self.precision is not None:
            parts.append(f"{parts[-1]}/{self.precision}")
            if self.device_kind is not None:
                parts.append(f"{parts[-1]}/{self.device_kind}")
                if self.source_digest is not None:
                    parts.append(f"{parts[-1]}/{self.source_digest[:32]}")
        return parts


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
    return Correction(_clamp_factor(log_factor), _reserve_ratio(state, key), observations)


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
    new = {**state, "cells": dict(state["cells"]), "scores": dict(state["scores"]), "runs": state["runs"] + 1}
    for index, name in enumerate(path):
        centre, _ = _estimate(state, path[: index + 1])
        clip = CLIP if index < 3 else 4 * CLIP
        clipped = min(max(residual, centre - clip), centre + clip)
        cells = new["cells"]
        cells[name] = _add(cells.get(name) or {"owners": {}}, owner, clipped)
        if len(cells) > MAX_CELLS:
            del cells[min(cells, key=lambda cell: _weight(cells[cell]))]
    new["scores"] = _score(state, key, residual - math.log(before.factor))
    after = correction(new, key)
    cell = {
        "framework": key.framework,
        "family": key.family,
        "precision": key.precision,
        "device_kind": key.device_kind,
    }
    return new, Change(cell, before.factor, after.factor, after.observations)


def learn(state: State, record: Any) -> tuple[State, Change | None]:
    """:func:`update` from a run record (``oarlock_schemas.RunRecord`` or anything with its fields).

    Only runs that ended well, or of out-of-memory, teach; a cancelled or failed run may have been cut short.
    """
    key = Key(record.framework, record.family, record.precision, record.device_kind, record.source_digest)
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


def _estimate(state: State, path: list[str]) -> tuple[float, int]:
    """The pooled log factor along ``path``, and the number of runs in the coarsest cell that has any."""
    value, runs = 0.0, 0
    for name, prior in zip(path, PRIOR_RUNS, strict=False):
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
    # Beyond the cap old runs fade, so that the mean follows the owner's recent runs.
    if count >= OWNER_CAP:
        total *= (OWNER_CAP - 1) / OWNER_CAP
        owners[owner] = (count + 1, total + residual)
    else:
        owners[owner] = (count + 1, total + residual)
    return {"owners": owners}


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


def _score(state: State, key: Key, score: float) -> dict[str, Any]:
    """The histograms of log(measured / predicted) with one more run, and the adapted level of each."""
    bounded = min(max(score, math.log(0.25)), math.log(RATIO_CEILING) + BIN)
    index = str(math.ceil(bounded / BIN))
    scores = dict(state["scores"])
    for name in _score_cells(key):
        old = scores.get(name) or {"bins": {}, "alpha": 1 - PROBABILITY, "weight": 0.0}
        ratio = _quantile_ratio(state, key, name)
        missed = 1.0 if bounded > math.log(ratio) else 0.0
        alpha = min(max(old["alpha"] + LEVEL_STEP * ((1 - PROBABILITY) - missed), 0.001), 2 * (1 - PROBABILITY))
        bins = {place: weight * DECAY for place, weight in old["bins"].items() if weight * DECAY > 0.01}
        bins[index] = bins.get(index, 0.0) + 1.0
        scores[name] = {"bins": bins, "alpha": alpha, "weight": sum(bins.values())}
    return scores


def _score_cells(key: Key) -> tuple[str, str]:
    return "*", f"{key.framework or '-'}/{key.family or '-'}"


def _reserve_ratio(state: State, key: Key) -> float:
    return _quantile_ratio(state, key, _score_cells(key)[1])


def _quantile_ratio(state: State, key: Key, name: str) -> float:
    """The ratio that held for the adapted share of runs; the prior ratio counts as runs that just held."""
    del key
    score = state["scores"].get(name)
    if score is None:
        return RATIO_PRIOR
    weight = score["weight"]
    # Finite-sample conformal level: of n runs, the ceil((n + 1) (1 - alpha))-th smallest.
    wanted = (weight + 1) * (1 - score["alpha"])
    prior = math.log(RATIO_PRIOR)
    places = sorted((int(place), count) for place, count in score["bins"].items())
    if wanted > weight:
        top = places[-1][0] * BIN
        value = max(top + BIN, prior)
    else:
        below = 0.0
        value = places[-1][0] * BIN
        for place, count in places:
            below += count
            if below >= wanted:
                value = place * BIN
                break
    return min(max(math.exp(value), RATIO_FLOOR), RATIO_CEILING)
