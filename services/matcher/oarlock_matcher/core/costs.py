"""What a step costs on each device model: predicted seconds, and seconds × price.

Step seconds come from the portrait where it has them for the kind; otherwise from FLOPs over the model's peak times an
achievable fraction. Either way they are a prediction, and `None` stays `None`.
"""

from __future__ import annotations

from oarlock_matcher.core.devices import DeviceModel
from oarlock_matcher.core.shapes import Shape

ACHIEVABLE_FRACTION = 0.4
"""Share of peak FLOP/s that training reaches when nothing better is known; only ratios between models matter here.
Model FLOPs utilisation reported for well-tuned large runs lies between 0.3 and 0.55 (PaLM, arXiv:2204.02311, table
3)."""


def step_seconds(shape: Shape, model: DeviceModel) -> float | None:
    """Predicted seconds per step on one device of this model; `None` when neither portrait nor specs tell."""
    for kind, seconds in shape.step_seconds:
        if kind == model.kind:
            return seconds
    if shape.flops_per_step is None:
        return None
    peak = {"bf16": model.bf16_flops, "fp16": model.fp16_flops}.get(shape.precision or "fp32", model.fp32_flops)
    if not peak:
        return None
    return shape.flops_per_step / (peak * ACHIEVABLE_FRACTION)


def step_cost(shape: Shape, model: DeviceModel) -> float | None:
    """Predicted step seconds × price per hour. `None` when the time or the price is unknown."""
    seconds = step_seconds(shape, model)
    if seconds is None or model.price_per_hour is None:
        return None
    return seconds * model.price_per_hour


def step_joules(shape: Shape, model: DeviceModel) -> float | None:
    """Energy of one step on one device at its design power: an upper bound, good for comparing models. `None` when the
    time or the power is unknown."""
    seconds = step_seconds(shape, model)
    if seconds is None or model.tdp_watts is None:
        return None
    return seconds * model.tdp_watts


def relative(values: list[float | None]) -> list[float]:
    """Best ÷ value for each, in 0..1 (1 is best); 0.5 where unknown, so that ignorance neither wins nor loses."""
    known = [v for v in values if v is not None and v > 0]
    if not known:
        return [0.5] * len(values)
    best = min(known)
    return [0.5 if v is None or v <= 0 else best / v for v in values]
