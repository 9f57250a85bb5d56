"""``dataclasses`` (and ``attr``/``attrs``, ``pydantic`` in the parts that look the same)."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter import classes, operators
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, TypeForm
from oarlock_profiler.core.interpreter.errors import OBJECT
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Class,
    Context,
    HostObject,
    Instance,
    Method,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.registry import entry, native_class, register
from oarlock_profiler.core.overlays.stdlib_classes import deep

LIBRARIES = ("dataclasses", "attr", "attrs", "pydantic")


class Field(HostObject):
    """``dataclasses.field(...)``, and what ``fields()`` gives."""

    def __init__(
        self,
        default: Value = MISSING,
        factory: Value = MISSING,
        init: bool = True,
        metadata: Value = None,
        *,
        shown: bool = True,
        compared: bool = True,
        keyword_only: bool = False,
    ) -> None:
        self.name = ""
        self.type: Value = None
        self.default = default
        self.factory = factory
        self.init = init
        self.metadata = metadata if metadata is not None else {}
        self.shown = shown
        self.compared = compared
        self.keyword_only = keyword_only

    @property
    def passed_only(self) -> bool:
        """``InitVar``: an argument of ``__init__`` that is no field."""
        return isinstance(self.type, TypeForm) and self.type.name == "InitVar"

    def py_type(self) -> str:
        return "dataclasses.Field"

    def py_getattr(self, context: Context, name: str) -> Value:
        absent = ABSENT
        return {
            "name": self.name,
            "type": self.type,
            "default": absent if self.default is MISSING else self.default,
            "default_factory": absent if self.factory is MISSING else self.factory,
            "init": self.init,
            "metadata": self.metadata,
            "repr": self.shown,
            "compare": self.compared,
            "kw_only": self.keyword_only,
        }.get(name, MISSING)

    def value(self, m: Any) -> Value:
        """The default, made afresh where there is a factory."""
        if self.factory is not MISSING:
            return m.call(self.factory)
        return self.default


ABSENT = Instance(OBJECT)
"""``dataclasses.MISSING``."""
register("dataclasses.MISSING", ABSENT)
KW_ONLY = Instance(OBJECT)
"""``dataclasses.KW_ONLY``: the fields after it are given by name only."""
register("dataclasses.KW_ONLY", KW_ONLY)
register("dataclasses.InitVar", TypeForm(None, (), "InitVar"))
register("dataclasses.Field", native_class("dataclasses.Field"))


@entry("dataclasses.field", "attr.ib", "attr.field", "attrs.field", "attr.attrib", "pydantic.Field")
def field(
    m: Any,
    default: Value = MISSING,
    *,
    default_factory: Value = MISSING,
    factory: Value = MISSING,
    init: Value = True,
    metadata: Value = None,
    repr: Value = True,
    compare: Value = True,
    kw_only: Value = False,
    **_kw: Value,
) -> Value:
    if default is ...:
        default = MISSING
    if isinstance(default, Instance) and default is ABSENT:
        default = MISSING
    return Field(
        default,
        default_factory if default_factory is not MISSING else factory,
        init is not False,
        metadata,
        shown=repr is not False,
        compared=compare is not False,
        keyword_only=kw_only is True,
    )


def fields_of(m: Any, cls: Class) -> dict[str, Field]:
    """The fields of a dataclass, base classes first."""
    out: dict[str, Field] = {}
    for one in reversed(cls.mro):
        out.update(one.namespace.get("__dataclass_fields__", {}))
    return out


def real_fields(m: Any, cls: Class) -> dict[str, Field]:
    """The fields of a dataclass as ``fields()`` gives them: without those that are only passed to ``__init__``."""
    return {name: one for name, one in fields_of(m, cls).items() if not one.passed_only}


def _collect(m: Any, cls: Class, *, keyword_only: bool = False) -> dict[str, Field]:
    own: dict[str, Field] = {}
    for name, kind in cls.namespace.get("__annotations__", {}).items():
        if isinstance(kind, TypeForm) and kind.name == "ClassVar":
            continue
        if isinstance(kind, Instance):
            keyword_only = keyword_only or kind is KW_ONLY
            continue
        given = cls.namespace.get(name, MISSING)
        made = given if isinstance(given, Field) else Field(given)
        made.keyword_only = made.keyword_only or keyword_only
        made.name, made.type = name, kind
        own[name] = made
        if isinstance(given, Field):
            if given.default is not MISSING:
                cls.namespace[name] = given.default
            else:
                cls.namespace.pop(name, None)
    for name, value in list(cls.namespace.items()):
        if isinstance(value, Field) and name not in own:
            value.name = name
            own[name] = value
            cls.namespace.pop(name)
    return own


def make_dataclass(m: Any, cls: Class, options: dict[str, Value]) -> Class:
    """Give ``cls`` what ``@dataclass`` generates."""
    cls.namespace["__dataclass_fields__"] = _collect(m, cls, keyword_only=options.get("kw_only") is True)
    fields = fields_of(m, cls)
    compared = [name for name, one in fields.items() if one.compared and not one.passed_only]
    keep_init = "__init__" in cls.namespace or options.get("init") is False

    def init(m: Any, self: Instance, *args: Value, **kwargs: Value) -> None:
        names = [n for n, f in fields.items() if f.init and not f.keyword_only]
        given = dict(zip(names, args, strict=False))
        given.update(kwargs)
        passed: list[Value] = []
        for name, one in fields.items():
            if name in given and one.init:
                value = given.pop(name)
            else:
                value = one.value(m)
                if value is MISSING:
                    if not one.init:
                        continue
                    value = m.fail("TypeError", f"{cls.name}() is not given its field {name!r}")
            if one.passed_only:
                passed.append(value)
                continue
            m.setattr(self, name, value) if options.get("frozen") is not True else self.attrs.__setitem__(name, value)
        for name in given:
            m.fail("TypeError", f"{cls.name}() has no field {name!r}")
        hook = self.cls.lookup("__post_init__")
        if hook is MISSING:
            hook = self.cls.lookup("__attrs_post_init__")
        if hook is not MISSING:
            m.call(m.bind(hook, self, self.cls), passed)

    def equal(m: Any, self: Instance, other: Value) -> Value:
        if not isinstance(other, Instance) or other.cls is not self.cls:
            return NotImplemented
        return m.call(
            m.builtins["all"], [[operators.compare(m, "==", self.attrs.get(n), other.attrs.get(n)) for n in compared]]
        )

    def shown(m: Any, self: Instance) -> Value:
        parts = [
            f"{n}={text(m, self.attrs.get(n), quote=True)}" for n, f in fields.items() if f.shown and not f.passed_only
        ]
        return f"{cls.name}({', '.join(parts)})"

    if not keep_init:
        cls.namespace["__init__"] = Method(f"{cls.name}.__init__", init)
    cls.namespace.setdefault("__repr__", Method(f"{cls.name}.__repr__", shown))
    if options.get("eq") is not False:
        cls.namespace.setdefault("__eq__", Method(f"{cls.name}.__eq__", equal))
    if options.get("order") is True:

        def key(m: Any, self: Instance) -> Value:
            return tuple(self.attrs.get(n) for n in compared)

        for name, op in (("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">=")):
            cls.namespace[name] = Method(name, lambda m, a, b, _op=op: operators.compare(m, _op, key(m, a), key(m, b)))
    cls.namespace.setdefault("__match_args__", tuple(fields))
    return cls


@entry(
    "dataclasses.dataclass",
    "attr.s",
    "attr.attrs",
    "attrs.define",
    "attr.define",
    "attr.dataclass",
    "attrs.frozen",
    "pydantic.dataclasses.dataclass",
)
def dataclass(m: Any, cls: Value = None, /, **options: Value) -> Value:
    if isinstance(cls, Class):
        return make_dataclass(m, cls, options)
    if cls is not None:
        return cls
    return Native("dataclasses.dataclass", lambda m, c: make_dataclass(m, c, options) if isinstance(c, Class) else c)


@entry("dataclasses.fields", "attr.fields", "attrs.fields")
def fields(m: Any, value: Value) -> Value:
    cls = value.cls if isinstance(value, Instance) else value
    return tuple(real_fields(m, cls).values()) if isinstance(cls, Class) else m.derived("the fields of a value", "list")


@entry("dataclasses.is_dataclass", "attr.has")
def is_dataclass(m: Any, value: Value) -> Value:
    cls = value.cls if isinstance(value, Instance) else value
    return isinstance(cls, Class) and bool(fields_of(m, cls))


@entry("dataclasses.asdict", "attr.asdict", "attrs.asdict")
def asdict(m: Any, value: Value, **_kw: Value) -> Value:
    if isinstance(value, Unknown):
        return Unknown(value.why, value.where, "dict")
    if isinstance(value, Instance) and fields_of(m, value.cls):
        return {n: asdict(m, value.attrs.get(n)) for n in real_fields(m, value.cls)}
    if isinstance(value, dict):
        return {k: asdict(m, v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(asdict(m, v) for v in value) if type(value) in (list, tuple) else list(value)
    return value


@entry("dataclasses.astuple")
def astuple(m: Any, value: Value) -> Value:
    return tuple(asdict(m, value).values()) if isinstance(value, Instance) else value


@entry("dataclasses.replace", "attr.evolve", "attrs.evolve")
def replace(m: Any, value: Value, /, **changes: Value) -> Value:
    if not isinstance(value, Instance):
        return m.derived("a changed copy")
    given = {n: value.attrs.get(n) for n, f in fields_of(m, value.cls).items() if f.init}
    return m.call(value.cls, [], {**given, **changes})


@entry("dataclasses.make_dataclass")
def make_dataclass_function(m: Any, name: Value, listed: Value, **_kw: Value) -> Value:
    namespace: dict[str, Value] = {"__annotations__": {}}
    for one in m.listed(listed):
        parts = m.listed(one) if not isinstance(one, str) else [one]
        namespace["__annotations__"][parts[0]] = parts[1] if len(parts) > 1 else None
        if len(parts) > 2:
            namespace[parts[0]] = parts[2]
    cls = classes.create(m, str(name), str(name), [], namespace, {}, m.frames[-1].module)
    return make_dataclass(m, cls, {}) if isinstance(cls, Class) else cls


class _ModelMeta(classes.Meta):
    """``pydantic.BaseModel``: every subclass is a dataclass with keyword arguments."""

    def created(self, m: Any, cls: Class, keywords: dict[str, Value]) -> Value:
        return make_dataclass(m, cls, {})


def _dump(m: Any, self: Instance, **_kw: Value) -> Value:
    return asdict(m, self)


_MODEL = native_class(
    "pydantic.BaseModel",
    model_dump=_dump,
    dict=_dump,
    model_copy=lambda m, self, **_k: deep(m, self, {}),
    json=lambda m, self, **_k: m.derived("JSON text", "str"),
)
_MODEL.meta = _ModelMeta()
for _name in ("model_validate", "parse_obj"):
    _MODEL.namespace[_name] = ClassMethod(
        Native(f"pydantic.{_name}", lambda m, cls, data, **_k: m.call(cls, [], m.mapping(data)))
    )
register("pydantic.BaseModel", _MODEL)
register("pydantic_settings.BaseSettings", _MODEL)


@entry(
    "pydantic.validator",
    "pydantic.field_validator",
    "pydantic.model_validator",
    "pydantic.root_validator",
    "attr.validators.instance_of",
)
def validator(m: Any, *_args: Value, **_kw: Value) -> Value:
    return Native("pydantic.validator", lambda _m, fn: fn)


register("pydantic.ConfigDict", Native("pydantic.ConfigDict", lambda _m, **values: values))
