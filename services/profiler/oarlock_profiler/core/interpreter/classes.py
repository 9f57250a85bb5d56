"""Class statements and instances."""

# ruff: noqa: ARG001, ARG002 - the signatures are Python's own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.interpreter.attributes import where_defined
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, StaticMethod, Super, TypeForm
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Function,
    HostObject,
    Instance,
    Module,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.registry import linearise

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine


class Meta:
    """Class-level behaviour (what a metaclass would do); classes inherit it from their bases."""

    def created(self, m: Machine, cls: Class, keywords: dict[str, Value]) -> Value:
        """After the class statement; may return a replacement."""
        return cls

    def call(self, m: Machine, cls: Class, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
        """``cls(...)``; MISSING for the usual way."""
        return MISSING

    def getattr(self, m: Machine, cls: Class, name: str) -> Value:
        """An attribute that the class's MRO lacks."""
        return MISSING

    def getitem(self, m: Machine, cls: Class, key: Value) -> Value:
        """``cls[key]``."""
        return MISSING

    def contains(self, m: Machine, cls: Class, item: Value) -> Value:
        """``item in cls``."""
        return m.derived("membership of a class")

    def items(self, m: Machine, cls: Class) -> Any:
        """What a loop over the class gives; None when it cannot be looped over."""
        return None


class UserMeta(Meta):
    """A metaclass of the script: its methods work on the class; ``__new__``/``__init__`` run after creation."""

    def __init__(self, metaclass: Class) -> None:
        self.metaclass = metaclass

    def _method(self, name: str) -> Value:
        found, owner = where_defined(self.metaclass, name)
        return found if owner.module is not None else MISSING

    def created(self, m: Machine, cls: Class, keywords: dict[str, Value]) -> Value:
        new = self._method("__new__")
        result: Value = cls
        if new is not MISSING:
            function = new.function if isinstance(new, StaticMethod) else new
            m.creating.append(cls)
            try:
                made = m.call(function, [self.metaclass, cls.name, cls.bases, cls.namespace], dict(keywords))
            finally:
                m.creating.pop()
            result = made if isinstance(made, Class) else cls
        init = self._method("__init__")
        if init is not MISSING:
            m.call(init, [result, cls.name, cls.bases, cls.namespace], dict(keywords))
        return result

    def call(self, m: Machine, cls: Class, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
        method = self._method("__call__")
        return MISSING if method is MISSING else m.call(method, [cls, *args], kwargs)

    def getattr(self, m: Machine, cls: Class, name: str) -> Value:
        found = self._method(name)
        if found is MISSING:
            hook = self._method("__getattr__")
            return MISSING if hook is MISSING else m.call(hook, [cls, name])
        return m.bind(found, cls, self.metaclass)

    def getitem(self, m: Machine, cls: Class, key: Value) -> Value:
        method = self._method("__getitem__")
        return MISSING if method is MISSING else m.call(method, [cls, key])

    def contains(self, m: Machine, cls: Class, item: Value) -> Value:
        method = self._method("__contains__")
        return m.derived("membership of a class") if method is MISSING else m.call(method, [cls, item])

    def prepared(self, m: Machine, name: str, bases: list[Value], keywords: dict[str, Value]) -> dict[str, Value]:
        """What ``__prepare__`` puts into the namespace before the body runs."""
        method = self._method("__prepare__")
        if method is MISSING:
            return {}
        function = method.function if isinstance(method, (StaticMethod, ClassMethod)) else method
        first = [self.metaclass] if isinstance(method, ClassMethod) else []
        made = m.call(function, [*first, name, tuple(bases)], dict(keywords))
        return made if isinstance(made, dict) else {}

    def items(self, m: Machine, cls: Class) -> Any:
        method = self._method("__iter__")
        return None if method is MISSING else m.iterate(m.call(method, [cls])).items


def create(
    m: Machine,
    name: str,
    qualname: str,
    given: list[Value],
    namespace: dict[str, Value],
    keywords: dict[str, Value],
    module: Module,
) -> Value:
    """Make the class of a class statement."""
    metaclass = keywords.pop("metaclass", None)
    bases: list[Class] = []
    doubt: Unknown | None = None
    for base in given:
        if isinstance(base, TypeForm):
            base = base.origin
        if isinstance(base, Native):
            base = m.type_of_native(base)
        if isinstance(base, Class):
            if base not in bases:
                bases.append(base)
            doubt = doubt or base.unknown_base
        elif isinstance(base, Unknown):
            m.findings.gap(f"class {name}", m.where, f"its base {base.name or ''} is not known: {base.why}")
            doubt = base
        else:
            replaced = m.find(base, "__mro_entries__")
            if replaced is not MISSING:
                bases.extend(b for b in m.listed(m.call(replaced, [tuple(given)])) if isinstance(b, Class))
    cls = Class(name, qualname, tuple(bases) or (m.object,), namespace, module, where=m.where)
    try:
        cls.mro = linearise(cls)
    except TypeError as error:
        m.fail("TypeError", str(error))
        cls.bases = (bases[0],)
        cls.mro = linearise(cls)
    cls.unknown_base = doubt
    asked, owner = where_defined(cls, "__getattribute__")
    cls.getattribute = asked if isinstance(asked, Function) and owner.module is not None else None
    cls.meta = next((b.meta for b in cls.mro[1:] if b.meta is not None), None)
    if isinstance(metaclass, Class) and metaclass.module is not None:
        cls.meta = UserMeta(metaclass)
    for base in bases:
        m.children.setdefault(base, []).append(cls)
    for key, value in list(namespace.items()):
        _own(cls, value)
        if isinstance(value, Instance):
            hook = value.cls.lookup("__set_name__")
            if hook is not MISSING:
                m.call(BoundMethod(hook, value), [cls, key])
    for implicit in ("__init_subclass__", "__class_getitem__"):
        if isinstance(namespace.get(implicit), Function):
            namespace[implicit] = ClassMethod(namespace[implicit])
    if isinstance(namespace.get("__new__"), Function):
        namespace["__new__"] = StaticMethod(namespace["__new__"])
    hook = m.find(Super(cls, cls), "__init_subclass__")
    if hook is not MISSING and not isinstance(hook, Unknown):
        m.call(hook, [], dict(keywords))
    return cls if cls.meta is None else cls.meta.created(m, cls, keywords)


def _own(cls: Class, value: Value) -> None:
    if isinstance(value, (StaticMethod, ClassMethod)):
        value = value.function
    if isinstance(value, Function) and value.owner is None:
        value.owner = cls


def instantiate(m: Machine, cls: Class, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
    """``cls(*args, **kwargs)``."""
    if cls.meta is not None:
        made = cls.meta.call(m, cls, args, kwargs)
        if made is not MISSING:
            return made
    new, owner = where_defined(cls, "__new__")
    if new is not MISSING and owner is not m.object:
        if isinstance(new, StaticMethod):
            new = new.function
        obj = m.call(new, [cls, *args], dict(kwargs) if kwargs else None)
        if not isinstance(obj, Instance) or not obj.cls.is_subclass(cls):
            return obj
    else:
        obj = allocate(m, cls)
    init, owner = where_defined(cls, "__init__")
    if init is MISSING or owner is m.object:
        if cls.unknown_base is not None:
            obj.attrs.update(kwargs or {})
        return obj
    if isinstance(init, Function):
        args.insert(0, obj)
        m.invoke(init, args, kwargs)
    else:
        result = m.invoke(m.bind(init, obj, cls), args, kwargs)
        if isinstance(obj, HostObject) and isinstance(result, Unknown):
            return obj
    return obj


def allocate(m: Machine, cls: Class) -> Instance:
    """An instance without ``__init__``: the host object of the nearest overlay base, or a plain instance."""
    for one in cls.mro:
        if one.make is not None:
            return one.make(cls)
    return Instance(cls)
