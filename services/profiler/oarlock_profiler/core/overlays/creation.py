"""Making tensors: from sizes, from values, from others. Small known contents are kept."""

from __future__ import annotations

import math
from typing import Any

from oarlock_profiler.core.engine.shapes import Shape, numel
from oarlock_profiler.core.engine.tensor import ROWS, SEQUENCE, Tensor
from oarlock_profiler.core.interpreter import cut_lists
from oarlock_profiler.core.interpreter.values import Context, Unknown, Value
from oarlock_profiler.core.overlays import routing
from oarlock_profiler.core.overlays.calling import (
    Unknowable,
    dtype_name,
    engine_of,
    integer,
    integers,
    names,
    operator,
    sizes,
    tensor,
)
from oarlock_profiler.core.overlays.devices import moved, place_of
from oarlock_profiler.core.overlays.elementwise import cast

LIBRARIES = ("torch", "paddle")

KNOWN_LIMIT = 4096
"""Contents longer than this are not kept."""


def _made(
    context: Context, shape: tuple[int, ...], dtype: str | None, kwargs: dict[str, Value], op: str, value: Any = None
) -> Tensor:
    engine = engine_of(context)
    device = place_of(context, kwargs.get("device", kwargs.get("place")))
    made = engine.tensor(shape, dtype or engine.default_dtype, device=device, op=op, value=value)
    wants = kwargs.get("requires_grad") is True or kwargs.get("stop_gradient") is False
    made.requires_grad = wants
    if made.device != "meta":
        engine.record(op, KERNELS.get(op, op), made.dtype, shape, bytes_moved=made.nbytes)
    return made


KERNELS = {
    "zeros": "full",
    "ones": "full",
    "empty": "empty",
    "rand": "uniform",
    "randn": "gaussian",
    "normal": "gaussian",
}


def _filled(name: str, fill: float | None) -> None:
    def call(context: Context, *shape: Value, dtype: Value = None, **kwargs: Value) -> Value:
        items = list(shape)
        paddle = context.engine.framework == "paddle"
        if dtype is None and paddle and len(items) == 2 and isinstance(items[0], (list, tuple, Tensor)):
            dtype = items.pop()
        given = items or [kwargs.get("shape", kwargs.get("size"))]
        dims = sizes(given)
        value = (
            [fill] * dims[0]
            if fill is not None and len(dims) == 1 and dims[0] <= KNOWN_LIMIT
            else fill
            if not dims
            else None
        )
        return _made(context, dims, dtype_name(dtype), kwargs, name, value)

    call.__name__ = name
    operator(names(name, method=False), rename={})(call)


_filled("zeros", 0)
_filled("ones", 1)
_filled("empty", None)
_filled("rand", None)
_filled("randn", None)
_filled("standard_normal", None)


@operator([*names("full", method=False), "paddle.tensor.creation.full"], rename={"size": "shape"})
def full(
    context: Context, shape: Value, fill_value: Value = 0, dtype: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """Filled with one value."""
    del args
    kind = dtype_name(dtype)
    if kind is None and context.engine.framework == "torch":
        kind = "bool" if isinstance(fill_value, bool) else "int64" if isinstance(fill_value, int) else None
    dims = integers(shape)
    known = fill_value if isinstance(fill_value, (int, float)) else None
    value = (
        [known] * dims[0]
        if len(dims) == 1 and dims[0] <= KNOWN_LIMIT and known is not None
        else known
        if not dims
        else None
    )
    return _made(context, dims, kind, kwargs, "full", value)


@operator(["paddle.fluid.layers.fill_constant", "paddle.tensor.fill_constant"])
def fill_constant(context: Context, shape: Value, dtype: Value = "float32", value: Value = 0, **kwargs: Value) -> Value:
    """PaddlePaddle's old ``full``."""
    return full(context, shape, value, dtype, **kwargs)


def _like(name: str) -> None:
    def call(context: Context, input: Value, *args: Value, dtype: Value = None, **kwargs: Value) -> Value:
        x = tensor(context, input)
        if dtype is None and args and name not in ("full_like", "randint_like") and dtype_name(args[0]):
            dtype = args[0]
        if name == "full_like" and dtype is None and len(args) > 1:
            dtype = args[1]
        if "device" not in kwargs:
            kwargs["device"] = None
        made = _made(context, x.shape or (), dtype_name(dtype) or x.dtype, kwargs, name.removesuffix("_like"))
        if made.device != x.device and kwargs["device"] is None and made.storage is not None:
            made = engine_of(context).tensor(x.shape or (), made.dtype, device=x.device, op=name)
        return made

    call.__name__ = name
    operator(names(name, method=False), rename={"x": "input"})(call)


for _name in (
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "normal_like",
):
    _like(_name)


def _new(name: str) -> None:
    def call(context: Context, input: Value, *shape: Value, dtype: Value = None, **kwargs: Value) -> Value:
        engine = engine_of(context)
        x = tensor(context, input)
        if name == "new_tensor":
            made = tensor(context, shape[0] if shape else kwargs.get("data"))
            return engine.tensor(
                made.shape or (), dtype_name(dtype) or x.dtype, device=x.device, op=name, value=made.value
            )
        given = list(shape)
        if name == "new_full":
            given = given[:1] or [kwargs.get("size")]
        dims = sizes(given or [kwargs.get("size", kwargs.get("shape"))])
        device = place_of(context, kwargs.get("device")) or x.device
        return engine.tensor(dims, dtype_name(dtype) or x.dtype, device=device, op=name)

    call.__name__ = name
    operator([f"torch.Tensor.{name}", f"paddle.Tensor.{name}"], rename={})(call)


for _name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "new"):
    _new(_name)


@operator(names("arange", "range", method=False), rename={})
def arange(
    context: Context, start: Value = 0, end: Value = None, step: Value = 1, dtype: Value = None, **kwargs: Value
) -> Value:
    """Evenly spaced numbers by step."""
    if end is None:
        start, end = 0, start
    low, high, by = _number(start), _number(end), _number(step if step is not None else 1)
    if by == 0:
        raise Unknowable("arange with a step of 0")
    count = max(0, math.ceil((high - low) / by))
    whole = all(isinstance(v, int) for v in (low, high, by))
    value = [low + by * i for i in range(count)] if count <= KNOWN_LIMIT else None
    return _made(context, (count,), dtype_name(dtype) or ("int64" if whole else None), kwargs, "arange", value)


def _number(value: Value) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, Tensor) and isinstance(value.value, (int, float)):
        return value.value
    return integer(value)


@operator(names("logspace", method=False), rename={"stop": "end", "num": "steps"})
def logspace(
    context: Context, start: Value, end: Value, steps: Value = 100, *args: Value, dtype: Value = None, **kwargs: Value
) -> Value:
    """Numbers whose logarithms are evenly spaced."""
    del start, end, args
    return _made(context, (integer(steps),), dtype_name(dtype), kwargs, "logspace")


@operator(names("linspace", method=False), rename={"stop": "end", "num": "steps"})
def linspace(
    context: Context, start: Value, end: Value, steps: Value = 100, *args: Value, dtype: Value = None, **kwargs: Value
) -> Value:
    """Evenly spaced numbers by count."""
    del args
    count = integer(steps)
    value = None
    try:
        low, high = _number(start), _number(end)
        if count <= KNOWN_LIMIT:
            value = [low + (high - low) * i / max(count - 1, 1) for i in range(count)]
    except Unknowable:
        value = None
    return _made(context, (count,), dtype_name(dtype), kwargs, "linspace", value)


@operator(names("eye", method=False), rename={"n": "num_rows", "m": "num_columns"})
def eye(context: Context, num_rows: Value, num_columns: Value = None, dtype: Value = None, **kwargs: Value) -> Value:
    """Identity matrix."""
    rows = integer(num_rows)
    return _made(context, (rows, integer(num_columns, rows)), dtype_name(dtype), kwargs, "eye")


@operator(names("randint", method=False), rename={"shape": "size"})
def randint(
    context: Context, low: Value = 0, high: Value = None, size: Value = None, dtype: Value = None, **kwargs: Value
) -> Value:
    """Random integers."""
    if size is None and isinstance(high, (list, tuple)):
        size, high = high, None
    del low, high
    return _made(context, integers(size if size is not None else [1]), dtype_name(dtype) or "int64", kwargs, "randint")


@operator(names("randperm", method=False), rename={})
def randperm(context: Context, n: Value, dtype: Value = None, **kwargs: Value) -> Value:
    """A random order."""
    return _made(context, (integer(n),), dtype_name(dtype) or "int64", kwargs, "randperm")


@operator(names("normal", "gaussian", "uniform", "log_normal", method=False), rename={"size": "shape"})
def normal(context: Context, *args: Value, shape: Value = None, dtype: Value = None, **kwargs: Value) -> Value:
    """Random numbers of a given shape, or shaped as their mean."""
    if shape is None:
        shape = next(
            (
                a
                for a in reversed(args)
                if isinstance(a, (list, tuple)) or (isinstance(a, Tensor) and isinstance(a.value, list))
            ),
            None,
        )
    if shape is None:
        like = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
        dims: tuple[int, ...] = like.shape or () if like is not None else (1,)
    else:
        dims = integers(shape)
    if dtype is None:
        dtype = next((a for a in args if dtype_name(a) is not None), None)
    return _made(context, dims, dtype_name(dtype), kwargs, "normal")


@operator([*names("bernoulli", "poisson"), "paddle.binomial", "torch.binomial", *names("standard_gamma")])
def bernoulli(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Random draws, one an element."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply("bernoulli", [x], x.shape or (), x.dtype, grad="none")


@operator(names("multinomial"))
def multinomial(context: Context, input: Value, num_samples: Value = 1, *args: Value, **kwargs: Value) -> Value:
    """Random indices by weight."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply(
        "multinomial", [x], (*(x.shape or ())[:-1], integer(num_samples)), "int64", grad="none"
    )


def _sequence(context: Context) -> int:
    """How many numbers a list of unknown length is taken to hold: what the task says of its sequences, if it does."""
    given = context.state.get("declared", {}).get("sequence_length")
    return given if isinstance(given, int) and given > 0 else SEQUENCE


def _rows(context: Context, data: Value) -> tuple[Shape, str] | None:
    """The shape and type of a row, where only the number of rows is unknown."""
    if isinstance(data, Unknown) and data.hint == "list":
        item = data.item
        kind = item.hint if isinstance(item, Unknown) else type(item).__name__
        return ((), "int64" if kind == "int" else "float32") if kind in ("int", "float") else None
    if context.is_open(data) and data:
        first = data[0] if isinstance(data[0], Tensor) else from_data(context, data[0], None, {}, alias=False)
        return None if first.shape is None else (first.shape, first.dtype)
    row = getattr(data, "row", None)
    return None if row is None else (row, data.dtype)


def from_data(context: Context, data: Value, dtype: Value, kwargs: dict[str, Value], *, alias: bool) -> Tensor:
    """``torch.tensor`` / ``paddle.to_tensor``."""
    engine = engine_of(context)
    device = place_of(context, kwargs.get("device", kwargs.get("place")))
    wanted = dtype_name(dtype)
    if isinstance(data, Unknown) and (long := cut_lists.length(context, data)) is not None:
        kind = "float32" if isinstance(data.item, Unknown) and data.item.hint == "float" else "int64"
        return engine.tensor((long,), wanted or kind, device=device, op="to_tensor")
    if isinstance(data, Tensor):
        if data.shape is None:
            return engine.unknown_tensor(data.why or "an unknown tensor", wanted or data.dtype)
        if alias:
            made = moved(context, data, device, wanted)
        else:
            made = engine.tensor(
                data.shape, wanted or data.dtype, device=device or data.device, op="to_tensor", value=data.value
            )
    elif isinstance(data, Unknown) and data.hint in ("int", "float", "bool"):
        made = engine.tensor(
            (), wanted or ("int64" if data.hint == "int" else engine.default_dtype), device=device, op="to_tensor"
        )
    elif isinstance(data, (bool, int, float, complex)):
        kind = "bool" if isinstance(data, bool) else "int64" if isinstance(data, int) else engine.default_dtype
        made = engine.tensor((), wanted or kind, device=device, op="to_tensor", value=data)
    elif (rows := _rows(context, data)) is not None:
        rest, kind = rows
        many = ROWS if rest else _sequence(context)
        context.findings.gap("rows of data", context.where, "their number is not in the script", many)
        made = engine.tensor((many, *rest), wanted or kind, device=device, op="to_tensor")
    else:
        source = tensor(context, data)
        kind = wanted or source.dtype
        if kind == "float64" and isinstance(data, (list, tuple)):
            kind = engine.default_dtype
        made = engine.tensor(source.shape or (), kind, device=device, op="to_tensor", value=source.value)
    if kwargs.get("requires_grad") is True or kwargs.get("stop_gradient") is False:
        made.requires_grad = True
    return made


@operator(
    [
        "torch.tensor",
        "torch.as_tensor",
        "torch.asarray",
        "torch.scalar_tensor",
        "paddle.to_tensor",
        "paddle.tensor.to_tensor",
        "paddle.asarray",
        "paddle.as_tensor",
        "paddle.tensor.tensor",
    ],
    rename={},
)
def to_tensor(context: Context, data: Value = None, dtype: Value = None, *args: Value, **kwargs: Value) -> Value:
    """A tensor with the given content."""
    if args and "device" not in kwargs:
        kwargs["device"] = args[0]
    return from_data(context, data, dtype, kwargs, alias=False)


@operator(
    [
        "torch.from_numpy",
        "torch.frombuffer",
        "torch.from_dlpack",
        "torch.utils.dlpack.from_dlpack",
        "paddle.utils.dlpack.from_dlpack",
    ]
)
def from_numpy(context: Context, data: Value, *args: Value, **kwargs: Value) -> Value:
    """A host tensor over an array's memory."""
    del args
    return from_data(context, data, None, {**kwargs, "device": "cpu"}, alias=True)


for _cls, _dtype in (
    ("FloatTensor", "float32"),
    ("DoubleTensor", "float64"),
    ("HalfTensor", "float16"),
    ("LongTensor", "int64"),
    ("IntTensor", "int32"),
    ("ShortTensor", "int16"),
    ("ByteTensor", "uint8"),
    ("CharTensor", "int8"),
    ("BoolTensor", "bool"),
    ("BFloat16Tensor", "bfloat16"),
):

    def _construct(context: Context, *args: Value, _dtype: str = _dtype, **kwargs: Value) -> Value:
        del kwargs
        if not args:
            return engine_of(context).tensor((0,), _dtype)
        if all(isinstance(a, int) for a in args):
            return engine_of(context).tensor(sizes(args), _dtype)
        return cast(context, from_data(context, args[0], None, {}, alias=True), _dtype)

    _construct.__name__ = _cls
    operator([f"torch.{_cls}", f"torch.cuda.{_cls}"], rename={})(_construct)


@operator(["torch.complex", "paddle.complex"], rename={})
def complex_(context: Context, real: Value, imag: Value, **kwargs: Value) -> Value:
    """Complex numbers from parts."""
    del kwargs
    a, b = tensor(context, real), tensor(context, imag)
    return engine_of(context).apply(
        "complex", [a, b], a.shape or (), "complex128" if a.dtype == "float64" else "complex64"
    )


@operator(["torch.polar", "paddle.polar"], rename={})
def polar(context: Context, abs: Value, angle: Value, **kwargs: Value) -> Value:
    """Complex numbers from length and angle."""
    del kwargs
    a, b = tensor(context, abs), tensor(context, angle)
    return engine_of(context).apply("polar", [a, b], a.shape or (), "complex64", saved=["output"])


@operator([*names("real", "imag")])
def real(context: Context, input: Value) -> Value:
    """One part of complex numbers (a view)."""
    x = tensor(context, input)
    return engine_of(context).apply(
        "real", [x], x.shape or (), "float64" if x.dtype == "complex128" else "float32", view=x
    )


@operator([*names("tril_indices", "triu_indices", method=False)], rename={"rows": "row", "cols": "col"})
def triangle_indices(context: Context, row: Value, col: Value = None, offset: Value = 0, **kwargs: Value) -> Value:
    """Positions of one triangle (counted for the lower one with its offset)."""
    rows = integer(row)
    columns = integer(col, rows)
    shift = integer(offset)
    count = sum(max(0, min(columns, i + 1 + shift)) for i in range(rows))
    return _made(context, (2, count), dtype_name(kwargs.get("dtype")) or "int64", kwargs, "tril_indices")


@operator([*(f"{f}.nn.functional.one_hot" for f in ("torch", "paddle")), "paddle.one_hot"], rename={"x": "input"})
def one_hot(context: Context, input: Value, num_classes: Value = -1) -> Value:
    """Classes as vectors: int64 in PyTorch, float32 in PaddlePaddle."""
    x = tensor(context, input)
    count = integer(num_classes)
    if count < 0:
        raise Unknowable("the number of classes of one_hot is found from values")
    made = engine_of(context).apply(
        "one_hot",
        [x],
        (*(x.shape or ()), count),
        "int64" if context.engine.framework == "torch" else "float32",
        grad="none",
    )
    return routing.compared(context, x, made)


@operator(["paddle.nn.functional.sequence_mask"], rename={"input": "x"})
def sequence_mask(context: Context, x: Value, maxlen: Value = None, dtype: Value = "int64", **kwargs: Value) -> Value:
    """Flags of valid positions per length."""
    del kwargs
    lengths = tensor(context, x)
    if maxlen is None:
        raise Unknowable("the longest length depends on values")
    return engine_of(context).apply(
        "sequence_mask", [lengths], (*(lengths.shape or ()), integer(maxlen)), dtype_name(dtype) or "int64", grad="none"
    )


@operator(
    [
        f"{f}.{n}"
        for f in ("torch", "paddle", "paddle.audio.functional")
        for n in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window", "get_window")
    ],
    rename={},
)
def window(context: Context, *args: Value, dtype: Value = None, **kwargs: Value) -> Value:
    """A window of given length."""
    length = next(
        (a for a in args if isinstance(a, int) and not isinstance(a, bool)),
        kwargs.get("window_length", kwargs.get("win_length")),
    )
    return _made(context, (integer(length),), dtype_name(dtype), kwargs, "window")


@operator(["paddle.shape", "paddle.tensor.shape", "torch._shape_as_tensor"])
def shape_tensor(context: Context, input: Value) -> Value:
    """The shape as a tensor, its content known."""
    x = tensor(context, input)
    dims = list(x.shape or ())
    return engine_of(context).tensor(
        (len(dims),),
        "int32" if context.engine.framework == "paddle" else "int64",
        device="cpu",
        kind="temporary",
        value=dims,
        op="shape",
    )


@operator(["paddle.create_parameter", "paddle.tensor.create_parameter", "paddle.static.create_parameter"], rename={})
def create_parameter(
    context: Context, shape: Value, dtype: Value = None, *args: Value, attr: Value = None, **kwargs: Value
) -> Value:
    """A parameter outside of a layer."""
    del args, kwargs
    made = engine_of(context).parameter(integers(shape), dtype_name(dtype))
    made.requires_grad = getattr(attr, "trainable", True) is not False
    return made


@operator(["torch.sparse_coo_tensor", "paddle.sparse.sparse_coo_tensor", "torch.sparse.FloatTensor"], rename={})
def sparse_coo(
    context: Context, indices: Value, values: Value, size: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """A sparse tensor, sized as its dense shape's indices and values."""
    del args, kwargs
    v = tensor(context, values)
    i = tensor(context, indices)
    dims = integers(size) if size is not None else None
    if dims is None:
        raise Unknowable("the size of a sparse tensor depends on values")
    made = Tensor(engine_of(context), dims, v.dtype, v.storage, v.device, requires_grad=v.requires_grad, node=v.node)
    made.attrs = {"_indices": i, "_values": v}
    return made


@operator(names("bucketize"), rename={"x": "input"})
def bucketize(context: Context, input: Value, boundaries: Value = None, *args: Value, **kwargs: Value) -> Value:
    """Positions of the input in sorted boundaries."""
    del boundaries, args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply("searchsorted", [x], x.shape or (), "int64", grad="none")


@operator(names("searchsorted"), rename={"input": "values"})
def searchsorted(
    context: Context, sorted_sequence: Value, values: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """Positions of the values in a sorted sequence."""
    del sorted_sequence, args, kwargs
    x = tensor(context, values)
    return engine_of(context).apply("searchsorted", [x], x.shape or (), "int64", grad="none")


@operator([*names("block_diag", method=False)], rename={"inputs": "tensors"})
def block_diag(context: Context, *tensors: Value) -> Value:
    """Blocks along the diagonal."""
    items = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    parts = [tensor(context, t) for t in items]
    rows = sum((p.shape or (1,))[0] for p in parts)
    columns = sum((p.shape or (1,))[-1] for p in parts)
    return engine_of(context).apply("block_diag", parts, (rows, columns))


@operator([*names("cartesian_prod", "combinations", method=False)], rename={})
def cartesian(context: Context, *tensors: Value) -> Value:
    """All combinations."""
    items = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    parts = [tensor(context, t) for t in items]
    count = math.prod(numel(p.shape or ()) for p in parts)
    return engine_of(context).apply("cartesian_prod", parts, (count, len(parts)))
