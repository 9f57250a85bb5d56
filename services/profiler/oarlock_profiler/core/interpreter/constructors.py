"""``int(x)``, ``list(x)``, ``dict(...)``, ``type(...)``, ``object()``: how builtin classes make their instances."""

# ruff: noqa: ARG005 - the signatures are Python's own

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.interpreter import attributes, builtin_types, classes
from oarlock_profiler.core.interpreter.builtin_types import IMMUTABLE, TYPES
from oarlock_profiler.core.interpreter.cut_lists import is_number
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, Property
from oarlock_profiler.core.interpreter.errors import OBJECT, Raised, exception
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Class,
    HostObject,
    Instance,
    Native,
    Unknown,
    Value,
    length,
)


def _number(m: Any, value: Value, host: type, hooks: tuple[str, ...]) -> Value:
    """``int``/``float`` of anything."""
    if isinstance(value, Unknown):
        low, high = value.low, value.high
        return Unknown(value.why, value.where, host.__name__, low, high, name=value.name)
    if isinstance(value, (Instance, HostObject)) and not isinstance(value, (int, float, str)):
        for hook in hooks:
            method = m.find(value, hook)
            if method is not MISSING:
                return m.call(method)
        return Unknown(f"{host.__name__}() of {m.type_name(value)}", m.where, host.__name__)
    try:
        return host(value)
    except Exception as error:
        result = m.fail_host(error)
        return Unknown(result.why, result.where, host.__name__) if isinstance(result, Unknown) else result


def _int(m: Any, value: Value = 0, base: Value = None) -> Value:
    if base is not None and isinstance(value, str) and isinstance(base, int):
        return m.host(int, value, base)
    return _number(m, value, int, ("__int__", "__index__", "__trunc__"))


def _float(m: Any, value: Value = 0.0) -> Value:
    return _number(m, value, float, ("__float__", "__index__"))


def _bool(m: Any, value: Value = False) -> Value:
    return m.truth(value)


def _complex(m: Any, *args: Value) -> Value:
    return m.host(complex, *args)


def _str(m: Any, value: Value = "", *_encoding: Value, **_more: Value) -> Value:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) and _encoding else text(m, value)


_ALIKE = 4096
"""Elements of an array, each a number that is not known, that are listed when only the first are shown."""


def _items(m: Any, value: Value, kind: str) -> Value:
    """All items, or an unknown when the source only stands for more."""
    if isinstance(value, Unknown):
        return Unknown(value.why, value.where, kind, item=value.item, name=value.name)
    if m.open_lists.holds(value):
        return m.open_lists.copied(list(value), value)
    iteration = m.iterate(value)
    items = m.take(iteration.items, m.budget.limits.size)
    if not iteration.exact and iteration.count != len(items):
        if items and iteration.count is not None and len(items) < iteration.count <= _ALIKE and is_number(items[-1]):
            return items + [items[-1]] * (iteration.count - len(items))
        return Unknown("only part of the items is known", m.where, kind, item=items[0] if items else None)
    return items


def _collector(host: type, kind: str) -> Callable[..., Value]:
    def build(m: Any, value: Value = ()) -> Value:
        if host is list and type(value) is range and length(value) > m.budget.limits.size:
            return m.unknown(f"{length(value):,} items are too many to hold", hint=kind, item=value[0])
        items = _items(m, value, kind)
        if host is list and type(items) is list and not m.open_lists.holds(items):
            return m.open_lists.born(items)
        return items if isinstance(items, Unknown) or (host is list and type(items) is list) else m.host(host, items)

    return build


def _dict(m: Any, *args: Value, **kwargs: Value) -> Value:
    out: dict[Value, Value] = {}
    if args and isinstance(args[0], Unknown):
        return Unknown(args[0].why, args[0].where, "dict", name=args[0].name)
    fill_dict(m, out, args, kwargs)
    return out


def fill_dict(m: Any, out: Any, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:
    """What ``dict(*args, **kwargs)`` holds, put into ``out``."""
    update = builtin_types.DICT.namespace["update"]
    update.call(m, out, *args[:1], **kwargs)


def _bytes(m: Any, value: Value = b"", *more: Value, **_kw: Value) -> Value:
    if isinstance(value, int) and value > m.budget.limits.size:
        return m.unknown(f"{value:,} bytes are too many", hint="bytes")
    if isinstance(value, Unknown):
        return Unknown(value.why, value.where, "bytes")
    return m.host(bytes, value, *more) if isinstance(value, (int, str, bytes)) else m.host(bytes, m.listed(value))


def _bytearray(m: Any, *args: Value) -> Value:
    made = _bytes(m, *args)
    return bytearray(made) if isinstance(made, bytes) else made


def _range(m: Any, *args: Value) -> Value:
    for given in args:
        if isinstance(given, Unknown):
            last = args[1] if len(args) > 1 else args[0]
            high = last.high if isinstance(last, Unknown) else None
            item = Unknown(given.why, given.where, "int", 0, high, name=given.name)
            return Unknown(given.why, given.where, "range", item=item, name=given.name)
    numbers = [_number(m, a, int, ("__index__",)) if not isinstance(a, (int, float)) else a for a in args]
    if any(isinstance(n, Unknown) for n in numbers):
        return _range(m, *numbers)
    return m.host(range, *numbers)


def _slice(m: Any, *args: Value) -> Value:
    return m.host(slice, *args)


def _ordered(m: Any, *args: Value, **kwargs: Value) -> Value:
    out: collections.OrderedDict[Value, Value] = collections.OrderedDict()
    fill_dict(m, out, args, kwargs)
    return out


def _default_dict(m: Any, factory: Value = None, *args: Value, **kwargs: Value) -> Value:
    made: collections.defaultdict[Value, Value] = collections.defaultdict(
        (lambda: m.call(factory)) if factory is not None else None
    )
    fill_dict(m, made, args, kwargs)
    return made


def _counter(m: Any, *args: Value, **kwargs: Value) -> Value:
    counter: collections.Counter[Value] = collections.Counter()
    _count(m, counter, *args, **kwargs)
    return counter


def _count(m: Any, counter: Any, given: Value = (), **more: Value) -> None:
    if isinstance(given, dict):
        for key, value in given.items():
            old = counter.get(key, 0)
            counter[key] = old + value if isinstance(old, int) and isinstance(value, int) else value
    elif not isinstance(given, Unknown):
        for item in m.listed(given):
            try:
                counter[item] += 1
            except TypeError as error:
                m.fail_host(error)
                return
    counter.update(more)


builtin_types.COUNTER.namespace["update"] = Native("Counter.update", _count)


def _deque(m: Any, items: Value = (), maxlen: Value = None) -> Value:
    return collections.deque(m.listed(items), maxlen if isinstance(maxlen, int) and maxlen < 10**9 else None)


def _type(m: Any, *args: Value, **_kw: Value) -> Value:
    if len(args) == 1:
        return m.type_of(args[0])
    if m.creating:
        return m.creating[-1]
    name, bases, namespace = args[-3:]
    if not isinstance(name, str) or not isinstance(namespace, dict):
        return m.unknown("a class made from values that are not known", hint="type")
    module = m.frames[-1].module
    return classes.create(m, name, name, m.listed(bases), dict(namespace), {}, module)


_BUILDERS: dict[str, Callable[..., Value]] = {
    "int": _int, "float": _float, "bool": _bool, "complex": _complex, "str": _str, "bytes": _bytes,
    "bytearray": _bytearray, "range": _range, "slice": _slice, "dict": _dict, "list": _collector(list, "list"),
    "tuple": _collector(tuple, "tuple"), "set": _collector(set, "set"), "OrderedDict": _ordered,
    "frozenset": _collector(frozenset, "set"), "defaultdict": _default_dict, "Counter": _counter, "deque": _deque,
}  # fmt: skip


def _new(cls: Class, build: Callable[..., Value]) -> Callable[..., Value]:
    def new(m: Any, kind: Value, /, *args: Value, **kwargs: Value) -> Value:
        if kind is cls or not isinstance(kind, Class):
            return build(m, *args, **kwargs)
        immutable = next((IMMUTABLE[c.qualname] for c in kind.mro if c.qualname in IMMUTABLE), None)
        if immutable is None:
            return classes.allocate(m, kind)
        made = build(m, *args[:1])
        return made if isinstance(made, Unknown) else immutable(kind, made)

    return new


def _init(m: Any, self: Value, /, *args: Value, **kwargs: Value) -> None:
    if isinstance(self, dict):
        default = next((c for c in self.cls.mro if c.qualname == "collections.defaultdict"), None)  # type: ignore[attr-defined]
        if default is not None and args:
            self.attrs["default_factory"], args = args[0], args[1:]  # type: ignore[attr-defined]
        fill_dict(m, self, args, kwargs)
    elif isinstance(self, list) and args:
        self.extend(m.listed(args[0]))
    elif isinstance(self, set) and args:
        self.update(m.listed(args[0]))


for _cls in list(TYPES.values()):
    if _cls.name in _BUILDERS:
        _cls.namespace["__new__"] = Native(f"{_cls.name}.__new__", _new(_cls, _BUILDERS[_cls.name]))
        if _cls.make is not None:
            _cls.namespace["__init__"] = Native(f"{_cls.name}.__init__", _init)


def _property_new(
    _m: Any, cls: Value, fget: Value = None, fset: Value = None, fdel: Value = None, *_doc: Value, **_more: Value
) -> Value:
    if cls is builtin_types.PROPERTY:
        return Property(fget, fset, fdel)
    return Instance(cls, {"fget": fget, "fset": fset, "fdel": fdel})


def _property_get(m: Any, self: Instance, obj: Value, _cls: Value = None) -> Value:
    return self if obj is None else m.call(self.attrs["fget"], [obj])


builtin_types.PROPERTY.namespace.update(
    {
        "__new__": Native("property.__new__", _property_new),
        "__init__": Native("property.__init__", lambda _m, _self, *_a, **_k: None),
        "__get__": Native("property.__get__", _property_get),
    }
)
TYPE = Class("type", "builtins.type", (OBJECT,), {})
TYPE.mro = (TYPE, OBJECT)
TYPE.namespace["__new__"] = Native("type.__new__", lambda m, _kind, *args, **kw: _type(m, *args, **kw))
TYPE.namespace["__init__"] = Native("type.__init__", lambda _m, _self, *_args, **_kw: None)
TYPE.namespace["__call__"] = Native("type.__call__", lambda m, cls, *args, **kw: _instantiate(m, cls, args, kw))


def _instantiate(m: Any, cls: Class, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    meta, cls.meta = cls.meta, None
    try:
        return classes.instantiate(m, cls, list(args), kwargs)
    finally:
        cls.meta = meta


def _object_new(m: Any, cls: Value, *_args: Value, **_kw: Value) -> Value:
    return classes.allocate(m, cls) if isinstance(cls, Class) else m.unknown("object.__new__ of no class")


def _get_attribute(m: Any, self: Value, name: str) -> Value:
    found = attributes.instance(m, self, name, bare=True) if isinstance(self, Instance) else m.find(self, name)
    if found is MISSING:
        raise Raised(exception("AttributeError", f"no attribute {name!r}"), implicit=True)
    return found


OBJECT.namespace.update(
    {
        "__new__": Native("object.__new__", _object_new),
        "__init__": Native("object.__init__", lambda _m, _self, *_a, **_k: None),
        "__setattr__": Native("object.__setattr__", attributes.instance_set),
        "__getattribute__": Native("object.__getattribute__", _get_attribute),
        "__delattr__": Native("object.__delattr__", lambda m, self, name: self.attrs.pop(name, None) and None),
        "__init_subclass__": ClassMethod(Native("object.__init_subclass__", lambda _m, _cls, **_k: None)),
    }
)
