"""Relative errors per source and kind of measurement, with the campaign's unknown context found on other folds."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.prediction_error.cases import MIB
from benchmarks.prediction_error.predict import Prediction

LEAST_ROWS = 4
"""So many other rows are asked for before a campaign's context is found from them; else the product's is taken."""
LEAST_ALIKE = 8
"""So many rows of the same kind of net are asked for before its context is told apart from the campaign's."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One prediction with the context of its campaign: the figure that is compared."""

    prediction: Prediction
    predicted_bytes: int

    @property
    def error(self) -> float:
        """Relative error: above 0 is too much."""
        return self.predicted_bytes / self.prediction.case.measured_bytes - 1


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; errors are None where nothing was predicted."""

    source: str
    kind: str
    rows: int
    abstained: int
    median: float | None
    p90: float | None
    worst: float | None
    over: int
    under: int
    oom_right: int
    oom_rows: int


def with_campaign_context(predictions: Sequence[Prediction]) -> list[Scored]:
    """Each prediction plus the median context of its campaign over the folds it is not in.

    The machine, driver and library versions of a campaign are not published, and so is their context: one constant
    for each campaign, and one more for nets with batch normalisation (its kernels are loaded when first used). It is
    never taken from the row's own fold.
    """
    told = [p for p in predictions if p.abstained is None and p.case.kind == "device"]
    fitted = [p for p in told if p.case.scored and not p.case.out_of_memory]

    @functools.cache
    def found(surroundings: str, fold: int, batch_norm: bool) -> float | None:
        others = [p for p in fitted if p.case.surroundings == surroundings and p.case.fold != fold]
        alike = [p for p in others if p.batch_norm == batch_norm]
        chosen = alike if len(alike) >= LEAST_ALIKE else others
        left = [p.case.measured_bytes - p.reserved_bytes for p in chosen]
        return statistics.median(left) if len(left) >= LEAST_ROWS else None

    def context(of: Prediction) -> float:
        known = found(of.case.surroundings, of.case.fold, of.batch_norm)
        return of.context_bytes if known is None else known

    scored = []
    for prediction in predictions:
        case = prediction.case
        if prediction.abstained is not None:
            continue
        if case.kind == "device":
            whole = round(prediction.reserved_bytes + context(prediction))
            # No device shows more than it has; rows that say otherwise name the wrong device.
            bounded = prediction.fits and case.measured_bytes <= prediction.capacity_bytes
            scored.append(Scored(prediction, min(whole, prediction.capacity_bytes) if bounded else whole))
        else:
            figure = prediction.reserved_bytes if case.kind == "reserved" else prediction.allocated_bytes
            scored.append(Scored(prediction, figure))
    return scored


def table(predictions: Sequence[Prediction], scored: Sequence[Scored]) -> list[Row]:
    """One row per source and kind; an abstention counts as a failure (an error of 100 %)."""
    groups: dict[tuple[str, str], list[Prediction]] = {}
    for prediction in predictions:
        groups.setdefault((prediction.case.source, prediction.case.kind), []).append(prediction)
    by_case = {id(item.prediction): item for item in scored}
    rows = []
    for (source, kind), members in sorted(groups.items()):
        counted = [p for p in members if p.case.scored and not p.case.out_of_memory]
        errors = [by_case[id(p)].error if id(p) in by_case else None for p in counted]
        sizes = sorted(abs(error) if error is not None else 1.0 for error in errors)
        known = [error for error in errors if error is not None]
        verdicts = [p for p in members if p.abstained is None and (p.case.scored or p.case.out_of_memory)]
        any_oom = any(p.case.out_of_memory for p in members)
        rows.append(
            Row(
                source,
                kind,
                len(counted),
                sum(error is None for error in errors),
                _quantile(sizes, 0.5),
                _quantile(sizes, 0.9),
                sizes[-1] if sizes else None,
                sum(error > 0.03 for error in known),
                sum(error < -0.03 for error in known),
                sum(p.fits != p.case.out_of_memory for p in verdicts) if any_oom else 0,
                len(verdicts) if any_oom else 0,
            )
        )
    return rows


def _quantile(values: Sequence[float], share: float) -> float | None:
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


def markdown(rows: Sequence[Row]) -> str:
    """The table as people read it."""
    lines = [
        "| source | measured | rows | abstained | median | p90 | worst | over 3 % | under 3 % | OOM right |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = [f"{x:.1%}" if x is not None else "-" for x in (row.median, row.p90, row.worst)]
        oom = f"{row.oom_right}/{row.oom_rows}" if row.oom_rows else "-"
        lines.append(
            f"| {row.source} | {row.kind} | {row.rows} | {row.abstained} | {figures[0]} | {figures[1]} | {figures[2]} "
            f"| {row.over} | {row.under} | {oom} |"
        )
    return "\n".join(lines)


def mib(nbytes: float) -> int:
    """Bytes as whole MiB."""
    return round(nbytes / MIB)
