"""How an operator's entry is written once and called as both frameworks call it.

:func:`operator` registers one host function under every public name the operator goes by, brings argument names to one
spelling (``dim`` → ``axis``, ``x`` → ``input`` …), and turns what cannot be known into an unknown tensor with the
reason. The coercions below raise :class:`Unknowable`; the wrapper catches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oarlock_profiler.core.engine.dtypes import COMPLEX, FLOATING, canonical, size_of
from oarlock_profiler.core.engine.engine import Engine
from oarlock_profiler.core.engine.shapes import ShapeError
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, Raised, exception
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Unknown, Value, length
from oarlock_profiler.core.overlays.registry import register

RENAMED = {
    "dim": "axis",
    "dims": "axis",
    "x": "input",
    "self": "input",
    "y": "other",
    "keepdims": "keepdim",
    "keep_dim": "keepdim",
}
IGNORED = frozenset({"name", "out", "memory_format", "non_blocking", "generator"})


class Unknowable(Exception):
    """A value that the operator needs is not known; the message is the reason."""


def names(short: str, *more: str, functional: bool = False, method: bool = True, only: str | None = None) -> list[str]:
    """The public names of an operator called ``short`` (and ``more``) in both frameworks (``only`` one of them)."""
    found: list[str] = []
    for name in (short, *more):
        for framework in ("torch", "paddle"):
            if only not in (None, framework):
                continue
            found.append(f"{framework}.{name}")
            if framework == "paddle":
                found.append(f"paddle.tensor.{name}")
            if functional:
                found.append(f"{framework}.nn.functional.{name}")
            if method:
                found.append(f"{framework}.Tensor.{name}")
    return found


def operator(
    public: Iterable[str], rename: dict[str, str] | None = None
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register ``fn(context, ...)`` under ``public`` names, with arguments spelled as ``fn`` spells them."""
    spelling = RENAMED if rename is None else rename

    def decorate(fn: Callable[..., Value]) -> Callable[..., Value]:
        def call(context: Context, *args: Value, **kwargs: Value) -> Value:
            given = (
                {spelling.get(k, k): v for k, v in kwargs.items() if k not in IGNORED or k in spelling}
                if kwargs
                else kwargs
            )
            return guarded(context, fn, args, given)

        call.__name__ = fn.__name__
        call.__doc__ = fn.__doc__
        call.__wrapped__ = fn  # type: ignore[attr-defined] # what ``inspect.signature`` follows
        for name in public:
            register(name, Native(name, call, fn.__doc__ or ""))
        return fn

    return decorate


def guarded(context: Context, fn: Callable[..., Value], args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """Call ``fn``; what cannot be known, and what does not fit, becomes an unknown tensor with the reason."""
    try:
        return fn(context, *args, **kwargs)
    except Unknowable as reason:
        return _lost(context, str(reason), args, kwargs)
    except ShapeError as error:
        context.findings.gap(fn.__name__, context.where, str(error))
        return _lost(context, str(error), args, kwargs)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError, OverflowError) as error:
        count_internal_error(context, fn.__name__, error)
        return context.engine.unknown_tensor(f"{fn.__name__}: {error}")


def _lost(context: Context, why: str, args: Sequence[Value], kwargs: dict[str, Value]) -> Tensor:
    """An unknown result. What it was made of still learns: the empty tensor of its lineage passes gradients on."""
    engine = engine_of(context)
    made = engine.unknown_tensor(why)
    sources = [t for value in (*args, *kwargs.values()) for t in _sources(value)]
    if sources and engine.grad_enabled:
        made.lineage = engine.apply("reshape", sources, (0,), sources[0].dtype)
    return made


def _sources(value: Value) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for item in value[:256] for t in _sources(item)]
    if not isinstance(value, Tensor):
        return []
    if value.shape is None:
        return [value.lineage] if value.lineage is not None else []
    return [value] if value.requires_grad else []


def count_internal_error(context: Context, what: str, error: Exception) -> None:
    """Note an exception that an entry did not expect (tests assert that there are none)."""
    frames = getattr(context, "frames", None)
    if isinstance(error, TypeError) and any(
        guard.frame is frames[-1] and guard.catches(EXCEPTIONS["TypeError"])
        for guard in getattr(context, "guards", ())
        if frames
    ):
        # the script itself tries whether the call fits
        raise Raised(exception("TypeError", str(error)), implicit=True)
    noted = getattr(context, "internal_errors", None)
    if noted is None:
        noted = context.state.setdefault("internal_errors", [])
    noted.append(f"{what}: {type(error).__name__}: {error} at {context.where}")
    context.findings.gap(what, context.where, f"the call could not be followed: {error}")


def engine_of(context: Context) -> Engine:
    """The engine, typed."""
    engine: Engine = context.engine
    return engine


def tensor(context: Context, value: Value, like: Tensor | None = None) -> Tensor:
    """``value`` as a tensor of known shape: tensors as they are, numbers and nested lists as constants.

    Raises:
        Unknowable: it is unknown, or nothing that a tensor can be made of.
    """
    if isinstance(value, Tensor):
        if value.shape is None:
            raise Unknowable(value.why or "a tensor of unknown shape")
        return value
    if isinstance(value, (bool, int, float, complex)):
        return scalar(context, value, like)
    if isinstance(value, Unknown):
        if value.hint in ("int", "float", "bool"):
            return scalar(context, 1.0 if value.hint == "float" else 1, like, known=False)
        raise Unknowable(value.why)
    if isinstance(value, (list, tuple, range)):
        items = list(value)
        shape, dtype, flat = nested(context, items)
        return engine_of(context).tensor(
            shape, dtype, kind="temporary", device=like.device if like is not None else None, op="constant",
            value=flat if len(shape) == 1 and flat is not None else None,
        )  # fmt: skip
    array_shape = getattr(value, "shape", None)
    if isinstance(array_shape, tuple) and all(isinstance(s, int) for s in array_shape):
        dtype_name = canonical(str(getattr(value, "dtype", "float32"))) or "float32"
        return engine_of(context).tensor(array_shape, dtype_name, kind="temporary", op="constant")
    if getattr(value, "shape", ()) is None:
        raise Unknowable("an array whose shape is not known")
    raise Unknowable(f"a {type(value).__name__} where a tensor is expected")


def scalar(context: Context, value: Any, like: Tensor | None = None, known: bool = True) -> Tensor:
    """A Python number as a zero-dimensional tensor that takes no device memory."""
    engine = engine_of(context)
    dtype = (
        "bool"
        if isinstance(value, bool)
        else "int64"
        if isinstance(value, int)
        else "complex64"
        if isinstance(value, complex)
        else "float64"
    )
    made = Tensor(
        engine,
        (),
        dtype,
        None,
        like.device if like is not None else engine.default_device,
        value=value if known else None,
    )
    return made


def nested(context: Context, items: Sequence[Value]) -> tuple[tuple[int, ...], str, list[Value] | None]:
    """Shape, type and (when flat and known) content of a nest of lists.

    Raises:
        Unknowable: an item is unknown.
    """
    if not items:
        return (0,), engine_of(context).default_dtype, []
    first = items[0]
    if isinstance(first, (list, tuple, range)):
        shape, dtype, _ = nested(context, list(first))
        return (len(items), *shape), dtype, None
    if isinstance(first, Tensor):
        if first.shape is None:
            raise Unknowable(first.why or "an unknown tensor in a list")
        return (len(items), *first.shape), first.dtype, None
    array_shape = getattr(first, "shape", None)
    if isinstance(array_shape, tuple):
        return (len(items), *array_shape), canonical(str(getattr(first, "dtype", "float32"))) or "float32", None
    known = all(isinstance(v, (bool, int, float)) for v in items)
    if all(isinstance(v, bool) for v in items):
        return (len(items),), "bool", list(items)
    if all(isinstance(v, int) for v in items):
        return (len(items),), "int64", list(items)
    if any(isinstance(v, str) for v in items):
        raise Unknowable("a list of strings is no tensor")
    is_int = all(isinstance(v, (bool, int)) or (isinstance(v, Unknown) and v.hint == "int") for v in items)
    return (len(items),), "int64" if is_int else engine_of(context).default_dtype, list(items) if known else None


def integer(value: Value, default: int | None = None) -> int:
    """A size or an axis.

    Raises:
        Unknowable: it is not known.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if value is None and default is not None:
        return default
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Tensor):
        if isinstance(value.value, (int, float)):
            return int(value.value)
        if isinstance(value.value, list) and len(value.value) == 1:
            return int(value.value[0])
        raise Unknowable("a size held in a tensor")
    if isinstance(value, Unknown):
        raise Unknowable(value.why)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        return integer(value[0])
    index = getattr(value, "value", None)
    if isinstance(index, (int, float)):
        return int(index)
    raise Unknowable(f"{type(value).__name__} where an integer is expected")


MOST_SIZES = 1_000_000
"""Items of a list of sizes that are looked at (a size of one dimension each, or how an axis is cut)."""


def integers(value: Value) -> tuple[int, ...]:
    """A list of sizes or axes; one integer counts as a list of one.

    Raises:
        Unknowable: one of them is not known.
    """
    if isinstance(value, (list, tuple, range)):
        if length(value) > MOST_SIZES:
            raise Unknowable(f"{length(value):,} sizes or axes")
        return tuple(integer(v) for v in value)
    if isinstance(value, Tensor) and isinstance(value.value, list):
        return tuple(int(v) for v in value.value)
    return (integer(value),)


def sizes(args: Sequence[Value]) -> tuple[int, ...]:
    """Sizes given either as one list or as separate arguments."""
    if len(args) == 1 and not isinstance(args[0], (int, float)):
        return integers(args[0])
    return tuple(integer(a) for a in args)


def axis_or_none(value: Value) -> int | tuple[int, ...] | None:
    """An ``axis`` argument: None, one, or several."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return integers(value)
    return integer(value)


def repeat(value: Value, rank: int) -> tuple[int, ...]:
    """``value`` for each of ``rank`` spatial dimensions."""
    found = integers(value)
    return found * rank if len(found) == 1 else found


class DType(HostObject):
    """``torch.float32`` / ``paddle.float32``: one object a framework and type."""

    def __init__(self, framework: str, dtype: str) -> None:
        self.framework = framework
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{self.framework}.{self.dtype}"

    def py_type(self) -> str:
        return f"{self.framework}.dtype"

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        if op in ("==", "!="):
            same = dtype_name(other) == self.dtype
            return same if op == "==" else not same
        return MISSING

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "is_floating_point":
            return self.dtype in FLOATING
        if name == "is_complex":
            return self.dtype in COMPLEX
        if name == "itemsize":
            return int(size_of(self.dtype))
        if name in ("name", "__name__"):
            return self.dtype.upper() if self.framework == "paddle" and name == "name" else self.dtype
        return MISSING


def dtype_name(value: Value) -> str | None:
    """The canonical type a ``dtype`` argument means (a DType, a string, a NumPy or builtin type), or None."""
    if isinstance(value, DType):
        return value.dtype
    if isinstance(value, str):
        return canonical(value)
    if value is None or isinstance(value, (Tensor, Unknown, int, float, list, tuple)):
        return None
    if value is float:
        return "float32"
    if value is int:
        return "int64"
    if value is bool:
        return "bool"
    name = getattr(value, "dtype", None) or getattr(value, "qualname", None) or getattr(value, "name", None)
    if isinstance(name, str):
        return {"float": "float32", "int": "int64", "builtins.float": "float32", "builtins.int": "int64"}.get(
            name
        ) or canonical(name)
    return None
