"""Containers of layers: in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import (
    Class,
    Context,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.nn_module import MODULE
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torch", "paddle")


def _handed(args: list[Value]) -> list[Value]:
    """The arguments in a list of their own; the caller's is emptied, so that the callee alone holds them."""
    handed = args[:]
    args.clear()
    return handed


def _ordered(self: LayerInstance) -> list[tuple[str, Value]]:
    """Numbered or named members in order (None members too)."""
    own = {"training"}
    return [
        (n, v)
        for n, v in self.attrs.items()
        if n not in own and not n.startswith("_") and (isinstance(v, (LayerInstance, Tensor)) or n.isdigit())
    ]


def _values(self: LayerInstance) -> list[Value]:
    return [v for _, v in _ordered(self)]


def _renumber(self: LayerInstance, values: Sequence[Value]) -> None:
    for name, _ in _ordered(self):
        del self.attrs[name]
    for index, value in enumerate(values):
        self.attrs[str(index)] = value


def _items_of(context: Context, value: Value) -> list[Value]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return list(value)
    iteration = context.iterate(value)
    return list(iteration.items)


def sequential_init(context: Context, self: LayerInstance, *args: Value, **named: Value) -> None:
    """Layers in order: given one by one, as (name, layer) pairs, as a list or as an ordered dictionary."""
    self.where = self.where or context.where
    if len(args) == 1 and isinstance(args[0], dict):
        for name, layer in args[0].items():
            self.attrs[str(name)] = layer
        return
    if (
        len(args) == 1
        and isinstance(args[0], (list, tuple))
        and not (len(args[0]) == 2 and isinstance(args[0][0], str))
    ):
        args = tuple(args[0])
    for index, layer in enumerate(args):
        if isinstance(layer, tuple) and len(layer) == 2 and isinstance(layer[0], str):
            self.attrs[layer[0]] = layer[1]
        elif isinstance(layer, list):
            self.attrs[str(index)] = sequential_of(context, layer)
        else:
            self.attrs[str(index)] = layer
    for name, layer in named.items():
        self.attrs[name] = layer


def sequential_of(context: Context, layers: Sequence[Value]) -> LayerInstance:
    """A ``Sequential`` of ``layers``."""
    made = LayerInstance(SEQUENTIAL[context.engine.framework])
    sequential_init(context, made, *layers)
    return made


def sequential_forward(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
    """Each layer on the result of the one before."""
    del kwargs
    if not args:
        return context.unknown("a Sequential called with nothing")
    value = args[0]
    del args
    for layer in _values(self):
        handed = [value]
        del value
        value = context.call(layer, _handed(handed))
    return value


def list_init(
    context: Context,
    self: LayerInstance,
    modules: Value = None,
    sublayers: Value = None,
    values: Value = None,
    parameters: Value = None,
) -> None:
    """Members by number."""
    self.where = self.where or context.where
    given = next((g for g in (modules, sublayers, values, parameters) if g is not None), None)
    _renumber(self, _items_of(context, given))


def _at(self: LayerInstance, key: int) -> str | None:
    found = _ordered(self)
    return found[key][0] if -len(found) <= key < len(found) else None


def container_getitem(context: Context, self: LayerInstance, key: Value) -> Value:
    """One member by number or name, or a new container of several."""
    if isinstance(key, slice):
        made = LayerInstance(self.cls)
        pairs = _ordered(self)[key]
        if self.cls.name == "Sequential":
            made.attrs.update(dict(pairs))
        else:
            _renumber(made, [v for _, v in pairs])
        return made
    if isinstance(key, Tensor) and isinstance(key.value, int):
        key = key.value
    if isinstance(key, Unknown):
        values = _values(self)
        return values[0] if values else context.unknown("a member of an empty container")
    if isinstance(key, int):
        name = _at(self, key)
        if name is None:
            return context.unknown(f"member {key} of a container of {len(_ordered(self))}")
        return self.attrs[name]
    return self.attrs.get(
        str(key), context.unknown(f"member {key} of a container") if str(key) not in self.attrs else None
    )


def container_setitem(context: Context, self: LayerInstance, key: Value, value: Value) -> None:
    """Replace or add a member."""
    del context
    name = _at(self, key) if isinstance(key, int) else str(key)
    if isinstance(value, Tensor) and not value.is_parameter and self.cls.name == "ParameterList":
        value.is_parameter = True
    self.attrs[name if name is not None else str(key)] = value


def container_delitem(context: Context, self: LayerInstance, key: Value) -> None:
    """Take members out."""
    del context
    if isinstance(key, slice):
        gone = {n for n, _ in _ordered(self)[key]}
        kept = [(n, v) for n, v in _ordered(self) if n not in gone]
    else:
        name = _at(self, key) if isinstance(key, int) else str(key)
        kept = [(n, v) for n, v in _ordered(self) if n != name]
    if all(n.isdigit() for n, _ in kept):
        _renumber(self, [v for _, v in kept])
    else:
        for n, _ in _ordered(self):
            if n not in dict(kept):
                del self.attrs[n]


def container_len(context: Context, self: LayerInstance) -> Value:
    """How many members."""
    del context
    return len(_ordered(self))


def container_iter(context: Context, self: LayerInstance) -> Value:
    """The members in order."""
    del context
    return iter(_values(self))


def append(
    context: Context, self: LayerInstance, module: Value = None, sublayer: Value = None, parameter: Value = None
) -> Value:
    """One more at the end."""
    del context
    given = next((g for g in (module, sublayer, parameter) if g is not None), None)
    self.attrs[str(len(_ordered(self)))] = given
    return self


def extend(context: Context, self: LayerInstance, modules: Value = None, sublayers: Value = None) -> Value:
    """Several more at the end."""
    for item in _items_of(context, modules if modules is not None else sublayers):
        append(context, self, item)
    return self


def insert(context: Context, self: LayerInstance, index: Value, module: Value = None, sublayer: Value = None) -> Value:
    """One more somewhere."""
    del context
    values = _values(self)
    values.insert(index if isinstance(index, int) else len(values), module if module is not None else sublayer)
    _renumber(self, values)
    return self


def pop(context: Context, self: LayerInstance, key: Value = -1) -> Value:
    """Take one out and give it."""
    name = _at(self, key) if isinstance(key, int) else str(key)
    value = self.attrs.get(name or "")
    container_delitem(context, self, key)
    return value


def container_add(context: Context, self: LayerInstance, other: Value) -> Value:
    """Two containers in a row."""
    made = LayerInstance(self.cls)
    _renumber(
        made, [*_values(self), *(_values(other) if isinstance(other, LayerInstance) else _items_of(context, other))]
    )
    return made


def dict_init(
    context: Context, self: LayerInstance, modules: Value = None, sublayers: Value = None, parameters: Value = None
) -> None:
    """Members by name."""
    self.where = self.where or context.where
    given = next((g for g in (modules, sublayers, parameters) if g is not None), None)
    dict_update(context, self, given)


def dict_update(context: Context, self: LayerInstance, given: Value = None) -> None:
    """More members by name."""
    if isinstance(given, dict):
        for name, value in given.items():
            self.attrs[str(name)] = value
    elif isinstance(given, LayerInstance):
        self.attrs.update(dict(_named(given)))
    elif given is not None:
        for pair in _items_of(context, given):
            if isinstance(pair, (list, tuple)) and len(pair) == 2:
                self.attrs[str(pair[0])] = pair[1]


def _named(self: LayerInstance) -> Iterator[tuple[str, Value]]:
    for name, value in self.attrs.items():
        if name != "training" and not name.startswith("__") and isinstance(value, (LayerInstance, Tensor)):
            yield name, value


def dict_getitem(context: Context, self: LayerInstance, key: Value) -> Value:
    """The member of a name."""
    if str(key) in self.attrs:
        return self.attrs[str(key)]
    if isinstance(key, Unknown):
        return next((v for _, v in _named(self)), context.unknown("a member of an empty container"))
    return context.unknown(f"member {key!r} of a container")


def dict_contains(context: Context, self: LayerInstance, key: Value) -> Value:
    """Whether there is a member of that name."""
    del context
    return str(key) in dict(_named(self))


def dict_pop(context: Context, self: LayerInstance, key: Value, default: Value = None) -> Value:
    """Take one out and give it."""
    del context
    return self.attrs.pop(str(key), default)


_LIST: dict[str, Callable[..., Value]] = {
    "__getitem__": container_getitem, "__setitem__": container_setitem, "__delitem__": container_delitem,
    "__len__": container_len, "__iter__": container_iter, "append": append, "extend": extend, "insert": insert,
    "pop": pop, "__add__": container_add,
}  # fmt: skip
_DICT: dict[str, Callable[..., Value]] = {
    "__init__": dict_init,
    "__getitem__": dict_getitem,
    "__setitem__": container_setitem,
    "update": dict_update,
    "__delitem__": lambda context, self, key: self.attrs.pop(str(key), None) and None,
    "__len__": lambda context, self: len(dict(_named(self))),
    "__iter__": lambda context, self: iter([n for n, _ in _named(self)]),
    "__contains__": dict_contains,
    "keys": lambda context, self: [n for n, _ in _named(self)],
    "values": lambda context, self: [v for _, v in _named(self)],
    "items": lambda context, self: list(_named(self)),
    "pop": dict_pop,
    "clear": lambda context, self: [self.attrs.pop(n) for n, _ in list(_named(self))] and None,
    "get": lambda context, self, key, default=None: self.attrs.get(str(key), default),
}

SEQUENTIAL: dict[str, Class] = {}
for _framework, _base in (("torch", MODULE["torch"]), ("paddle", MODULE["paddle"])):
    SEQUENTIAL[_framework] = native_class(
        f"{_framework}.nn.Sequential", bases=(_base,), __init__=sequential_init, forward=sequential_forward, **_LIST
    )  # fmt: skip
    register(f"{_framework}.nn.Sequential", SEQUENTIAL[_framework])
for _framework, _name in (
    ("torch", "ModuleList"),
    ("torch", "ParameterList"),
    ("paddle", "LayerList"),
    ("paddle", "ParameterList"),
    ("paddle", "ModuleList"),
):
    register(
        f"{_framework}.nn.{_name}",
        native_class(f"{_framework}.nn.{_name}", bases=(MODULE[_framework],), __init__=list_init, **_LIST),
    )
for _framework, _name in (
    ("torch", "ModuleDict"),
    ("torch", "ParameterDict"),
    ("paddle", "LayerDict"),
    ("paddle", "ParameterDict"),
    ("paddle", "ModuleDict"),
):
    register(f"{_framework}.nn.{_name}", native_class(f"{_framework}.nn.{_name}", bases=(MODULE[_framework],), **_DICT))
