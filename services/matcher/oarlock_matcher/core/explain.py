"""Why a task has no device, and what would change that, in codes and in sentences."""
# ruff: noqa: ARG001 - sentences have one signature, whatever each needs of it

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.effects import Reason
from oarlock_matcher.core.filters import DYNAMIC_FILTERS, LASTING_FILTERS, Filter
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import Shape
from oarlock_matcher.core.windows import sentence_of, time_of

if TYPE_CHECKING:
    from oarlock_matcher.core.state import MatcherState
    from oarlock_matcher.core.tasks import TaskRecord

DEVICES_NAMED = 8


@dataclass(frozen=True, slots=True)
class Why:
    """Answer to `oarlock why TASK`. `phase` is `blocked`, `waiting`, `placed` or `unknown`; `position` counts from
    0."""

    task_id: str
    phase: str
    position: int | None
    waited_seconds: float | None
    reasons: tuple[Reason, ...]
    would_free_it: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """Devices that one window keeps a task off [rows, slots], and in which words (by model number)."""

    code: str
    mask: NDArray[np.bool_]
    sentences: tuple[str, ...]


def closed_devices(state: MatcherState, record: TaskRecord, now: float) -> tuple[Closed, ...]:
    """What each window closes for a task now."""
    closure = state.calendar.closure(state.fleet, state.settings, record.demand, now)
    if closure is None:
        return ()
    found: list[Closed] = []
    for number, window in enumerate(state.settings.windows):
        overlaps = closure.overlaps[number]
        if overlaps.any():
            covered = state.calendar.covers(state.fleet, state.settings, number)
            mask = covered & overlaps[state.fleet.row_model][:, np.newaxis]
            told = tuple(sentence_of(window, record.demand, model.kind) for model in state.fleet.models)
            found.append(Closed("maintenance" if window.owner is None else "reserved", mask, told))
    return tuple(found)


def rejections(
    fleet: FleetTable,
    shape: Shape,
    settings: PolicySettings,
    held: NDArray[np.intp] | None = None,
    closed: tuple[Closed, ...] = (),
) -> tuple[Reason, ...]:
    """Why each device does not take the shape now: by device in a small fleet, else by cause and model.

    `held`: rows kept for a task that comes first. `closed`: what windows keep it off.
    """
    limit = settings.explain_limit
    if limit <= 0:
        return ()
    rows = fleet.all_rows()
    by_device = shape.count > 0
    open_ = fleet.present.copy()
    if not by_device:
        open_[:, :] = False
        open_[:, 0] = True
    if not open_.any():
        return (Reason("no_devices", "the fleet has no device at present"),)
    singly = int(open_.sum()) <= limit
    found: list[Reason] = []

    def rule_out(rules: tuple[Filter, ...]) -> None:
        for rule in rules:
            if rule.concerns(shape):
                out = open_ & ~rule.admits(fleet, shape, rows, settings)
                if out.any():
                    found.extend(_group(fleet, shape, rule.code, out, singly, rule.sentence))
                    np.logical_and(open_, ~out, out=open_)

    rule_out(LASTING_FILTERS)
    for window in closed:
        out = open_ & window.mask
        if out.any():
            found += _group(fleet, shape, window.code, out, singly, partial(_closed_sentence, window.sentences))
            open_ &= ~out
    rule_out(DYNAMIC_FILTERS)
    if held is not None and len(held):
        out = np.zeros_like(open_)
        out[held] = open_[held]
        if out.any():
            found += _group(fleet, shape, "held", out, singly, _held_sentence)
            open_ &= ~out
    short = open_ & (open_.sum(axis=1) < shape.count)[:, np.newaxis]
    if short.any():
        left = open_.sum(axis=1)

        def sentence(fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
            return f"needs {shape.count} devices on one node, {int(left[row])} fit on {fleet.node_name(row)}"

        found += _group(fleet, shape, "gang_size", short, singly, sentence)
    return tuple(found[: 4 * limit])


def _closed_sentence(sentences: tuple[str, ...], fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
    return sentences[int(fleet.row_model[row])]


def _held_sentence(fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
    return "kept for a task that has waited longer"


def _group(fleet: FleetTable, shape: Shape, code: str, out: NDArray[np.bool_], singly: bool, sentence) -> list[Reason]:  # type: ignore[no-untyped-def]
    if singly:
        return [
            Reason(code, sentence(fleet, shape, int(r), int(s)), (_name(fleet, int(r), int(s)),), 1)
            for r, s in np.argwhere(out)
        ]
    rows = np.flatnonzero(out.any(axis=1))
    models, counts = fleet.row_model[rows], np.count_nonzero(out[rows], axis=1)
    totals = np.bincount(models, counts)
    reasons: list[Reason] = []
    for number in np.flatnonzero(totals).tolist():
        # As each of these rows has at least one, the first few hold all that are named.
        first = rows[models == number][:DEVICES_NAMED]
        places = [(int(first[at]), int(slot)) for at, slot in np.argwhere(out[first])[:DEVICES_NAMED]]
        named = tuple(_name(fleet, row, slot) for row, slot in places)
        count = int(totals[number])
        told = sentence(fleet, shape, *places[0])
        text = f"{count} × {fleet.models[number].kind}, e.g. {named[0]}: {told}"
        reasons.append(Reason(code, text, named, count))
    return reasons


def _name(fleet: FleetTable, row: int, slot: int) -> str:
    return fleet.uids[row][slot] or fleet.node_name(row)


def would_free(
    state: MatcherState, shapes: tuple[Shape, ...], reasons: tuple[Reason, ...], now: float
) -> tuple[str, ...]:
    """What would let the task start, most likely first, at most a handful of sentences."""
    told: list[str] = []
    codes = {reason.code for reason in reasons}
    busy = [
        r
        for r in reasons
        if r.code in ("busy", "compute_share", "memory_in_use", "sharers", "interference", "gang_size")
    ]
    ends: list[tuple[float, str, str]] = []
    unknown: list[tuple[str, str]] = []
    for reason in busy:
        for uid in reason.devices:
            for task, _ in state.fleet.holders.get(uid, ()):
                record = state.tasks.get(task)
                end = None if record is None else record.ends_at()
                if end is None:
                    unknown.append((task, uid))
                else:
                    ends.append((end, task, uid))
    for end, task, uid in sorted(ends)[:2]:
        told.append(f"the end of {task} on {uid}, expected in about {max(0.0, end - now):.0f} s")
    if not ends:
        told += [f"the end of {task} on {uid}" for task, uid in unknown[:2]]
    if "quota" in codes:
        told.append("the end of one of its owner's other tasks, or a larger quota")
    if codes & {"reserved", "maintenance"}:
        kept = " ".join(r.sentence for r in reasons if r.code in {"reserved", "maintenance"})
        ending = sorted((w.ends, w.name) for w in state.settings.windows if w.ends > now and w.name in kept)
        told += [f"the end of {name} at {time_of(end)}" for end, name in ending[:2]]
        told.append("a run timeout (--run-timeout) that ends before the window begins")
    if "array_limit" in codes:
        told.append("the end of one of the array's other tasks")
    if "after" in codes:
        told.append("the end of the tasks that it comes after")
    if "unavailable" in codes:
        told.append("a failed or cordoned device coming back")
    if "draining" in codes:
        told.append("the end of a node's draining")
    if "node_cpu" in codes or "node_memory" in codes:
        told.append("processors or main memory of a node becoming free")
    smallest = smallest_bytes(shapes)
    if smallest is not None and codes & {"memory_too_small", "no_devices"}:
        told.append(f"a device with at least {smallest / 2**30:.1f} GiB of usable memory")
    if not told:
        told.append("a device that passes every filter joining the fleet")
    return tuple(dict.fromkeys(told))


def smallest_bytes(shapes: tuple[Shape, ...]) -> int | None:
    """The usable bytes that a device needs to hold the least demanding of the shapes; `None` when bytes are unknown."""
    needs = [
        max(int(np.ceil((s.device_bytes or 0) / s.threshold)), s.reserve_bytes or 0)
        for s in shapes
        if s.device_bytes is not None or s.reserve_bytes is not None
    ]
    return min(needs) if needs else None
