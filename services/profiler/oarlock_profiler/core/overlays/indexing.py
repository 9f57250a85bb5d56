"""Subscripts, gathers and scatters, sorting."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.dtypes import size_of
from oarlock_profiler.core.engine.engine import Mode
from oarlock_profiler.core.engine.shapes import ShapeError, axis_of, broadcast, numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Unknown, Value
from oarlock_profiler.core.overlays import routing
from oarlock_profiler.core.overlays.calling import Unknowable, engine_of, integer, integers, names, operator, tensor
from oarlock_profiler.core.overlays.numpy_arrays import NdArray
from oarlock_profiler.core.overlays.reductions import named_pair
from oarlock_profiler.core.overlays.shaping import part, strides_of, unsqueeze, view

LIBRARIES = ("torch", "paddle")


def _bound(value: Value, default: int, size: int) -> int:
    if value is None:
        return default
    at = integer(value)
    at = at + size if at < 0 else at
    return min(max(at, 0), size)


def _slice(key: slice, size: int) -> tuple[int, int, int]:
    """Start, length and step of a slice over ``size``."""
    step = integer(key.step) if key.step is not None else 1
    if step > 0:
        start, stop = _bound(key.start, 0, size), _bound(key.stop, size, size)
        return start, max(0, -(-(stop - start) // step)), step
    start = (
        size - 1 if key.start is None else min(integer(key.start) + (size if integer(key.start) < 0 else 0), size - 1)
    )
    stop = -1 if key.stop is None else integer(key.stop) + (size if integer(key.stop) < 0 else 0)
    return start, max(0, -(-(stop - start) // step)), step


def _is_index_tensor(item: Value) -> bool:
    if isinstance(item, Tensor):
        return not (item.shape == () and isinstance(item.value, int) and item.dtype != "bool")
    return (
        isinstance(item, (list, range)) or getattr(item, "ndim", 0) > 0
        if not isinstance(item, (int, slice, tuple, Unknown, type(None))) and item is not Ellipsis
        else False
    )


def _array_index(context: Context, array: NdArray) -> Value:
    """A NumPy array that selects from a tensor, as the tensor the framework makes of it."""
    if array.shape is None:
        return Unknown("an array of unknown shape", context.where, "array")
    return engine_of(context).tensor(array.shape, array.dtype, kind="temporary", device="cpu", op="index")


def _expanded_key(context: Context, key: Value, rank: int) -> list[Value]:
    items = [
        _array_index(context, item) if isinstance(item, NdArray) else item
        for item in (key if isinstance(key, tuple) else (key,))
    ]
    used = 0
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, bool):
            continue
        if isinstance(item, Tensor) and item.dtype == "bool":
            used += len(item.shape or ())
        else:
            used += 1
    if any(item is Ellipsis for item in items):
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = [slice(None)] * max(rank - used, 0)
        items = [slice(None) if item is Ellipsis else item for item in items]
    else:
        items += [slice(None)] * max(rank - used, 0)
    if used > rank:
        raise ShapeError(f"too many indices for {rank} dimensions")
    return items


def index(context: Context, x: Tensor, key: Value) -> Tensor:
    """``x[key]``: views for integers, slices and None; a gather for tensors and lists."""
    shape = x.shape or ()
    items = _expanded_key(context, key, len(shape))
    engine = engine_of(context)
    paddle = engine.framework == "paddle"
    current = x
    axis = 0
    advanced: list[tuple[int, Any]] = []
    strides = list(strides_of(x))
    dims = list(shape)
    known: Any = x.value
    changed = False
    for item in items:
        if item is None:
            dims.insert(axis, 1)
            strides.insert(axis, 1)
            changed = True
            known = None
            if not paddle:
                current = unsqueeze(context, current, axis)
            axis += 1
            continue
        if _is_index_tensor(item):
            advanced.append((axis, item))
            axis += len(item.shape or ()) if isinstance(item, Tensor) and item.dtype == "bool" else 1
            continue
        size = dims[axis]
        if isinstance(item, slice):
            _, length, step = _slice(item, size)
            if (length, step) != (size, 1):
                known = known[item.start : item.stop : item.step] if isinstance(known, list) and axis == 0 else None
                dims[axis] = length
                strides[axis] *= step
                changed = True
                if not paddle:
                    current = part(context, current, tuple(dims), tuple(strides), "slice", known)
            axis += 1
            continue
        if isinstance(item, Unknown):
            at = 0  # which one does not matter for memory
        else:
            at = integer(item)
            if not -size <= at < size:
                raise ShapeError(f"index {at} is out of range for size {size}")
        known = known[at] if isinstance(known, list) and axis == 0 and not isinstance(item, Unknown) else None
        del dims[axis], strides[axis]
        changed = True
        if not paddle:
            current = part(context, current, tuple(dims), tuple(strides), "select", known)
    if paddle and changed:
        current = part(context, x, tuple(dims), tuple(strides), "slice", known)
    if advanced:
        return _gather(context, current, advanced)
    if not changed:
        return view(context, x, shape, "slice", x.value, x.strides)
    return current


def _gather(context: Context, x: Tensor, advanced: list[tuple[int, Any]]) -> Tensor:
    engine = engine_of(context)
    shape = list(x.shape or ())
    indices: list[Tensor] = []
    axes: list[int] = []
    shapes: list[tuple[int, ...]] = []
    for axis, item in advanced:
        t = tensor(context, item)
        if t.dtype == "bool":
            count = numel(t.shape or ())
            if isinstance(t.value, list):
                count = sum(1 for v in t.value if v)
            else:
                chosen = routing.selected(context, t)
                count = count if chosen is None else chosen
                context.findings.gap(
                    "mask", context.where, "how many elements a mask selects depends on values", assumed=count
                )
            axes += list(range(axis, axis + len(t.shape or ())))
            shapes.append((count,))
            indices.append(t)
        else:
            axes.append(axis)
            shapes.append(t.shape or ())
            indices.append(t)
    result = broadcast(*shapes)
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    rest_before = [s for i, s in enumerate(shape) if i not in axes and i < axes[0]]
    rest_after = [s for i, s in enumerate(shape) if i not in axes and i >= axes[0]]
    out = (*rest_before, *result, *rest_after) if together else (*result, *rest_before, *rest_after)
    mask = indices[0].dtype == "bool"
    modes: list[Mode] = ["fresh"]
    modes += ["none"] * len(indices)
    saved: list[Any] = (
        [int(8 * numel(shapes[0]) * len(axes))] if mask else [t for t in indices if t.storage is not None]
    )
    return engine.apply(
        "index",
        [x, *(t for t in indices if t.storage is not None)],
        out,
        x.dtype,
        saved=saved,
        grad=modes,
        kernel="gather_nd" if engine.framework == "paddle" else "index",
    )


@operator([f"{f}.Tensor.__getitem__" for f in ("torch", "paddle")])
def getitem(context: Context, input: Value, key: Value) -> Value:
    """``x[key]``."""
    return index(context, tensor(context, input), key)


@operator([f"{f}.Tensor.__setitem__" for f in ("torch", "paddle")])
def setitem(context: Context, input: Value, key: Value, value: Value) -> Value:
    """``x[key] = value``: overwritten in place; the value gets its share of the gradient."""
    engine = engine_of(context)
    x = tensor(context, input)
    if (
        isinstance(x.value, list)
        and isinstance(key, int)
        and isinstance(value, (int, float))
        and -len(x.value) <= key < len(x.value)
    ):
        x.value[key] = value
    else:
        x.value = None
    given = tensor(context, value, x)
    if given.storage is None:
        engine.record("fill_", "set_value", x.dtype, (), bytes_moved=0)
        if not (x.requires_grad and engine.grad_enabled and x.node is not None):
            return None
        engine.apply("set_value", [x], x.shape or (), x.dtype, inplace=x)
        return None
    kept = [given] if engine.framework == "paddle" else []
    engine.apply("set_value", [x, given], x.shape or (), x.dtype, saved=kept, inplace=x, kernel="set_value_with_tensor")
    return None


@operator([f"{f}.Tensor.__contains__" for f in ("torch", "paddle")])
def contains(context: Context, input: Value, other: Value) -> Value:
    """``value in x``."""
    del input, other
    return Unknown("whether a tensor holds a value", context.where, hint="bool")


@operator(
    [*names("gather", only="torch"), "torch.take_along_dim", "torch.Tensor.take_along_dim"], rename={"dim": "axis"}
)
def gather(context: Context, input: Value, axis: Value, index: Value = None, **kwargs: Value) -> Value:
    """Elements by index along an axis; PyTorch keeps the input too."""
    del kwargs
    x = tensor(context, input)
    if isinstance(axis, Tensor):
        axis, index = index, axis
    idx = tensor(context, index)
    return engine_of(context).apply(
        "gather", [x, idx], idx.shape or (), x.dtype, saved=[x, idx], grad=("fresh", "none"), kernel="take_along_axis"
    )


@operator(names("gather", only="paddle"), rename={})
def paddle_gather(context: Context, x: Value, index: Value, axis: Value = None, **kwargs: Value) -> Value:
    """Whole slices by index."""
    del kwargs
    a, idx = tensor(context, x), tensor(context, index)
    shape = a.shape or ()
    at = axis_of(integer(axis, 0), len(shape))
    picked = (idx.shape or ()) if len(idx.shape or ()) < 2 else (numel(idx.shape or ()),)
    return engine_of(context).apply(
        "gather", [a, idx], (*shape[:at], *picked, *shape[at + 1 :]), a.dtype, saved=[idx], grad=("fresh", "none")
    )


@operator(["paddle.take_along_axis", "paddle.Tensor.take_along_axis"], rename={"x": "arr"})
def take_along_axis(context: Context, arr: Value, indices: Value, axis: Value = 0, broadcast: Value = True) -> Value:
    """Elements by index along an axis."""
    del axis, broadcast
    x, idx = tensor(context, arr), tensor(context, indices)
    # both are broadcast (copied) first, and the copies are kept
    return engine_of(context).apply(
        "take_along_axis", [x, idx], idx.shape or (), x.dtype, saved=[x.nbytes, idx.nbytes], grad=("fresh", "none")
    )


def _selected(context: Context, input: Value, axis: Value, index: Value) -> Value:
    x, idx = tensor(context, input), tensor(context, index)
    shape = x.shape or ()
    at = axis_of(integer(axis), len(shape))
    out = (*shape[:at], numel(idx.shape or ()), *shape[at + 1 :])
    return engine_of(context).apply("index_select", [x, idx], out, x.dtype, saved=[idx], grad=("fresh", "none"))


@operator(names("index_select", only="torch"), rename={})
def index_select(context: Context, input: Value, dim: Value, index: Value) -> Value:
    """Whole slices by index."""
    return _selected(context, input, dim, index)


@operator(names("index_select", only="paddle"), rename={"input": "x"})
def paddle_index_select(context: Context, x: Value, index: Value, axis: Value = 0) -> Value:
    """Whole slices by index."""
    return _selected(context, x, axis, index)


@operator([*names("gather_nd")], rename={"x": "input"})
def gather_nd(context: Context, input: Value, index: Value) -> Value:
    """Slices by coordinate rows."""
    x, idx = tensor(context, input), tensor(context, index)
    shape, rows = x.shape or (), idx.shape or ()
    return engine_of(context).apply(
        "gather_nd", [x, idx], (*rows[:-1], *shape[rows[-1] :]), x.dtype, saved=[x, idx], grad=("fresh", "none")
    )


@operator([*names("index_sample", only="paddle")], rename={"x": "input"})
def index_sample(context: Context, input: Value, index: Value) -> Value:
    """Elements by index per row."""
    x, idx = tensor(context, input), tensor(context, index)
    return engine_of(context).apply(
        "index_sample", [x, idx], idx.shape or (), x.dtype, saved=[x, idx], grad=("fresh", "none")
    )


@operator([*names("masked_select")], rename={"x": "input"})
def masked_select(context: Context, input: Value, mask: Value) -> Value:
    """What a mask selects; taken as everything, which is the largest need."""
    x, m = tensor(context, input), tensor(context, mask)
    count = numel(broadcast(x.shape or (), m.shape or ()))
    context.findings.gap("mask", context.where, "how many elements a mask selects depends on values", assumed=count)
    return engine_of(context).apply("masked_select", [x, m], (count,), x.dtype, saved=[x, m], grad=("fresh", "none"))


@operator([*names("take")], rename={"x": "input"})
def take(context: Context, input: Value, index: Value, mode: Value = "raise") -> Value:
    """Elements of the flattened tensor."""
    del mode
    x, idx = tensor(context, input), tensor(context, index)
    return engine_of(context).apply("take", [x, idx], idx.shape or (), x.dtype, saved=[idx], grad=("fresh", "none"))


def _scatter(name: str, inplace: bool) -> None:
    def call(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
        engine = engine_of(context)
        x = tensor(context, input)
        given = [
            a
            for a in (*args, *kwargs.values())
            if isinstance(a, Tensor) and a.shape is not None and a.storage is not None
        ]
        indices = [t for t in given if t.dtype in ("int64", "int32", "bool")]
        updates = [t for t in given if t not in indices][:1]
        return engine.apply(
            name,
            [x, *updates],
            x.shape or (),
            x.dtype,
            saved=indices,
            inplace=x if inplace else None,
            grad=("reuse" if engine.framework == "paddle" else "alias" if "add" in name else "fresh", "fresh"),
            kernel="scatter",
        )

    call.__name__ = name
    operator(names(name))(call)


for _name in (
    "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_put", "put_along_axis",
    "scatter_nd_add", "masked_scatter", "select_scatter", "slice_scatter", "diagonal_scatter",
):  # fmt: skip
    _scatter(_name, inplace=False)
    _scatter(_name + "_", inplace=True)


@operator(["paddle.scatter_nd"], rename={})
def scatter_nd(context: Context, index: Value, updates: Value, shape: Value) -> Value:
    """Updates at coordinates of zeros."""
    idx, up = tensor(context, index), tensor(context, updates)
    return engine_of(context).apply("scatter_nd", [up], integers(shape), up.dtype, saved=[idx])


@operator(["torch.select", "torch.Tensor.select"], rename={"dim": "axis"})
def select(context: Context, input: Value, axis: Value, index: Value) -> Value:
    """One slice of an axis (a view)."""
    del index
    x = tensor(context, input)
    shape, strides = list(x.shape or ()), list(strides_of(x))
    at = axis_of(integer(axis), len(shape))
    del shape[at], strides[at]
    return part(context, x, tuple(shape), tuple(strides), "select")


@operator(
    [
        "paddle.slice",
        "paddle.Tensor.slice",
        "paddle.strided_slice",
        "paddle.Tensor.strided_slice",
        "paddle.tensor.slice",
    ],
    rename={"x": "input"},
)
def paddle_slice(
    context: Context, input: Value, axes: Value, starts: Value, ends: Value, strides: Value = None
) -> Value:
    """Ranges along several axes (a view)."""
    x = tensor(context, input)
    key: list[Any] = [slice(None)] * len(x.shape or ())
    starts = starts.value if isinstance(starts, Tensor) else starts
    ends = ends.value if isinstance(ends, Tensor) else ends
    steps = list(strides) if isinstance(strides, (list, tuple)) else [1] * len(list(axes))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=False):
        key[axis_of(integer(axis), len(key))] = slice(integer(start), integer(end), integer(step))
    return index(context, x, tuple(key))


@operator(["paddle.crop", "paddle.Tensor.crop"], rename={"x": "input"})
def crop(context: Context, input: Value, shape: Value = None, offsets: Value = None) -> Value:
    """A corner of a given shape (a copy)."""
    del offsets
    x = tensor(context, input)
    dims = tuple(o if s == -1 else s for s, o in zip(integers(shape), x.shape or (), strict=True))
    return engine_of(context).apply("crop", [x], dims, x.dtype)


@operator(names("topk"), rename={"x": "input", "dim": "axis"})
def topk(context: Context, input: Value, k: Value, axis: Value = None, *args: Value, **kwargs: Value) -> Value:
    """The ``k`` largest and where they were."""
    del args, kwargs
    x = tensor(context, input)
    shape = list(x.shape or ())
    shape[axis_of(integer(axis, -1), len(shape))] = integer(k)
    values, indices = engine_of(context).apply_multi(
        "topk",
        [x],
        [(tuple(shape), x.dtype), (tuple(shape), "int64")],
        saved=[x, ("output", 1)] if context.engine.framework == "paddle" else [("output", 1)],
    )
    routing.picked(context, indices, (x.shape or (1,))[axis_of(integer(axis, -1), len(shape))])
    return named_pair(context, values, indices)


@operator(names("kthvalue", "mode"), rename={"x": "input", "dim": "axis"})
def kthvalue(context: Context, input: Value, k: Value = 1, axis: Value = -1, keepdim: Value = False) -> Value:
    """One value along an axis and where it was."""
    del k
    x = tensor(context, input)
    shape = list(x.shape or ())
    at = axis_of(integer(axis), len(shape))
    shape[at : at + 1] = [1] if keepdim is True else []
    values, indices = engine_of(context).apply_multi(
        "kthvalue", [x], [(tuple(shape), x.dtype), (tuple(shape), "int64")], saved=[("output", 1)]
    )
    return named_pair(context, values, indices)


@operator(names("sort", "msort"), rename={"x": "input", "dim": "axis"})
def sort(context: Context, input: Value, axis: Value = -1, descending: Value = False, stable: Value = False) -> Value:
    """Sorted along an axis; PyTorch gives where the values were too."""
    del axis, descending, stable
    x = tensor(context, input)
    shape = x.shape or ()
    values, indices = engine_of(context).apply_multi(
        "sort", [x], [(shape, x.dtype), (shape, "int64")], saved=[("output", 1)], kernel="argsort"
    )
    return named_pair(context, values, indices) if context.engine.framework == "torch" else values


@operator(names("argsort"), rename={"x": "input", "dim": "axis"})
def argsort(
    context: Context, input: Value, axis: Value = -1, descending: Value = False, stable: Value = False
) -> Value:
    """The order that sorts."""
    del axis, descending, stable
    x = tensor(context, input)
    scratch = int(numel(x.shape or ()) * size_of(x.dtype))
    return engine_of(context).apply("argsort", [x], x.shape or (), "int64", grad="none", workspace_bytes=scratch)


@operator([*names("isin")], rename={"x": "elements", "test_x": "test_elements"})
def isin(context: Context, elements: Value, test_elements: Value, **kwargs: Value) -> Value:
    """Which elements are among others."""
    del kwargs, test_elements
    x = tensor(context, elements)
    return engine_of(context).apply("isin", [x], x.shape or (), "bool", grad="none")


@operator([*names("multiplex", method=False, only="paddle")], rename={})
def multiplex(context: Context, inputs: Value, index: Value) -> Value:
    """Rows from several tensors by index."""
    parts = [tensor(context, i) for i in inputs]
    idx = tensor(context, index)
    if not parts:
        raise Unknowable("multiplex of nothing")
    return engine_of(context).apply("multiplex", parts, parts[0].shape or (), saved=[idx])


@operator(["paddle.shard_index"], rename={})
def shard_index(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Indices within one shard."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply("shard_index", [x], x.shape or (), x.dtype, grad="none")
