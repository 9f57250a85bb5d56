"""Shape operators: reshape, transpose, expand, concatenate, split. PyTorch's are views where strides allow;
PaddlePaddle's transpose, reshape and slice are views too (stride mechanism of release 2.6 and later), the rest copy.
"""

from __future__ import annotations

import itertools
from typing import Any

from oarlock_profiler.core.engine.autograd import Grad, Node
from oarlock_profiler.core.engine.engine import Engine, promoted_dtype
from oarlock_profiler.core.engine.shapes import ShapeError, axis_of, broadcast, flatten, numel, reshape
from oarlock_profiler.core.engine.strides import Strides, as_view
from oarlock_profiler.core.engine.strides import contiguous as contiguous_strides
from oarlock_profiler.core.engine.strides import is_contiguous as in_order
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Unknown, Value
from oarlock_profiler.core.overlays.calling import (
    Unknowable,
    dtype_name,
    engine_of,
    integer,
    integers,
    names,
    operator,
    repeat,
    sizes,
    tensor,
)
from oarlock_profiler.core.overlays.elementwise import cast

LIBRARIES = ("torch", "paddle")


def view(
    context: Context, x: Tensor, shape: tuple[int, ...], name: str, value: Any = None, strides: Strides | None = None
) -> Tensor:
    """The same memory in another shape (``strides`` None.

    In that shape's own order); the gradient is handed on the same way.
    """
    made = engine_of(context).apply(name, [x], shape, x.dtype, view=x, grad="alias", value=value)
    made.strides = strides
    return made


def part(context: Context, x: Tensor, shape: tuple[int, ...], strides: Strides, name: str, value: Any = None) -> Tensor:
    """Some of the elements, as a view; backward allocates a whole gradient for ``x``."""
    made = engine_of(context).apply(name, [x], shape, x.dtype, view=x, value=value)
    made.strides = strides
    return made


def strides_of(x: Tensor) -> Strides:
    """Strides in elements."""
    return x.strides if x.strides is not None else contiguous_strides(x.shape or ())


def is_contiguous(x: Tensor) -> bool:
    """Whether memory is in the shape's order."""
    return in_order(x.shape or (), x.strides)


def reshaped(context: Context, x: Tensor, target: tuple[int, ...], name: str = "reshape", value: Any = None) -> Tensor:
    """``target`` over the same elements: a view where strides allow, else a copy."""
    found = as_view(x.shape or (), x.strides, target)
    if found is None:
        return engine_of(context).apply(name, [x], target, x.dtype, grad="alias", kernel="reshape")
    return view(context, x, target, name, value, found if x.strides is not None else None)


def _resolve(x: Tensor, target: tuple[int, ...], zero_copies: bool) -> tuple[int, ...]:
    return reshape(x.shape or (), target, zero_copies=zero_copies)


def _loose_sizes(args: Any) -> tuple[int, ...]:
    """Sizes of which one that is unknown may be inferred."""
    items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    if len(items) == 1 and isinstance(items[0], Tensor) and isinstance(items[0].value, list):
        return tuple(int(v) for v in items[0].value)
    unknown = [i for i, v in enumerate(items) if isinstance(v, Unknown)]
    if len(unknown) == 1 and -1 not in [v for v in items if isinstance(v, int)]:
        items[unknown[0]] = -1
    return tuple(integer(v) for v in items)


@operator([*names("reshape", "view"), "torch.Tensor.unflatten_view"])
def reshape_(context: Context, input: Value, *shape: Value, **kwargs: Value) -> Value:
    """Another shape over the same elements; copies only when memory order forbids a view."""
    x = tensor(context, input)
    given = shape or (kwargs.get("shape", kwargs.get("size", kwargs.get("shape_or_dtype"))),)
    as_type = dtype_name(given[0]) if len(given) == 1 else None
    if as_type is not None:
        return cast(context, x, as_type)
    target = _resolve(x, _loose_sizes(given), context.engine.framework == "paddle")
    return reshaped(context, x, target, value=x.value if len(target) == 1 and isinstance(x.value, list) else None)


@operator(names("reshape_", only="paddle"))
def reshape_in_place(context: Context, input: Value, *shape: Value, **kwargs: Value) -> Value:
    """Reshape the tensor itself."""
    x = tensor(context, input)
    given = shape or (kwargs.get("shape"),)
    x.shape = _resolve(x, _loose_sizes(given), True)
    return x


@operator(
    [
        "torch.Tensor.view_as",
        "torch.Tensor.reshape_as",
        "paddle.view_as",
        "paddle.Tensor.view_as",
        "paddle.reshape_as",
        "paddle.Tensor.reshape_as",
    ]
)
def view_as(context: Context, input: Value, other: Value) -> Value:
    """The other's shape."""
    x, y = tensor(context, input), tensor(context, other)
    return reshaped(context, x, _resolve(x, y.shape or (), False))


@operator(
    names("flatten", "ravel"),
    rename={"x": "input", "start_axis": "start", "stop_axis": "stop", "start_dim": "start", "end_dim": "stop"},
)
def flatten_(context: Context, input: Value, start: Value = 0, stop: Value = -1) -> Value:
    """Join several axes."""
    x = tensor(context, input)
    shape = flatten(x.shape or (), integer(start), integer(stop))
    return reshaped(context, x, shape, "flatten", x.value if isinstance(x.value, list) else None)


@operator([*names("unflatten")], rename={"x": "input", "dim": "axis", "sizes": "shape"})
def unflatten(context: Context, input: Value, axis: Value, shape: Value) -> Value:
    """Split one axis in several."""
    x = tensor(context, input)
    old = x.shape or ()
    at = axis_of(integer(axis), len(old))
    inner = reshape((old[at],), integers(shape))
    return reshaped(context, x, (*old[:at], *inner, *old[at + 1 :]), "unflatten")


@operator(names("squeeze", "squeeze_"))
def squeeze(context: Context, input: Value, axis: Value = None) -> Value:
    """Drop axes of size 1."""
    x = tensor(context, input)
    shape = x.shape or ()
    if axis is None or axis == []:
        drop = {i for i, s in enumerate(shape) if s == 1}
    else:
        drop = {axis_of(a, len(shape)) for a in integers(axis)}
    places = [i for i, s in enumerate(shape) if not (i in drop and s == 1)]
    kept = tuple(shape[i] for i in places)
    value = (
        x.value[0]
        if isinstance(x.value, list) and len(x.value) == 1 and not kept
        else x.value
        if len(kept) == len(shape)
        else None
    )
    return view(
        context, x, kept, "squeeze", value, tuple(x.strides[i] for i in places) if x.strides is not None else None
    )


@operator(names("unsqueeze", "unsqueeze_"))
def unsqueeze(context: Context, input: Value, axis: Value = 0) -> Value:
    """Insert axes of size 1."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    strides = list(x.strides) if x.strides is not None else None
    for a in integers(axis):
        at = a + len(shape) + 1 if a < 0 else a
        if not 0 <= at <= len(shape):
            raise ShapeError(f"axis {a} is out of range for {len(shape)} dimensions")
        shape.insert(at, 1)
        if strides is not None:
            strides.insert(at, strides[at] * shape[at + 1] if at < len(strides) else 1)
    value = [x.value] if isinstance(x.value, (int, float)) and shape == [1] else None
    return view(context, x, tuple(shape), "unsqueeze", value, tuple(strides) if strides is not None else None)


@operator(
    [
        "torch.Tensor.unsqueeze_",
        "paddle.Tensor.unsqueeze_",
        "paddle.unsqueeze_",
        "torch.Tensor.squeeze_",
        "paddle.squeeze_",
        "paddle.Tensor.squeeze_",
    ]
)
def unsqueeze_in_place(context: Context, input: Value, axis: Value = 0) -> Value:
    """Change the tensor's own shape."""
    x = tensor(context, input)
    x.shape = unsqueeze(context, x, axis).shape
    return x


def _permuted(context: Context, x: Tensor, order: tuple[int, ...]) -> Tensor:
    shape = x.shape or ()
    order = tuple(axis_of(a, len(shape)) for a in order)
    strides = strides_of(x)
    return view(context, x, tuple(shape[a] for a in order), "transpose", strides=tuple(strides[a] for a in order))


@operator(
    [
        "torch.permute",
        "torch.Tensor.permute",
        "paddle.permute",
        "paddle.Tensor.permute",
        "paddle.transpose",
        "paddle.Tensor.transpose",
        "paddle.tensor.transpose",
        "paddle.transpose_",
        "paddle.Tensor.transpose_",
    ],
    rename={"x": "input", "dims": "perm"},
)
def permute(context: Context, input: Value, *perm: Value, **kwargs: Value) -> Value:
    """Reorder all axes (a view)."""
    x = tensor(context, input)
    return _permuted(context, x, sizes(perm) if perm else integers(kwargs["perm"]))


@operator(
    [
        "torch.transpose",
        "torch.Tensor.transpose",
        "torch.swapaxes",
        "torch.Tensor.swapaxes",
        "torch.swapdims",
        "paddle.swapaxes",
        "paddle.Tensor.swapaxes",
        "torch.Tensor.transpose_",
        "paddle.transpose_two",
    ],
    rename={"x": "input", "dim0": "first", "dim1": "second", "axis0": "first", "axis1": "second"},
)
def transpose(context: Context, input: Value, first: Value, second: Value = None) -> Value:
    """Swap two axes (a view)."""
    x = tensor(context, input)
    if second is None:
        return _permuted(context, x, integers(first))
    rank = len(x.shape or ())
    a, b = axis_of(integer(first), rank), axis_of(integer(second), rank)
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return _permuted(context, x, tuple(order))


@operator([*names("t"), "torch.Tensor.t_", "torch.adjoint", "torch.Tensor.adjoint"])
def matrix_transpose(context: Context, input: Value) -> Value:
    """A matrix transposed."""
    x = tensor(context, input)
    rank = len(x.shape or ())
    return x if rank < 2 else _permuted(context, x, (*range(rank - 2), rank - 1, rank - 2))


@operator([*names("moveaxis", "movedim")], rename={"x": "input"})
def moveaxis(context: Context, input: Value, source: Value, destination: Value) -> Value:
    """Move axes elsewhere."""
    x = tensor(context, input)
    rank = len(x.shape or ())
    sources = [axis_of(a, rank) for a in integers(source)]
    targets = [axis_of(a, rank) for a in integers(destination)]
    order = [a for a in range(rank) if a not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return _permuted(context, x, tuple(order))


@operator([*names("contiguous")])
def contiguous(context: Context, input: Value, **kwargs: Value) -> Value:
    """Memory in the shape's order: the tensor itself, or a copy."""
    del kwargs
    x = tensor(context, input)
    if is_contiguous(x):
        return x
    return engine_of(context).apply("contiguous", [x], x.shape or (), x.dtype, grad="alias", kernel="assign")


def _expanded(x: Tensor, target: tuple[int, ...]) -> tuple[int, ...]:
    shape = x.shape or ()
    offset = len(target) - len(shape)
    filled = tuple((shape[i - offset] if i >= offset else 1) if s == -1 else s for i, s in enumerate(target))
    return broadcast(shape, filled)


@operator(
    [
        "torch.Tensor.expand",
        "paddle.expand",
        "paddle.Tensor.expand",
        "paddle.tensor.expand",
        "torch.broadcast_to",
        "torch.Tensor.broadcast_to",
        "paddle.broadcast_to",
        "paddle.Tensor.broadcast_to",
        "torch.expand_copy",
    ],
    rename={"x": "input"},
)
def expand(context: Context, input: Value, *shape: Value, **kwargs: Value) -> Value:
    """Broadcast to a shape: a view in PyTorch, a copy in PaddlePaddle."""
    x = tensor(context, input)
    target = _expanded(x, sizes(shape or (kwargs.get("shape", kwargs.get("size")),)))
    return _expand_to(context, x, target)


def _expand_to(context: Context, x: Tensor, target: tuple[int, ...]) -> Tensor:
    if context.engine.framework == "torch":
        if target == x.shape:
            return view(context, x, target, "expand", strides=x.strides)
        old, lead = strides_of(x), len(target) - len(x.shape or ())
        shape = (1,) * lead + (x.shape or ())
        strides = tuple(0 if s != t else u for s, t, u in zip(shape, target, (0,) * lead + old, strict=True))
        return part(context, x, target, strides, "expand")
    return engine_of(context).apply("expand", [x], target, x.dtype)


@operator(
    ["torch.Tensor.expand_as", "paddle.expand_as", "paddle.Tensor.expand_as"], rename={"x": "input", "y": "other"}
)
def expand_as(context: Context, input: Value, other: Value) -> Value:
    """Broadcast to another's shape."""
    x = tensor(context, input)
    return _expand_to(context, x, _expanded(x, tensor(context, other).shape or ()))


@operator([*names("broadcast_tensors", method=False)])
def broadcast_tensors(context: Context, *inputs: Value) -> Value:
    """All brought to their common shape."""
    items = list(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else list(inputs)
    made = [tensor(context, i) for i in items]
    target = broadcast(*(t.shape or () for t in made))
    return [_expand_to(context, t, target) for t in made]


@operator(["torch.broadcast_shapes", "paddle.broadcast_shape", "paddle.broadcast_shapes"])
def broadcast_shapes(context: Context, *shapes: Value) -> Value:
    """The common shape."""
    found = broadcast(*(integers(s) for s in shapes))
    return list(found) if context.engine.framework == "paddle" else found


@operator(
    [
        "torch.Tensor.repeat",
        "torch.tile",
        "torch.Tensor.tile",
        "paddle.tile",
        "paddle.Tensor.tile",
        "paddle.Tensor.repeat",
        "paddle.tensor.tile",
    ],
    rename={"x": "input", "repeat_times": "times", "repeats": "times", "dims": "times"},
)
def tile(context: Context, input: Value, *times: Value, **kwargs: Value) -> Value:
    """Repeat along each axis (a copy)."""
    x = tensor(context, input)
    counts = sizes(times) if times else integers(kwargs["times"])
    shape = x.shape or ()
    rank = max(len(counts), len(shape))
    old = (1,) * (rank - len(shape)) + shape
    by = (1,) * (rank - len(counts)) + counts
    return engine_of(context).apply("tile", [x], tuple(a * b for a, b in zip(old, by, strict=True)), x.dtype)


@operator(names("repeat_interleave"), rename={"x": "input", "dim": "axis"})
def repeat_interleave(
    context: Context, input: Value, repeats: Value = None, axis: Value = None, output_size: Value = None
) -> Value:
    """Repeat each element along an axis."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    if axis is None:
        shape, at = [numel(shape)], 0
    else:
        at = axis_of(integer(axis), len(shape))
    if isinstance(output_size, int):
        shape[at] = output_size
    elif isinstance(repeats, Tensor) and isinstance(repeats.value, list):
        shape[at] = int(sum(repeats.value)) if len(repeats.value) > 1 else shape[at] * int(repeats.value[0])
    elif isinstance(repeats, Tensor) and numel(repeats.shape or ()) > 1:
        raise Unknowable("how often each element is repeated depends on values")
    else:
        shape[at] *= integer(repeats)
    return engine_of(context).apply("repeat_interleave", [x], shape, x.dtype)


# --- joining
# -----------------------------------------------------------------------------------------------------------
def _tensors(context: Context, value: Value) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, (list, tuple)):
        raise Unknowable("the list of tensors is not known")
    return [tensor(context, v) for v in value]


def _slices(engine: Engine, node: Node, grads: list[Grad | None]) -> list[Grad | None]:
    """Backward of concatenation in PyTorch: each input's gradient is a view (narrow) of the incoming one."""
    incoming = grads[0]
    assert incoming is not None  # noqa: S101  # the pass calls a rule only with a gradient
    engine.record(f"{node.name}_backward", f"{node.kernel}_grad", incoming.dtype, (), bytes_moved=0)
    return [
        Grad(incoming.storage, e.shape, e.dtype, shared=True, borrowed=True) if e is not None else None
        for e in node.edges
    ]


@operator(names("concat", "cat", "concatenate"), rename={"x": "tensors", "dim": "axis", "input": "tensors"})
def concat(context: Context, tensors: Value, axis: Value = 0) -> Value:
    """Joined along an axis (a copy)."""
    parts = [t for t in _tensors(context, tensors) if t.shape != (0,)] or _tensors(context, tensors)
    shape = list(parts[0].shape or ())
    at = axis_of(integer(axis), len(shape))
    for part in parts[1:]:
        other = part.shape or ()
        if len(other) != len(shape) or any(
            a != b for i, (a, b) in enumerate(zip(shape, other, strict=True)) if i != at
        ):
            raise ShapeError(
                "cannot join shapes " + ", ".join(str(list(p.shape or ())) for p in parts[:8]) + f" along axis {at}"
            )
    shape[at] = sum((p.shape or ())[at] for p in parts)
    value = None
    if len(shape) == 1 and all(isinstance(p.value, list) for p in parts):
        value = [v for p in parts for v in p.value]
    return engine_of(context).apply(
        "concat",
        parts,
        shape,
        promoted_dtype(parts),
        rule=_slices if context.engine.framework == "torch" else None,
        value=value,
    )


@operator(names("stack"), rename={"x": "tensors", "dim": "axis"})
def stack(context: Context, tensors: Value, axis: Value = 0) -> Value:
    """Joined along a new axis (a copy)."""
    if isinstance(tensors, Tensor):
        tensors = unbind(context, tensors)
    parts = _tensors(context, tensors)
    if not parts:
        raise ShapeError("stack of no tensors")
    shape = list(parts[0].shape or ())
    for part in parts:
        if list(part.shape or ()) != shape:
            raise ShapeError(f"stack of different shapes: {shape} and {list(part.shape or ())}")
    at = integer(axis)
    shape.insert(at + len(shape) + 1 if at < 0 else at, len(parts))
    value = (
        [p.value for p in parts] if len(shape) == 1 and all(isinstance(p.value, (int, float)) for p in parts) else None
    )
    inputs = [p for p in parts if p.storage is not None]
    if not inputs:
        return engine_of(context).tensor(shape, promoted_dtype(parts), value=value, op="stack")
    return engine_of(context).apply(
        "stack",
        inputs,
        shape,
        promoted_dtype(parts),
        rule=_slices if context.engine.framework == "torch" else None,
        value=value,
    )


def _stacked(name: str, axis: int, minimum: int) -> None:
    def call(context: Context, tensors: Value) -> Value:
        parts = _tensors(context, tensors)
        wide = []
        for part in parts:
            shape = part.shape or ()
            if len(shape) < minimum:
                part = view(
                    context,
                    part,
                    (1,) * (minimum - len(shape)) + shape
                    if name != "dstack"
                    else (*shape, *(1,) * (minimum - len(shape))),
                    "reshape",
                )
            wide.append(part)
        at = axis if len(wide[0].shape or ()) > axis else 0
        return concat(context, wide, at)

    call.__name__ = name
    operator(names(name, method=False), rename={"x": "tensors"})(call)


_stacked("hstack", 1, 1)
_stacked("vstack", 0, 2)
_stacked("dstack", 2, 3)
_stacked("row_stack", 0, 2)
_stacked("column_stack", 1, 2)


@operator(names("add_n", method=False, only="paddle"), rename={"x": "inputs"})
def add_n(context: Context, inputs: Value) -> Value:
    """Sum of several tensors of one shape."""
    parts = _tensors(context, inputs)
    return engine_of(context).apply("add_n", parts, parts[0].shape or (), grad="alias")


# --- taking apart
# ------------------------------------------------------------------------------------------------------
def _gathered(engine: Engine, node: Node, grads: list[Grad | None]) -> list[Grad | None]:
    """Backward of split, chunk and unbind: one joined gradient (missing parts are filled with zeros first)."""
    incoming = next(g for g in grads if g is not None)
    edge = node.edges[0]
    if edge is None:
        return [None]
    made = engine.fresh_grad(edge.shape, edge.dtype, edge.device, node.name)
    missing = made.nbytes - sum(g.nbytes for g in grads if g is not None)
    if node.name == "unbind" and engine.framework == "torch":
        missing = 0  # a zero without memory stands for them there
    zeros = engine.allocate(missing, "temporary", edge.device, "zeros") if missing > 0 else None
    del zeros
    engine.record(f"{node.name}_backward", "concat", incoming.dtype, edge.shape, bytes_moved=2 * made.nbytes)
    return [made]


def _apart(context: Context, x: Tensor, axis: int, parts: list[int], name: str) -> tuple[Tensor, ...] | list[Tensor]:
    shape = x.shape or ()
    outputs = [((*shape[:axis], part, *shape[axis + 1 :]), x.dtype) for part in parts]
    torch = context.engine.framework == "torch"
    values: list[Any] = []
    if isinstance(x.value, list):
        start = 0
        for part in parts:
            values.append(x.value[start : start + part])
            start += part
    views = [x] * len(parts) if torch else ()
    made = engine_of(context).apply_multi(name, [x], outputs, views=views, rule=_gathered, values=values)
    if torch:
        for out in made:
            out.strides = strides_of(x)
    return tuple(made) if torch else made


@operator(
    names("split", "split_with_sizes"),
    rename={
        "x": "input",
        "tensor": "input",
        "dim": "axis",
        "split_size": "parts",
        "num_or_sections": "parts",
        "split_size_or_sections": "parts",
        "split_sizes": "parts",
        "num": "parts",
    },
)
def split(context: Context, input: Value, parts: Value, axis: Value = 0) -> Value:
    """PyTorch: pieces of a size (or sizes). PaddlePaddle: a number of pieces (or sizes)."""
    x = tensor(context, input)
    shape = x.shape or ()
    at = axis_of(integer(axis), len(shape))
    total = shape[at]
    if isinstance(parts, (list, tuple)) or (isinstance(parts, Tensor) and isinstance(parts.value, list)):
        found = list(integers(parts))
        if -1 in found:
            found[found.index(-1)] = total - sum(v for v in found if v != -1)
        if sum(found) != total:
            raise ShapeError(f"split of {total} into {found}")
    elif context.engine.framework == "torch":
        size = integer(parts)
        if size <= 0:
            raise ShapeError(f"split into pieces of {size}")
        found = [size] * (total // size) + ([total % size] if total % size else [])
    else:
        count = integer(parts)
        if count <= 0 or total % count:
            raise ShapeError(f"cannot split {total} in {count} equal parts")
        found = [total // count] * count
    return _apart(context, x, at, found, "split")


@operator([*names("chunk"), "torch.Tensor.chunk"], rename={"x": "input", "dim": "axis"})
def chunk(context: Context, input: Value, chunks: Value, axis: Value = 0) -> Value:
    """Up to ``chunks`` pieces of equal size."""
    x = tensor(context, input)
    at = axis_of(integer(axis), len(x.shape or ()))
    total = (x.shape or ())[at]
    size = -(-total // integer(chunks))
    return _apart(context, x, at, [size] * (total // size) + ([total % size] if total % size else []), "split")


@operator(
    [*names("tensor_split")],
    rename={"x": "input", "dim": "axis", "num_or_indices": "parts", "indices_or_sections": "parts"},
)
def tensor_split(context: Context, input: Value, parts: Value, axis: Value = 0) -> Value:
    """Pieces at given positions, or nearly equal ones."""
    x = tensor(context, input)
    at = axis_of(integer(axis), len(x.shape or ()))
    total = (x.shape or ())[at]
    if isinstance(parts, (list, tuple)):
        cuts = [0, *(min(c, total) for c in integers(parts)), total]
        found = [b - a for a, b in itertools.pairwise(cuts)]
    else:
        count = integer(parts)
        found = [total // count + (1 if i < total % count else 0) for i in range(count)]
    return _apart(context, x, at, found, "split")


@operator(names("unbind", "unstack"), rename={"x": "input", "dim": "axis"})
def unbind(context: Context, input: Value, axis: Value = 0, num: Value = None) -> Value:
    """Slices along an axis, the axis dropped."""
    del num
    x = tensor(context, input)
    shape = x.shape or ()
    at = axis_of(integer(axis), len(shape))
    if shape[at] > 100_000:
        raise Unknowable(f"{shape[at]} slices are too many to follow")
    rest = (*shape[:at], *shape[at + 1 :])
    torch = context.engine.framework == "torch"
    values = x.value if isinstance(x.value, list) else ()
    made = engine_of(context).apply_multi(
        "unbind",
        [x],
        [(rest, x.dtype)] * shape[at],
        views=[x] * shape[at] if torch else (),
        rule=_gathered,
        values=values,
    )
    if torch:
        old = strides_of(x)
        for out in made:
            out.strides = (*old[:at], *old[at + 1 :])
    return tuple(made) if torch else made


@operator([*names("flip", "fliplr", "flipud", "reverse")], rename={"x": "input", "dims": "axis"})
def flip(context: Context, input: Value, *axis: Value, **kwargs: Value) -> Value:
    """Reversed along axes (a copy)."""
    del axis, kwargs
    x = tensor(context, input)
    return engine_of(context).apply(
        "flip", [x], x.shape or (), x.dtype, value=x.value[::-1] if isinstance(x.value, list) else None
    )


@operator([*names("roll", "rot90")], rename={"x": "input", "dims": "axis"})
def roll(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Rolled along axes (a copy)."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply("roll", [x], x.shape or (), x.dtype)


@operator([*names("tril", "triu", "tril_", "triu_")], rename={"x": "input"})
def triangle(context: Context, input: Value, diagonal: Value = 0) -> Value:
    """One triangle of matrices (a copy)."""
    del diagonal
    x = tensor(context, input)
    return engine_of(context).apply("tril", [x], x.shape or (), x.dtype, kernel="tril_triu")


@operator([*names("diagonal")], rename={"x": "input", "dim1": "axis1", "dim2": "axis2"})
def diagonal(context: Context, input: Value, offset: Value = 0, axis1: Value = 0, axis2: Value = 1) -> Value:
    """A diagonal (a view)."""
    x = tensor(context, input)
    shape = x.shape or ()
    a, b = axis_of(integer(axis1), len(shape)), axis_of(integer(axis2), len(shape))
    shift = integer(offset)
    length = max(0, min(shape[a], shape[b] - shift) if shift >= 0 else min(shape[a] + shift, shape[b]))
    rest = tuple(s for i, s in enumerate(shape) if i not in (a, b))
    old = strides_of(x)
    strides = (*(t for i, t in enumerate(old) if i not in (a, b)), old[a] + old[b])
    return part(context, x, (*rest, length), strides, "diagonal")


@operator(
    [*names("diag", "diagflat", "diag_embed"), "torch.nn.functional.diag_embed", "paddle.nn.functional.diag_embed"],
    rename={"x": "input"},
)
def diag(context: Context, input: Value, offset: Value = 0, **kwargs: Value) -> Value:
    """A vector as a diagonal matrix, or a matrix's diagonal."""
    del kwargs
    x = tensor(context, input)
    shape = x.shape or ()
    shift = abs(integer(offset))
    if len(shape) == 1 or len(shape) > 2:
        side = shape[-1] + shift
        return engine_of(context).apply("diag", [x], (*shape[:-1], side, side), x.dtype)
    return engine_of(context).apply("diag", [x], (max(0, min(shape) - shift),), x.dtype)


@operator([*names("trace"), "torch.linalg.trace"], rename={"x": "input"})
def trace(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Sum of the diagonal."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply("trace", [x], (x.shape or ())[2:], x.dtype)


@operator(["torch.Tensor.unfold", "paddle.unfold", "paddle.Tensor.unfold"], rename={"x": "input", "dimension": "axis"})
def unfold_view(context: Context, input: Value, axis: Value, size: Value, step: Value) -> Value:
    """Sliding windows along an axis (a view)."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    at = axis_of(integer(axis), len(shape))
    width = integer(size)
    hop = integer(step)
    shape[at] = (shape[at] - width) // hop + 1
    old = list(strides_of(x))
    return part(context, x, (*shape, width), (*old[:at], old[at] * hop, *old[at + 1 :], old[at]), "unfold")


@operator(["torch.narrow", "torch.Tensor.narrow"], rename={"dim": "axis"})
def narrow(context: Context, input: Value, axis: Value, start: Value, length: Value) -> Value:
    """A slice of an axis (a view)."""
    del start
    x = tensor(context, input)
    shape = list(x.shape or ())
    shape[axis_of(integer(axis), len(shape))] = integer(length)
    return part(context, x, tuple(shape), strides_of(x), "slice")


@operator(["torch.view_as_real", "paddle.as_real", "paddle.Tensor.as_real"])
def view_as_real(context: Context, input: Value) -> Value:
    """Complex numbers as pairs (a view)."""
    x = tensor(context, input)
    dtype = "float64" if x.dtype == "complex128" else "float32"
    return engine_of(context).apply("as_real", [x], (*(x.shape or ()), 2), dtype, view=x, grad="alias")


@operator(["torch.view_as_complex", "paddle.as_complex", "paddle.Tensor.as_complex"])
def view_as_complex(context: Context, input: Value) -> Value:
    """Pairs as complex numbers (a view)."""
    x = tensor(context, input)
    dtype = "complex128" if x.dtype == "float64" else "complex64"
    return engine_of(context).apply("as_complex", [x], (x.shape or ())[:-1], dtype, view=x, grad="alias")


@operator([*names("as_strided")], rename={"x": "input", "shape": "size"})
def as_strided(context: Context, input: Value, size: Value, stride: Value, offset: Value = 0, **kwargs: Value) -> Value:
    """Any strides over the same memory."""
    del offset, kwargs
    x = tensor(context, input)
    return part(context, x, integers(size), integers(stride), "as_strided")


@operator([*names("atleast_1d", "atleast_2d", "atleast_3d", method=False)])
def at_least(context: Context, *inputs: Value) -> Value:
    """At least one dimension."""
    made = [tensor(context, i) for i in inputs]
    found = [view(context, t, t.shape or (1,), "reshape") for t in made]
    return found[0] if len(found) == 1 else found


@operator([*names("meshgrid", method=False)])
def meshgrid(context: Context, *inputs: Value, indexing: Value = "ij", **kwargs: Value) -> Value:
    """Coordinates of a grid: views in PyTorch, copies in PaddlePaddle."""
    del kwargs
    items = list(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else list(inputs)
    vectors = [tensor(context, i) for i in items]
    lengths = [numel(v.shape or ()) for v in vectors]
    if indexing == "xy" and len(lengths) >= 2:
        lengths[0], lengths[1] = lengths[1], lengths[0]
    engine = engine_of(context)
    torch = engine.framework == "torch"
    made = [engine.apply("meshgrid", [v], lengths, v.dtype, view=v if torch else None) for v in vectors]
    if torch:
        for index, out in enumerate(made):
            out.strides = tuple(1 if i == index else 0 for i in range(len(lengths)))
    return tuple(made) if torch else made


@operator(
    [*names("pixel_shuffle", method=False, functional=True), "torch.pixel_shuffle"],
    rename={"x": "input", "upscale_factor": "factor"},
)
def pixel_shuffle(context: Context, input: Value, factor: Value, data_format: Value = "NCHW") -> Value:
    """Channels to space."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    r = integer(factor)
    if data_format == "NHWC":
        shape[-3], shape[-2], shape[-1] = shape[-3] * r, shape[-2] * r, shape[-1] // (r * r)
    else:
        shape[-3], shape[-2], shape[-1] = shape[-3] // (r * r), shape[-2] * r, shape[-1] * r
    return engine_of(context).apply("pixel_shuffle", [x], shape, x.dtype)


@operator(
    [*names("pixel_unshuffle", method=False, functional=True), "torch.pixel_unshuffle"],
    rename={"x": "input", "downscale_factor": "factor"},
)
def pixel_unshuffle(context: Context, input: Value, factor: Value, data_format: Value = "NCHW") -> Value:
    """Space to channels."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    r = integer(factor)
    if data_format == "NHWC":
        shape[-3], shape[-2], shape[-1] = shape[-3] // r, shape[-2] // r, shape[-1] * r * r
    else:
        shape[-3], shape[-2], shape[-1] = shape[-3] * r * r, shape[-2] // r, shape[-1] // r
    return engine_of(context).apply("pixel_unshuffle", [x], shape, x.dtype)


@operator([*names("channel_shuffle", method=False, functional=True), "torch.channel_shuffle"], rename={"x": "input"})
def channel_shuffle(context: Context, input: Value, groups: Value, data_format: Value = "NCHW") -> Value:
    """Channels in another order (a copy)."""
    del groups, data_format
    x = tensor(context, input)
    return engine_of(context).apply("channel_shuffle", [x], x.shape or (), x.dtype)


def pad_amounts(pad: tuple[int, ...], rank: int, paddle_full: bool) -> list[tuple[int, int]]:
    """Padding before and after each axis.

    Last axis first (both frameworks), or all axes first to last (PaddlePaddle, full length).
    """
    result = [(0, 0)] * rank
    if paddle_full and len(pad) == 2 * rank:
        return [(pad[2 * i], pad[2 * i + 1]) for i in range(rank)]
    for i in range(len(pad) // 2):
        result[rank - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return result


@operator(
    [f"{f}.nn.functional.pad" for f in ("torch", "paddle")]
    + ["paddle.pad_from_torch", "torch.constant_pad_nd", "paddle.Tensor.pad", "paddle.compat.pad"],
    rename={"x": "input"},
)
def pad(
    context: Context,
    input: Value,
    pad: Value,
    mode: Value = "constant",
    value: Value = 0.0,
    data_format: Value = "NCHW",
    pad_from_left_axis: Value = True,
) -> Value:
    """Grown at the borders (a copy); ``reflect`` and ``replicate`` keep the input for backward in PyTorch."""
    del value
    x = tensor(context, input)
    shape = x.shape or ()
    paddle = context.engine.framework == "paddle"
    amounts_in = integers(pad)
    if paddle and len(amounts_in) == 1 and len(shape) > 2:
        amounts_in = repeat(amounts_in[0], 2 * (len(shape) - 2))
    full = paddle and mode == "constant" and len(amounts_in) == 2 * len(shape) and pad_from_left_axis is not False
    if paddle and not full and isinstance(data_format, str) and data_format.endswith("C"):
        amounts = [*pad_amounts(amounts_in, len(shape) - 1, False), (0, 0)]
    else:
        amounts = pad_amounts(amounts_in, len(shape), full)
    out = tuple(s + a + b for s, (a, b) in zip(shape, amounts, strict=True))
    if any(s < 0 for s in out):
        raise ShapeError(f"padding {list(amounts_in)} leaves nothing of {list(shape)}")
    keeps = [x] if mode in ("reflect", "replicate") else []
    return engine_of(context).apply("pad", [x], out, x.dtype, saved=keeps, kernel="pad3d" if not full else "pad")
