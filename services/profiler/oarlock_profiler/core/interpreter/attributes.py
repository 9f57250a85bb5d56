"""Attribute access on every kind of value. :func:`find` gives ``MISSING`` where Python would raise AttributeError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.code_objects import CodeObject, closure_cells
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, Property, StaticMethod, Super
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, OBJECT, Raised
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Function,
    HostObject,
    Instance,
    Method,
    Module,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays import registry

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine


_OF_THE_TYPE = frozenset(
    f"__{name}__"
    for name in (
        "deepcopy", "copy", "format", "iter", "next", "aiter", "anext", "len", "call", "abs", "round", "enter", "exit",
        "aenter", "aexit", "fspath", "index", "int", "float", "bool", "getitem", "setitem", "delitem", "contains",
        "hash", "array",
    )
)  # fmt: skip
"""What the language looks up on the type, past the instance's ``__getattr__`` ("Special method lookup")."""


def find(m: Machine, value: Value, name: str) -> Value:
    """The attribute, or ``MISSING``."""
    if isinstance(value, HostObject):
        result = value.py_getattr(m, name)
        if result is not MISSING:
            return result
    if isinstance(value, Instance):
        return instance(m, value, name)
    if isinstance(value, Unknown):
        return m.part(value, attribute=name)
    if isinstance(value, Module):
        return m.importer.attribute(value, name)
    if isinstance(value, Class):
        return class_(m, value, name)
    if isinstance(value, Super):
        return super_(m, value, name)
    if isinstance(value, (Function, BoundMethod, Native)):
        return callable_(m, value, name)
    if isinstance(value, (Property, ClassMethod, StaticMethod)):
        return descriptor(m, value, name)
    if isinstance(value, HostObject):
        return m.type_of(value) if name == "__class__" else MISSING
    return builtin(m, value, name)


def where_defined(cls: Class, name: str) -> tuple[Value, Class]:
    """The attribute along the MRO with the class that holds it."""
    for one in cls.mro or (cls,):
        if name in one.namespace:
            return one.namespace[name], one
    return MISSING, cls


def _asked(m: Machine, obj: Instance, name: str) -> Value:
    """``__getattribute__`` of the script's class, then its ``__getattr__``."""
    try:
        return m.call(BoundMethod(obj.cls.getattribute, obj), [name])
    except Raised as error:
        if not error.value.cls.is_subclass(EXCEPTIONS["AttributeError"]):
            raise
    return instance(m, obj, name, bare=True)


def instance(m: Machine, obj: Instance, name: str, *, bare: bool = False) -> Value:
    """Data descriptor, own attribute, class attribute, then ``__getattr__``."""
    if obj.cls.getattribute is not None and not bare:
        return _asked(m, obj, name)
    found, owner = where_defined(obj.cls, name)
    kind = type(found)
    if kind is Property:
        return property_get(m, found, obj, name)
    attrs = obj.attrs
    if name in attrs:
        return attrs[name]
    if found is not MISSING:
        return bind(m, found, obj, obj.cls, owner)
    if name == "__class__":
        return obj.cls
    if name == "__dict__":
        return attrs
    hook = obj.cls.lookup("__getattr__")
    if hook is not MISSING and name not in _OF_THE_TYPE:
        try:
            result = m.call(bind(m, hook, obj, obj.cls), [name])
        except Raised as error:
            if not error.value.cls.is_subclass(EXCEPTIONS["AttributeError"]):
                raise
            result = MISSING
        if result is not MISSING:
            return result
    if obj.cls.unknown_base is not None and not name.startswith("__"):
        return m.part(obj.cls.unknown_base, attribute=name)
    return MISSING


def property_get(m: Machine, found: Property, obj: Instance, name: str) -> Value:
    """The value of a property."""
    if found.cached and name in obj.attrs:
        return obj.attrs[name]
    value = m.call(found.getter, [obj]) if found.getter is not None else MISSING
    if found.cached:
        obj.attrs[name] = value
    return value


def bind(m: Machine, found: Value, obj: Value, cls: Class, owner: Class | None = None) -> Value:
    """What a class attribute becomes when read through an instance."""
    kind = type(found)
    if kind is Function:
        return BoundMethod(found, obj)
    if kind is Native:
        # a host function that the script itself put into its class is a builtin there: those do not bind
        return found if owner is not None and owner.module is not None else BoundMethod(found, obj)
    if kind is Method:
        return BoundMethod(found, obj)
    if kind is StaticMethod:
        return found.function
    if kind is ClassMethod:
        return BoundMethod(found.function, cls)
    if kind is Property:
        return m.call(found.getter, [obj])
    if isinstance(found, Instance):
        getter = found.cls.lookup("__get__")
        if getter is not MISSING:
            return m.call(BoundMethod(getter, found), [obj, cls])
    elif isinstance(found, HostObject):
        getter = found.py_getattr(m, "__get__")
        if getter is not MISSING:
            return m.call(getter, [obj, cls])
    return found


def class_(m: Machine, cls: Class, name: str) -> Value:
    """An attribute read through the class."""
    found, owner = where_defined(cls, name)
    if found is not MISSING:
        kind = type(found)
        if kind is ClassMethod:
            return BoundMethod(found.function, cls)
        if kind is StaticMethod:
            return found.function
        if isinstance(found, Instance) and found.cls.lookup("__get__") is not MISSING:
            return m.call(BoundMethod(found.cls.lookup("__get__"), found), [None, cls])
        if kind is Property and owner is not cls and cls.meta is not None:
            value = cls.meta.getattr(m, cls, name)
            return found if value is MISSING else value
        return found
    match name:
        case "__name__":
            return cls.name
        case "__qualname__":
            return cls.qualname if cls.module is not None else cls.name
        case "__module__":
            return cls.module.name if cls.module is not None else cls.qualname.rpartition(".")[0]
        case "__mro__":
            return cls.mro
        case "__bases__":
            return cls.bases or (OBJECT,)
        case "__base__":
            return cls.bases[0] if cls.bases else OBJECT
        case "__dict__":
            return cls.namespace
        case "__doc__":
            return None
        case "__class__":
            return m.builtins["type"]
        case "__subclasses__" | "mro":
            return Native(name, lambda _c: m.subclasses(cls) if name == "__subclasses__" else list(cls.mro))
        case "__annotations__":
            return {}
    if cls.meta is not None:
        value = cls.meta.getattr(m, cls, name)
        if value is not MISSING:
            return value
    if cls.module is None:
        value = registry.resolve(f"{cls.qualname}.{name}")
        if value is not MISSING:
            return value
    for base in cls.mro[1:]:
        if base.module is None and base is not OBJECT:
            value = registry.get(f"{base.qualname}.{name}")
            if value is not MISSING:
                return value
    if cls.unknown_base is not None and not name.startswith("__"):
        return m.part(cls.unknown_base, attribute=name)
    return find(m, m.object, name) if cls is not m.object and cls.mro[-1:] != (m.object,) else MISSING


def super_(m: Machine, proxy: Super, name: str) -> Value:
    """The next definition after ``proxy.cls`` in the MRO of the holder."""
    holder = proxy.holder
    if isinstance(holder, Class) and proxy.cls not in holder.mro:
        return _meta_super(m, proxy, holder, name)
    cls = holder.cls if isinstance(holder, Instance) else holder
    if not isinstance(cls, Class):
        return MISSING
    order = cls.mro
    try:
        after = order[order.index(proxy.cls) + 1 :]
    except ValueError:
        after = proxy.cls.mro[1:]
    for one in (*after, m.object):
        if name not in one.namespace:
            continue
        found = one.namespace[name]
        if isinstance(holder, Class):
            if type(found) is ClassMethod:
                return BoundMethod(found.function, holder)
            return found.function if type(found) is StaticMethod else found
        if name == "__new__":
            return found.function if type(found) is StaticMethod else found
        return bind(m, found, holder, cls, one)
    if name == "__class__":
        return proxy.cls
    if isinstance(holder, Instance):
        for one in after:
            hook = one.namespace.get("__getattr__", MISSING)
            if hook is not MISSING and not name.startswith("__"):
                return m.call(bind(m, hook, holder, cls), [name])
    if cls.unknown_base is not None:
        return m.part(cls.unknown_base, attribute=name)
    return MISSING


def _meta_super(m: Machine, proxy: Super, holder: Class, name: str) -> Value:
    """``super()`` in a method of a metaclass: bound to the class it works on."""
    kind = m.builtins["type"]
    for one in (*proxy.cls.mro[1:], kind):
        if name in one.namespace:
            found = one.namespace[name]
            if type(found) is StaticMethod:
                return found.function
            return found if name == "__new__" or one is m.object else BoundMethod(found, holder)
    return MISSING


def callable_(m: Machine, value: Value, name: str) -> Value:
    """Attributes of functions, natives and bound methods."""
    if isinstance(value, BoundMethod):
        if name == "__self__":
            return value.receiver
        if name == "__func__":
            return value.function
        if name == "__call__":
            return value
        return find(m, value.function, name)
    if isinstance(value, Native):
        if name in ("__name__", "__qualname__"):
            return value.name.rpartition(".")[2]
        if name == "__module__":
            return value.name.rpartition(".")[0]
        if name == "__doc__":
            return value.doc
        if name == "__call__":
            return value
        return registry.get(f"{value.name}.{name}")
    attrs = value.attrs
    if name in attrs:
        return attrs[name]
    match name:
        case "__name__":
            return value.name
        case "__qualname__":
            return value.qualname
        case "__module__":
            return value.module.name
        case "__doc__":
            return m.docstring(value.node)
        case "__dict__":
            return attrs
        case "__call__":
            return value
        case "__defaults__":
            return tuple(value.defaults) or None
        case "__globals__":
            return value.module.attrs
        case "__annotations__":
            return m.annotations(value)
        case "__get__":
            return Native("__get__", lambda _c, obj, _cls=None: BoundMethod(value, obj))
        case "__code__":
            return CodeObject(value)
        case "__closure__":
            return closure_cells(value)
        case "__kwdefaults__":
            return dict(value.kw_defaults) or None
    return MISSING


def descriptor(m: Machine, value: Property | ClassMethod | StaticMethod, name: str) -> Value:
    """``@x.setter`` and friends."""
    if isinstance(value, Property):
        if name == "setter":
            return Native("property.setter", lambda _c, fn: Property(value.getter, fn, value.deleter))
        if name == "getter":
            return Native("property.getter", lambda _c, fn: Property(fn, value.setter, value.deleter))
        if name == "deleter":
            return Native("property.deleter", lambda _c, fn: Property(value.getter, value.setter, fn))
        return {"fget": value.getter, "fset": value.setter}.get(name, MISSING)
    return value.function if name == "__func__" else find(m, value.function, name)


_DATA = {"real", "imag", "numerator", "denominator", "start", "stop", "step", "maxlen", "default_factory"}


def builtin(m: Machine, value: Value, name: str) -> Value:
    """A method of a host value, from the class that stands for its type."""
    cls = m.type_of(value)
    if isinstance(cls, Class):
        found = cls.lookup(name)
        if found is not MISSING:
            return bind(m, found, value, cls)
    own = getattr(value, "__dict__", None)
    if own and name in own and isinstance(value, dict):
        return own[name]
    if isinstance(value, tuple) and name in getattr(type(value), "_fields", ()):
        return getattr(value, name)
    if name in _DATA:
        return getattr(value, name, MISSING)
    if name == "__class__":
        return cls
    return MISSING


def setattr_(m: Machine, target: Value, name: str, value: Value) -> None:
    """``target.name = value``."""
    if isinstance(target, HostObject) and target.py_setattr(m, name, value):
        return
    if isinstance(target, Instance):
        hook, owner = where_defined(target.cls, "__setattr__")
        if hook is not MISSING and owner is not m.object:
            m.call(bind(m, hook, target, target.cls), [name, value])
        else:
            instance_set(m, target, name, value)
    elif isinstance(target, Module):
        target.attrs[name] = value
    elif isinstance(target, Class):
        m.patch(target, name, value)
    elif isinstance(target, Function):
        if name == "__defaults__":
            target.defaults = list(value) if isinstance(value, tuple) else []
        elif name == "__kwdefaults__":
            target.kw_defaults = dict(value) if isinstance(value, dict) else {}
        else:
            target.attrs[name] = value
    elif isinstance(target, BoundMethod):
        setattr_(m, target.function, name, value)
    elif isinstance(target, dict) and hasattr(target, "__dict__"):
        # an OrderedDict or Counter takes attributes, as in CPython
        vars(target)[name] = value
    elif not isinstance(target, (Unknown, Native, HostObject)):
        m.fail("AttributeError", f"{m.type_name(target)} has no attribute {name!r} to set")


def instance_set(m: Machine, target: Instance, name: str, value: Value) -> None:
    """``object.__setattr__``."""
    found = target.cls.lookup(name)
    if type(found) is Property:
        if found.setter is not None:
            m.call(found.setter, [target, value])
            return
        if not found.cached:
            m.fail("AttributeError", f"property {name!r} has no setter")
            return
    elif isinstance(found, Instance):
        setter = found.cls.lookup("__set__")
        if setter is not MISSING:
            m.call(BoundMethod(setter, found), [target, value])
            return
    if name == "__class__" and isinstance(value, Class):
        target.cls = value
        return
    if name == "__dict__" and isinstance(value, dict):
        target.attrs = value
        return
    target.attrs[name] = value


def delattr_(m: Machine, target: Value, name: str) -> None:
    """``del target.name``."""
    if isinstance(target, Instance):
        hook, owner = where_defined(target.cls, "__delattr__")
        if hook is not MISSING and owner is not m.object:
            m.call(bind(m, hook, target, target.cls), [name])
            return
        found = target.cls.lookup(name)
        if type(found) is Property and found.deleter is not None:
            m.call(found.deleter, [target])
            return
        if isinstance(found, Instance):
            deleter = found.cls.lookup("__delete__")
            if deleter is not MISSING:
                m.call(BoundMethod(deleter, found), [target])
                return
    holder = target.attrs if isinstance(target, (Instance, Module, Function)) else None
    if isinstance(target, Class):
        if name in target.namespace:
            m.patch(target, name, MISSING)
        return
    if holder is None:
        return
    if holder.pop(name, MISSING) is MISSING:
        m.fail("AttributeError", f"{m.type_name(target)} has no attribute {name!r}")
