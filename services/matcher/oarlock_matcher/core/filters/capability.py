"""What a make of device can do at all: kind, site, precision, operators."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

import numpy as np

from oarlock_matcher.core.devices import DeviceModel
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import Shape

DEFAULT_PRECISIONS = frozenset({"fp32", "float32"})
"""Precisions that every training device has."""


class ModelFilter:
    """A filter whose answer is the same for all devices of a model."""

    static = True

    def allows(self, model: DeviceModel, shape: Shape) -> bool:
        raise NotImplementedError

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        by_model = np.fromiter((self.allows(m, shape) for m in fleet.models), np.bool_, len(fleet.models))
        mask: Mask = by_model[fleet.row_model[rows]][:, np.newaxis]
        return mask


class RequiredKindFilter(ModelFilter):
    """The task names the kinds that it accepts."""

    code = "kind_not_required"

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.required)

    def allows(self, model: DeviceModel, shape: Shape) -> bool:
        return model.kind in shape.required

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        return f"the task requires {' or '.join(sorted(shape.required))}, this is {fleet.model_of(row).kind}"


class ForbiddenKindFilter(ModelFilter):
    """The task names kinds that it refuses."""

    code = "kind_forbidden"

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.forbidden)

    def allows(self, model: DeviceModel, shape: Shape) -> bool:
        return model.kind not in shape.forbidden

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        return f"the task forbids {fleet.model_of(row).kind}"


class PrecisionFilter(ModelFilter):
    """The vendor does not support the precision that the script trains in. Unknown support admits."""

    code = "precision_unsupported"

    def concerns(self, shape: Shape) -> bool:
        return shape.precision is not None and shape.precision not in DEFAULT_PRECISIONS and shape.count > 0

    def allows(self, model: DeviceModel, shape: Shape) -> bool:
        return model.precisions is None or shape.precision in model.precisions

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        model = fleet.model_of(row)
        return f"the script trains in {shape.precision}, which {model.kind} does not support"


class KernelFilter(ModelFilter):
    """The script needs framework kernels that the vendor has not implemented."""

    code = "kernel_unsupported"

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.kernels) and shape.count > 0

    def allows(self, model: DeviceModel, shape: Shape) -> bool:
        return not (shape.kernels & model.unsupported_kernels)

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        model = fleet.model_of(row)
        missing = sorted(shape.kernels & model.unsupported_kernels)
        listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        return f"{model.kind} has no implementation of {listed}"


class SiteFilter:
    """The task is bound to one site."""

    code = "other_site"
    static = True

    def concerns(self, shape: Shape) -> bool:
        return shape.site is not None

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        return np.fromiter((fleet.site_of(int(r)) == shape.site for r in rows), np.bool_, len(rows))[:, np.newaxis]

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        return f"the task is bound to site {shape.site}, this is {fleet.site_of(row)}"
