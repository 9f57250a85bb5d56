"""``torch.Tensor`` and ``paddle.Tensor`` as classes: attributes, gradients, and methods that leave the tensor world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.engine.autograd import POST_HOOKS
from oarlock_profiler.core.engine.dtypes import COMPLEX, FLOATING, size_of
from oarlock_profiler.core.engine.shapes import numel
from oarlock_profiler.core.engine.strides import contiguous as contiguous_strides
from oarlock_profiler.core.engine.tensor import Property, Tensor
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Iteration, Native, Unknown, Value
from oarlock_profiler.core.overlays.calling import DType, dtype_name, engine_of, names, operator, sizes, tensor
from oarlock_profiler.core.overlays.creation import from_data
from oarlock_profiler.core.overlays.devices import script_device
from oarlock_profiler.core.overlays.elementwise import cast
from oarlock_profiler.core.overlays.registry import get, native_class, register
from oarlock_profiler.core.overlays.shaping import is_contiguous, permute, transpose, view

LIBRARIES = ("torch", "paddle")

BOTH = ("torch", "paddle")
DTYPES = {
    framework: {name: DType(framework, name) for name in (
        "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64",
        "complex128", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64",
    )}
    for framework in BOTH
}  # fmt: skip
for _framework, _types in DTYPES.items():
    for _name, _dtype in _types.items():
        register(f"{_framework}.{_name}", _dtype)
for _alias, _name in (
    ("float", "float32"),
    ("double", "float64"),
    ("half", "float16"),
    ("long", "int64"),
    ("int", "int32"),
    ("short", "int16"),
    ("cfloat", "complex64"),
    ("cdouble", "complex128"),
    ("qint8", "int8"),
    ("quint8", "uint8"),
):
    register(f"torch.{_alias}", DTYPES["torch"][_name])
register("paddle.dtype", native_class("paddle.dtype"))
register("torch.dtype", native_class("torch.dtype"))
register("torch.Size", Native("torch.Size", lambda context, items=(): Size(items)))


class Size(HostObject, tuple[Any, ...]):
    """``torch.Size``: a tuple with ``numel``."""

    def py_type(self) -> str:
        return "builtins.tuple"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "numel":
            return Native("torch.Size.numel", lambda c: numel(self))
        if name in ("index", "count"):
            return Native(name, lambda c, item: getattr(tuple(self), name)(item))
        return MISSING

    def py_getitem(self, context: Context, key: Value) -> Value:
        if isinstance(key, slice):
            return Size(tuple(self)[key])
        if isinstance(key, int) and -len(self) <= key < len(self):
            return tuple(self)[key]
        return context.unknown("an axis that the shape does not have", hint="int")

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        mine = tuple(self)
        if isinstance(other, (tuple, list)):
            theirs = tuple(other)
            if op in ("+", "+="):
                return Size(theirs + mine if reflected else mine + theirs)
            if op in ("==", "!="):
                return (mine == theirs) == (op == "==")
        if op in ("==", "!="):
            return op == "!="
        if op == "*" and isinstance(other, int):
            return Size(mine * other)
        if op == "in":
            return other in mine
        return MISSING

    def py_iterate(self, context: Context) -> Iteration:
        return Iteration(iter(tuple(self)))

    def py_len(self, context: Context) -> Value:
        return len(self)

    def py_truth(self, context: Context) -> bool:
        return len(self) > 0


def _unknown(context: Context, what: str, x: Tensor, hint: str) -> Unknown:
    return Unknown(x.why or f"{what} of an unknown tensor", context.where, hint=hint)


def _shape(context: Context, x: Tensor) -> Value:
    if x.shape is None:
        return _unknown(context, "the shape", x, "list")
    return Size(x.shape) if context.engine.framework == "torch" else list(x.shape)


def _property(
    name: str, read: Callable[[Context, Tensor], Value], write: Any = None, frameworks: tuple[str, ...] = BOTH
) -> None:
    for framework in frameworks:
        register(f"{framework}.Tensor.{name}", Property(read, write))


def _sized(read: Callable[[tuple[int, ...], Tensor], Value]) -> Callable[[Context, Tensor], Value]:
    return lambda context, t: read(t.shape, t) if t.shape is not None else _unknown(context, "the shape", t, "int")


def _set_requires_grad(context: Context, x: Tensor, value: Value) -> None:
    del context
    if isinstance(value, bool):
        x.requires_grad = value


def _set_stop_gradient(context: Context, x: Tensor, value: Value) -> None:
    del context
    if isinstance(value, bool):
        x.requires_grad = not value


def _set_grad(context: Context, x: Tensor, value: Value) -> None:
    del context
    x.grad = value if isinstance(value, Tensor) and value.shape is not None else None
    x.cleared = False


def _get_grad(context: Context, x: Tensor) -> Value:
    del context
    return x.grad


def _detached(x: Tensor) -> Tensor:
    made = Tensor(x.engine, x.shape, x.dtype, x.storage, x.device, value=x.value, why=x.why)
    made.strides, made.is_view = x.strides, True
    return made


def _set_data(context: Context, x: Tensor, value: Value) -> None:
    if isinstance(value, Tensor) and value.shape is not None:
        given = value
        x.shape, x.dtype, x.storage, x.device, x.value = (
            given.shape,
            given.dtype,
            given.storage,
            given.device,
            given.value,
        )
        if x.storage is not None and x.is_parameter:
            x.storage.retag("parameter")
    del context


def _transposed(context: Context, x: Tensor) -> Value:
    return permute(context, x, list(range(len(x.shape or ())))[::-1]) if x.shape is not None else x


def _value_or_unknown(context: Context, x: Tensor) -> Value:
    if isinstance(x.value, (bool, int, float)):
        return x.value
    if isinstance(x.value, list) and len(x.value) == 1:
        return x.value[0]
    hint = "float" if x.dtype in FLOATING else "bool" if x.dtype == "bool" else "int"
    return Unknown("a value computed on the device", context.where, hint=hint)


_property("shape", _shape)
_property("ndim", _sized(lambda shape, x: len(shape)))
_property("size", _sized(lambda shape, x: numel(shape)), frameworks=("paddle",))
_property("dtype", lambda context, x: DTYPES[context.engine.framework].get(x.dtype, x.dtype))
_property("device", script_device)
_property("place", script_device)
_property("requires_grad", lambda context, x: x.requires_grad, _set_requires_grad)
_property("stop_gradient", lambda context, x: not x.requires_grad, _set_stop_gradient)
_property("trainable", lambda context, x: x.requires_grad, _set_requires_grad, ("paddle",))
_property("grad", _get_grad, _set_grad)
_property("grad_fn", lambda context, x: _GradFn(x.node.name) if x.node is not None else None)
_property("is_leaf", lambda context, x: x.node is None)
_property("data", lambda context, x: _detached(x), _set_data)
_property("T", _transposed)
_property("mT", lambda context, x: transpose(context, x, -2, -1))
_property("mH", lambda context, x: transpose(context, x, -2, -1))
_property("H", lambda context, x: transpose(context, x, -2, -1))
_property("is_cuda", lambda context, x: x.device.startswith("gpu"))
_property("is_meta", lambda context, x: x.device == "meta")
_property("is_cpu", lambda context, x: x.device == "cpu")
_property("layout", lambda context, x: "strided")
_property("itemsize", lambda context, x: int(size_of(x.dtype)))
_property("nbytes", lambda context, x: x.nbytes)
_property(
    "name",
    lambda context, x: x.name or "tensor",
    lambda context, x, value: setattr(x, "name", value if isinstance(value, str) else None),
)
_property("persistable", lambda context, x: x.is_parameter, lambda context, x, value: None, ("paddle",))
_property("is_sparse", lambda context, x: False)
_property("is_quantized", lambda context, x: False, frameworks=("torch",))
_property("is_mps", lambda context, x: False, frameworks=("torch",))
_property("is_xla", lambda context, x: False, frameworks=("torch",))
_property("is_npu", lambda context, x: False, frameworks=("torch",))
_property("is_nested", lambda context, x: False, frameworks=("torch",))
_property("is_distributed", lambda context, x: False, lambda context, x, value: None, ("paddle",))
_property("offset", lambda context, x: 0, frameworks=("paddle",))
_property("type", lambda context, x: "DENSE_TENSOR", frameworks=("paddle",))
_property("strides", lambda context, x: list(x.strides or contiguous_strides(x.shape or ())), frameworks=("paddle",))
_property("optimize_attr", lambda context, x: {"learning_rate": 1.0}, lambda context, x, value: None, ("paddle",))
_property("regularizer", lambda context, x: None, lambda context, x, value: None, ("paddle",))


class _GradFn(HostObject):
    """``tensor.grad_fn``: only its name can be asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "name":
            return Native("name", lambda c: self.name)
        return () if name == "next_functions" else MISSING


def method(*short: str, frameworks: tuple[str, ...] = BOTH) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a tensor method that must see unknown tensors too (no coercion)."""

    def decorate(fn: Callable[..., Value]) -> Callable[..., Value]:
        for framework in frameworks:
            for name in short:
                full = f"{framework}.Tensor.{name}"
                register(full, Native(full, fn))
        return fn

    return decorate


@method("size", frameworks=("torch",))
def size(context: Context, x: Tensor, dim: Value = None) -> Value:
    """``x.size()`` or one axis of it."""
    if x.shape is None:
        return _unknown(context, "the size", x, "list" if dim is None else "int")
    if isinstance(dim, int):
        return (
            x.shape[dim]
            if -len(x.shape) <= dim < len(x.shape)
            else context.unknown(f"axis {dim} of {list(x.shape)}", hint="int")
        )
    return Size(x.shape)


@method("dim", "ndimension", "rank")
def dim(context: Context, x: Tensor) -> Value:
    """Number of axes."""
    return len(x.shape) if x.shape is not None else _unknown(context, "the rank", x, "int")


register(
    "paddle.rank",
    Native("paddle.rank", lambda context, input: engine_of(context).constant(len(input.shape or ()), "int32")),
)


@method("stride")
def stride(context: Context, x: Tensor, axis: Value = None) -> Value:
    """Strides in elements."""
    del context
    found = x.strides or contiguous_strides(x.shape or ())
    return found[axis] if isinstance(axis, int) else found


@method("storage_offset", "get_device")
def zero(context: Context, x: Tensor) -> Value:
    """Zero."""
    del context
    return int(x.device.partition(":")[2] or 0) if x.device != "cpu" else 0


@method("item", "__float__", "__int__", "__bool__", "__index__")
def item(context: Context, x: Tensor, *args: Value) -> Value:
    """The only element as a Python number: known for small constants."""
    del args
    return _value_or_unknown(context, x)


@method("__int__", "__index__")
def as_integer(context: Context, x: Tensor) -> Value:
    """``int(x)``."""
    found = _value_or_unknown(context, x)
    return (
        int(found)
        if isinstance(found, (int, float))
        else Unknown("a value computed on the device", context.where, hint="int")
    )


@method("__float__")
def as_float(context: Context, x: Tensor) -> Value:
    """``float(x)``."""
    found = _value_or_unknown(context, x)
    return (
        float(found)
        if isinstance(found, (int, float))
        else Unknown("a value computed on the device", context.where, hint="float")
    )


@method("tolist")
def tolist(context: Context, x: Tensor) -> Value:
    """Nested lists: known for small constants, else a list of unknowns of the right length."""
    if x.value is not None:
        return list(x.value) if isinstance(x.value, list) else x.value
    one = Unknown("a value computed on the device", context.where, hint="float" if x.dtype in FLOATING else "int")
    if x.shape is not None and len(x.shape) == 1 and x.shape[0] <= 4096:
        return [one] * x.shape[0]
    return Unknown("the values of a tensor", context.where, hint="list", item=one)


register("paddle.tolist", Native("paddle.tolist", tolist))


@method("numpy", "__array__")
def to_numpy(context: Context, x: Tensor, *args: Value, **kwargs: Value) -> Value:
    """The same as a host array; device memory is not touched by what follows."""
    del args, kwargs
    maker = get("numpy.empty")
    if x.shape is None or not isinstance(maker, Native):
        return Unknown("a tensor's array", context.where, hint="array")
    return context.call(maker, (list(x.shape), x.dtype if x.dtype != "bfloat16" else "float32"))


@method("detach", "detach_", "value", "get_tensor", "_local_value")
def detach(context: Context, x: Tensor) -> Value:
    """The same memory outside of the graph."""
    del context
    return _detached(x)


@method("requires_grad_")
def requires_grad_(context: Context, x: Tensor, requires_grad: Value = True) -> Value:
    """Ask for a gradient, or not."""
    _set_requires_grad(context, x, requires_grad)
    return x


@method("backward")
def backward(
    context: Context,
    x: Tensor,
    gradient: Value = None,
    retain_graph: Value = None,
    create_graph: Value = False,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """Run the graph below."""
    del args
    engine_of(context).backward_asked()
    if x.shape is None:
        context.findings.gap("backward", context.where, x.why or "the loss is not known")
        if x.lineage is None:
            return None
        x = x.lineage
    if isinstance(gradient, bool):
        retain_graph, gradient = gradient, None
    given = kwargs.get("grad_tensor", gradient)
    engine_of(context).backward(
        x, given if isinstance(given, Tensor) else None, retain_graph=retain_graph is True or create_graph is True
    )
    return None


@method("clear_grad", "clear_gradient")
def clear_grad(context: Context, x: Tensor, set_to_zero: Value = True) -> Value:
    """PaddlePaddle zeroes a gradient and keeps its memory, unless told otherwise."""
    del context
    if x.grad is not None:
        if set_to_zero is False:
            x.grad, x.cleared = None, False
        else:
            x.cleared = True
    return None


@method("register_post_accumulate_grad_hook")
def register_post_accumulate_grad_hook(context: Context, x: Tensor, hook: Value = None) -> Value:
    """Called with the leaf when its gradient is complete: how optimisers step inside the backward pass."""
    if x.attrs is None:
        x.attrs = {}
    hooks = x.attrs.setdefault(POST_HOOKS, [])
    if isinstance(hooks, list):
        hooks.append(lambda leaf: context.call(hook, [leaf]))
    return Unknown("a hook's handle", context.where, hint="handle")


@method("register_hook", "_register_backward_hook", "_register_grad_hook")
def register_hook(context: Context, x: Tensor, hook: Value = None) -> Value:
    """Gradient hooks are not followed."""
    del x, hook
    return Unknown("a hook's handle", context.where, hint="handle")


@method(
    "retain_grad",
    "retain_grads",
    "record_stream",
    "share_memory_",
    "_share_memory",
    "_clear_data",
    "_clear",
    "_set_impl",
)
def nothing(context: Context, x: Tensor, *args: Value) -> Value:
    """No effect on memory that is modelled."""
    del context, args
    return x


@method("_clear_data", "_clear")
def clear_data(context: Context, x: Tensor, *args: Value) -> Value:
    """Give the memory back."""
    del context, args
    x.storage = None
    return None


@method("is_floating_point")
def is_floating_point(context: Context, x: Tensor) -> Value:
    """Whether its type is floating."""
    del context
    return x.dtype in FLOATING


@method("is_complex")
def is_complex(context: Context, x: Tensor) -> Value:
    """Whether its type is complex."""
    del context
    return x.dtype in COMPLEX


@method("is_integer")
def is_integer(context: Context, x: Tensor) -> Value:
    """Whether its type is whole."""
    del context
    return x.dtype not in COMPLEX and x.dtype not in FLOATING


for _framework in BOTH:
    register(f"{_framework}.is_floating_point", Native("is_floating_point", is_floating_point))
    register(f"{_framework}.is_complex", Native("is_complex", is_complex))
    register(f"{_framework}.is_integer", Native("is_integer", is_integer))
    register(f"{_framework}.is_tensor", Native("is_tensor", lambda context, x: isinstance(x, Tensor)))


@method("is_contiguous")
def is_contiguous_(context: Context, x: Tensor, **kwargs: Value) -> Value:
    """Whether memory is in the shape's order."""
    del context, kwargs
    return is_contiguous(x)


@method(
    "is_pinned", "is_shared", "is_inference", "is_dense", "is_dist", "is_conj", "is_neg", "is_selected_rows", "_is_view"
)
def no(context: Context, x: Tensor, *args: Value) -> Value:
    """No."""
    del context, args
    del x
    return False


@method("is_same_size")
def is_same_size(context: Context, x: Tensor, other: Tensor) -> Value:
    """Whether shapes are the same."""
    del context
    return x.shape == other.shape


@method("element_size")
def element_size(context: Context, x: Tensor) -> Value:
    """Bytes of an element."""
    del context
    return int(size_of(x.dtype))


@method("data_ptr", "_version", "__hash__", "_md5sum", "inplace_version", "_inplace_version")
def identity(context: Context, x: Tensor) -> Value:
    """A number that stands for the memory."""
    del context
    return x.storage.id if x.storage is not None else 0


@method("untyped_storage", "storage", "_storage")
def storage(context: Context, x: Tensor) -> Value:
    """The memory behind it."""
    return Unknown("a tensor's storage", context.where, hint="storage", name=repr(x))


@method("_is_initialized", "is_initialized", "_share_buffer_to", "_is_shared_buffer_with", "_is_same_impl")
def initialised(context: Context, x: Tensor, *args: Value) -> Value:
    """Whether it has memory."""
    del context, args
    return x.storage is not None


@method("type", frameworks=("torch",))
def type_(context: Context, x: Tensor, dtype: Value = None, **kwargs: Value) -> Value:
    """Another type, or the type's name."""
    del kwargs
    if dtype is None:
        return f"torch.{x.dtype.capitalize()}Tensor"
    text = dtype if isinstance(dtype, str) else repr(dtype)
    by_name = {
        "FloatTensor": "float32",
        "LongTensor": "int64",
        "HalfTensor": "float16",
        "DoubleTensor": "float64",
        "IntTensor": "int32",
        "ByteTensor": "uint8",
        "BoolTensor": "bool",
        "BFloat16Tensor": "bfloat16",
    }
    return cast(context, x, dtype_name(dtype) or by_name.get(text.rpartition(".")[2].strip("'>")))


@method("__len__")
def length(context: Context, x: Tensor) -> Value:
    """``len(x)``."""
    return x.py_len(context)


@method("__deepcopy__", "__copy__")
def deepcopy(context: Context, x: Tensor, memo: Value = None) -> Value:
    """A copy with memory of its own; a parameter stays one."""
    del memo
    if x.shape is None:
        return x
    engine = engine_of(context)
    made = engine.tensor(
        x.shape,
        x.dtype,
        kind=x.storage.kind if x.storage is not None else "other",
        device=x.device,
        requires_grad=x.requires_grad,
        value=x.value,
        op="deepcopy",
    )
    made.is_parameter, made.name = x.is_parameter, x.name
    return made


@method(
    "to_sparse",
    "to_sparse_coo",
    "to_sparse_csr",
    "coalesce",
    "to_dense",
    "values",
    "indices",
    "crow_indices",
    "col_indices",
)
def same(context: Context, x: Tensor, *args: Value, **kwargs: Value) -> Value:
    """Taken as it is: sparse layouts are sized as dense."""
    del context, args, kwargs
    return x


@method("apply_", "map_", "resize_", "resize_as_", "share_buffer_with", "_share_buffer_with", "apply")
def resized(context: Context, x: Tensor, *args: Value, **kwargs: Value) -> Value:
    """Changed in place; ``resize_`` takes memory of the new size."""
    del kwargs
    if args and all(isinstance(a, int) for a in args):
        made = engine_of(context).tensor(sizes(args), x.dtype, device=x.device, op="resize")
        x.shape, x.storage = made.shape, made.storage
    return x


def _construct(context: Context, cls: Value, *args: Value, **kwargs: Value) -> Value:
    """``torch.Tensor(2, 3)`` or of data."""
    del cls
    try:
        if args and all(isinstance(a, int) for a in args):
            return engine_of(context).tensor(sizes(args))
        if not args and "data" not in kwargs and "value" not in kwargs:
            return engine_of(context).tensor((0,))
        data = args[0] if args else kwargs.get("data", kwargs.get("value"))
        if isinstance(data, Size):
            return engine_of(context).tensor(tuple(data))
        return cast(
            context,
            from_data(context, data, None, kwargs, alias=True),
            None if isinstance(data, Tensor) else context.engine.default_dtype,
        )
    except (TypeError, ValueError) as error:
        return engine_of(context).unknown_tensor(str(error))


def make_parameter(
    context: Context, cls: Value, data: Value = None, requires_grad: Value = True, *args: Value, **kwargs: Value
) -> Value:
    """``nn.Parameter(data)``: takes over the data's memory."""
    del cls, args
    if "trainable" in kwargs:
        requires_grad = kwargs["trainable"]
    if kwargs.get("shape") is not None:
        data = engine_of(context).tensor(sizes([kwargs["shape"]]))
    if data is None:
        data = engine_of(context).tensor((0,))
    if (
        isinstance(data, (list, tuple))
        and context.engine.framework == "paddle"
        and all(isinstance(v, int) for v in data)
    ):
        data = engine_of(context).tensor(tuple(data))
    if not isinstance(data, Tensor):
        try:
            data = tensor(context, data)
        except Exception:
            return engine_of(context).unknown_tensor("the data of a parameter is not known")
    if data.shape is None:
        made = engine_of(context).unknown_tensor(data.why or "the data of a parameter is not known")
        made.is_parameter = True
        return made
    made = Tensor(
        data.engine, data.shape, data.dtype, data.storage, data.device, requires_grad=requires_grad is not False
    )
    made.is_parameter = True
    if data.storage is None:
        made = engine_of(context).parameter(
            data.shape, data.dtype if data.dtype != "float64" else None, requires_grad is not False
        )
    elif data.storage.kind not in ("parameter", "input"):
        data.storage.retag("parameter")
    return made


def make_buffer(context: Context, data: Value = None, **kwargs: Value) -> Value:
    """``nn.Buffer(data)``: a tensor that a layer keeps as a buffer."""
    del kwargs
    if not isinstance(data, Tensor):
        return data
    made = _detached(data)
    made.is_buffer, made.is_view = True, data.is_view
    if made.storage is not None and made.storage.kind == "activation":
        made.storage.retag("buffer")
    return made


TENSOR = {framework: native_class(f"{framework}.Tensor", __new__=_construct) for framework in BOTH}
PARAMETER = {
    "torch": native_class("torch.nn.Parameter", bases=(TENSOR["torch"],), __new__=make_parameter),
    "paddle": native_class("paddle.nn.Parameter", bases=(TENSOR["paddle"],), __new__=make_parameter),
}
for _framework in BOTH:
    register(f"{_framework}.Tensor", TENSOR[_framework])
for _name in ("torch.nn.Buffer", "torch.nn.parameter.Buffer"):
    register(_name, Native(_name, make_buffer))
for _name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
    register(_name, PARAMETER["torch"])
for _name in (
    "paddle.nn.Parameter",
    "paddle.base.framework.EagerParamBase",
    "paddle.framework.EagerParamBase",
    "paddle.nn.parameter.Parameter",
    "paddle.static.Parameter",
    "paddle.base.framework.Parameter",
):
    register(_name, PARAMETER["paddle"])
register(
    "torch.autograd.Variable",
    Native(
        "torch.autograd.Variable",
        lambda context, data=None, requires_grad=False, **kwargs: (
            requires_grad_(context, data, requires_grad) if requires_grad is True else data
        ),
    ),
)
register(
    "paddle.base.framework.EagerParamBase.from_tensor",
    Native("from_tensor", lambda context, data, **kwargs: make_parameter(context, None, data)),
)
_uninitialised = Native(
    "torch.nn.UninitializedParameter", lambda context, *args, **kwargs: make_parameter(context, None)
)
for _name in ("torch.nn.UninitializedParameter", "torch.nn.parameter.UninitializedParameter"):
    register(_name, _uninitialised)


@operator([*names("alias", "view_copy", only="torch")])
def alias(context: Context, input: Value) -> Value:
    """The same memory."""
    x = tensor(context, input)
    return view(context, x, x.shape or (), "alias", x.value, x.strides)
