"""``scipy.optimize``: assignments, whose length follows from the shape of their costs."""

from __future__ import annotations

from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.numpy_arrays import NdArray
from oarlock_profiler.core.overlays.numpy_creation import as_array
from oarlock_profiler.core.overlays.registry import entry

LIBRARIES = ("scipy",)


@entry("scipy.optimize.linear_sum_assignment")
def linear_sum_assignment(context: Context, cost_matrix: Value, maximize: Value = False) -> Value:
    """Rows and their columns, as many as the shorter side of the costs has (SciPy's ``_lsap.c``)."""
    del maximize
    shape = as_array(context, cost_matrix).shape
    length = None if shape is None or len(shape) != 2 else (min(shape),)
    return tuple(NdArray(length, "int64", row=() if length is None else None) for _ in range(2))
