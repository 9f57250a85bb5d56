"""``enum``, ``abc``, ``typing``, ``types``, ``contextlib``, ``copy``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oarlock_profiler.core.interpreter import builtin_types, classes, operators
from oarlock_profiler.core.interpreter.builtin_types import IntInstance, StrInstance
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, Property, StaticMethod, TypeForm
from oarlock_profiler.core.interpreter.errors import OBJECT, Raised
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.iterators import GeneratorObject, next_item
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Context,
    Function,
    HostObject,
    Instance,
    Module,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.host_functions import nothing
from oarlock_profiler.core.overlays.registry import entry, linearise, native_class, register

LIBRARIES = (
    "enum", "abc", "typing", "typing_extensions", "types", "contextlib", "copy", "copyreg", "numbers",
    "strenum", "six", "future", "builtins", "__builtin__", "dataclasses",
)  # fmt: skip

# -- enum ------------------------------------------------------------------------------------------------------------


class EnumMeta(classes.Meta):
    """Turns the values of a class body into members."""

    def created(self, m: Any, cls: Class, keywords: dict[str, Value]) -> Value:
        members: dict[str, Value] = dict(getattr(cls.meta, "members", {})) if cls.meta is not self else {}
        last: Any = 0
        text = any(b.qualname == "builtins.str" for b in cls.mro)
        flag = any(b.qualname in ("enum.Flag", "enum.IntFlag") for b in cls.mro)
        for name, value in list(cls.namespace.items()):
            if name.startswith("_") or isinstance(value, (Function, Property, StaticMethod, ClassMethod, Class)):
                continue
            if isinstance(value, Native):
                continue
            if type(value) is Auto:
                hook = cls.lookup("_generate_next_value_")
                if isinstance(hook, (Function, StaticMethod)):
                    hook = hook.function if isinstance(hook, StaticMethod) else hook
                    value = m.call(hook, [name, 1, len(members), [x.attrs["value"] for x in members.values()]])
                else:
                    value = self._next(value, name, last, text=text, flag=flag)
            elif isinstance(value, AutoPair):
                value = value.worked_out()
            last = value
            alias = next(
                (x for x in members.values() if type(x.attrs["value"]) is type(value) and x.attrs["value"] == value),
                None,
            )
            member = alias if alias is not None else self._member(m, cls, name, value)
            members[name] = member
            cls.namespace[name] = member
        meta = EnumMeta()
        meta.members = members
        cls.meta = meta
        return cls

    @staticmethod
    def _next(automatic: Auto, name: str, last: Value, *, text: bool, flag: bool) -> Value:
        """What ``auto()`` stands for."""
        if text:
            value: Value = name.lower()
        elif flag:
            value = 1 << last.bit_length() if isinstance(last, int) else 1
        else:
            value = last + 1 if isinstance(last, int) else 1
        automatic.value = value
        return value

    members: dict[str, Value] = {}  # noqa: RUF012 - replaced on each class

    @staticmethod
    def _member(m: Any, cls: Class, name: str, value: Value) -> Instance:
        made: Instance
        if any(b.qualname == "builtins.int" for b in cls.mro) and isinstance(value, int):
            made = IntInstance(cls, value)
        elif any(b.qualname == "builtins.str" for b in cls.mro) and isinstance(value, str):
            made = StrInstance(cls, value)
        else:
            made = Instance(cls)
        made.attrs.update(name=name, value=value, _value_=value, _name_=name)
        init = cls.lookup("__init__")
        if isinstance(init, Function):
            m.call(BoundMethod(init, made), list(value) if isinstance(value, tuple) else [value])
            made.attrs.setdefault("value", value)
        return made

    def _distinct(self) -> list[Value]:
        out: list[Value] = []
        for member in self.members.values():
            if not any(member is one for one in out):
                out.append(member)
        return out

    def call(self, m: Any, cls: Class, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
        if not self.members and len(args) >= 2:
            names = args[1].replace(",", " ").split() if isinstance(args[1], str) else m.listed(args[1])
            namespace = {n: i + 1 for i, n in enumerate(names) if isinstance(n, str)}
            if isinstance(args[1], dict):
                namespace = dict(args[1])
            return classes.create(m, str(args[0]), str(args[0]), [cls], namespace, {}, m.frames[-1].module)
        if not args:
            return m.fail("TypeError", f"{cls.name}() needs a value")
        value = args[0]
        if isinstance(value, Unknown):
            return Unknown(value.why, value.where, None, name=value.name)
        for member in self.members.values():
            if member is value or (type(member.attrs["value"]) is type(value) and member.attrs["value"] == value):
                return member
        for member in self.members.values():
            if m.truth(member.attrs["value"] == value if isinstance(value, (int, str, float)) else False) is True:
                return member
        hook = cls.lookup("_missing_")
        if isinstance(hook, ClassMethod):
            found = m.call(hook.function, [cls, value])
            if found is not None:
                return found
        return m.fail("ValueError", f"{value!r} is not a valid {cls.name}"[:200])

    def getitem(self, m: Any, cls: Class, key: Value) -> Value:
        if isinstance(key, Unknown):
            return m.part(key)
        found = self.members.get(key, MISSING) if isinstance(key, str) else MISSING
        return m.fail("KeyError", f"{cls.name} has no member {key!r}"[:200]) if found is MISSING else found

    def contains(self, m: Any, cls: Class, item: Value) -> Value:
        if isinstance(item, Unknown):
            return Unknown(item.why, item.where, "bool")
        return any(
            item is x or (isinstance(item, (int, str)) and x.attrs["value"] == item) for x in self.members.values()
        )

    def items(self, m: Any, cls: Class) -> Any:
        return self._distinct()

    def getattr(self, m: Any, cls: Class, name: str) -> Value:
        if name == "__members__":
            return dict(self.members)
        if name in ("_member_names_", "_member_map_"):
            return list(self.members) if name == "_member_names_" else dict(self.members)
        return MISSING


class Auto(HostObject):
    """``enum.auto()``; ``value`` is set when its member is made."""

    value: Value = None

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        return AutoPair(op, self, other) if op in ("|", "&", "^") else MISSING


class AutoPair(Auto):
    """``A | B`` of two automatic values in the body of a flag."""

    def __init__(self, op: str, one: Value, other: Value) -> None:
        self.op = op
        self.parts = (one, other)

    def worked_out(self) -> Value:
        """Its value, once its parts have theirs."""
        one, other = (p.worked_out() if isinstance(p, AutoPair) else p.value if isinstance(p, Auto) else p
                      for p in self.parts)  # fmt: skip
        if not isinstance(one, int) or not isinstance(other, int):
            return None
        return {"|": one | other, "&": one & other, "^": one ^ other}[self.op]


def _enum_text(m: Any, self: Instance) -> Value:
    return f"{self.cls.name}.{self.attrs.get('name')}"


def _flag(op: str) -> Any:
    def combine(m: Any, self: Instance, other: Value) -> Value:
        a = self.attrs["value"]
        b = other.attrs["value"] if isinstance(other, Instance) else other
        if not isinstance(a, int) or not isinstance(b, int):
            return m.derived("a flag")
        return _flag_of(self.cls, {"|": a | b, "&": a & b, "^": a ^ b}[op])

    return combine


def _flag_of(cls: Class, value: int) -> Instance:
    """The member of a flag with this value, or the combination that stands for it."""
    members = cls.meta.members
    for member in members.values():
        if member.attrs["value"] == value:
            found: Instance = member
            return found
    made = EnumMeta._member(None, cls, "|".join(members) or "0", value)
    made.attrs["name"] = made.attrs["_name_"] = "|".join(
        n for n, x in members.items() if isinstance(x.attrs["value"], int) and x.attrs["value"] & value
    )
    return made


def _flag_inverted(m: Any, self: Instance) -> Value:
    every = 0
    for member in self.cls.meta.members.values():
        every |= member.attrs["value"]
    return _flag_of(self.cls, every & ~self.attrs["value"])


def _flag_contains(m: Any, self: Instance, other: Value) -> Value:
    value = other.attrs.get("value") if isinstance(other, Instance) else other
    return isinstance(value, int) and value & self.attrs["value"] == value


_FLAG_METHODS = {
    "__or__": _flag("|"), "__and__": _flag("&"), "__xor__": _flag("^"), "__ror__": _flag("|"), "__rand__": _flag("&"),
    "__invert__": _flag_inverted, "__contains__": _flag_contains,
    "__bool__": lambda m, self: bool(self.attrs["value"]),
    "__eq__": lambda m, self, other: self is other or (
        isinstance(other, Instance) and other.cls is self.cls and other.attrs["value"] == self.attrs["value"]
    ),
}  # fmt: skip


def _enum_shown(m: Any, self: Instance) -> Value:
    return f"<{self.cls.name}.{self.attrs.get('name')}: {text(m, self.attrs.get('value'), quote=True)}>"


ENUM = native_class("enum.Enum", __str__=_enum_text, __repr__=_enum_shown, __hash__=lambda m, self: id(self))
ENUM.meta = EnumMeta()
register("enum.Enum", ENUM)
for _name, _bases, _extra in (
    ("IntEnum", (builtin_types.INT, ENUM), {"__str__": lambda m, self: str(int(self))}),
    ("StrEnum", (builtin_types.STR, ENUM), {"__str__": lambda m, self: str.__str__(self)}),
    ("Flag", (ENUM,), _FLAG_METHODS),
    ("IntFlag", (builtin_types.INT, ENUM), _FLAG_METHODS),
):
    _cls = native_class(f"enum.{_name}", bases=_bases, **_extra)
    _cls.meta = ENUM.meta
    register(f"enum.{_name}", _cls)
    if _name == "StrEnum":
        register("strenum.StrEnum", _cls)
register("enum.auto", Native("enum.auto", lambda _m: Auto()))
register("enum.unique", Native("enum.unique", lambda _m, cls: cls))
register("enum.EnumMeta", classes_meta := native_class("enum.EnumMeta"))
register("enum.EnumType", classes_meta)
register("enum.member", Native("enum.member", lambda _m, value: value))
register("enum.nonmember", Native("enum.nonmember", lambda _m, value: value))

# -- abc, typing, types ----------------------------------------------------------------------------------------------

_ABC = native_class("abc.ABC", register=lambda _m, _cls, other=None: other)
register("abc.ABC", _ABC)
register("abc.ABCMeta", native_class("abc.ABCMeta"))
for _name in ("abstractmethod", "abstractclassmethod", "abstractstaticmethod"):
    register(f"abc.{_name}", Native(f"abc.{_name}", lambda _m, fn: fn))
register("abc.abstractproperty", Native("abc.abstractproperty", lambda _m, fn: Property(fn)))


def _form(name: str, origin: Value = None) -> None:
    for module in ("typing", "typing_extensions"):
        register(f"{module}.{name}", TypeForm(origin, (), name))


_form("List", builtin_types.LIST)
_form("Dict", builtin_types.DICT)
_form("Tuple", builtin_types.TUPLE)
_form("Set", builtin_types.SET)
_form("FrozenSet", builtin_types.FROZENSET)
_form("DefaultDict", builtin_types.DEFAULT_DICT)
_form("OrderedDict", builtin_types.ORDERED_DICT)
_form("Counter", builtin_types.COUNTER)
_form("Deque", builtin_types.DEQUE)
_form("Type", OBJECT)
for _name in (
    "Any", "Optional", "Union", "Literal", "Annotated", "ClassVar", "Final", "TypeAlias", "NoReturn", "Never",
    "Self", "Concatenate",
    "Required", "NotRequired", "Unpack", "TypeGuard", "Text", "AnyStr", "IO", "TextIO", "BinaryIO", "Pattern",
    "Match", "LiteralString",
    "SupportsInt", "SupportsFloat", "SupportsIndex", "ContextManager", "AsyncContextManager", "ReadOnly", "TypeIs",
):  # fmt: skip
    _form(_name)
for _name in ("Generic", "Protocol"):
    _cls = native_class(f"typing.{_name}")
    for _module in ("typing", "typing_extensions"):
        register(f"{_module}.{_name}", _cls)
register("typing.TypedDict", builtin_types.DICT)
register("typing_extensions.TypedDict", builtin_types.DICT)
for _module in ("typing", "typing_extensions"):
    register(f"{_module}.TYPE_CHECKING", False)
    for _name in ("TypeVar", "ParamSpec", "TypeVarTuple", "NewType"):
        register(
            f"{_module}.{_name}",
            Native(f"typing.{_name}", lambda _m, name="", *_a, **_k: TypeForm(None, (), str(name))),
        )
    for _name in ("cast",):
        register(f"{_module}.{_name}", Native("typing.cast", lambda _m, _kind, value: value))
    for _name in ("overload", "no_type_check", "final", "override", "runtime_checkable", "dataclass_transform"):
        register(
            f"{_module}.{_name}",
            Native(
                f"typing.{_name}",
                lambda m, fn=None, **_k: fn if fn is not None else Native("decorator", lambda _m, f: f),
            ),
        )
    register(
        f"{_module}.get_type_hints",
        Native("typing.get_type_hints", lambda m, value, *_a, **_k: m.getattr(value, "__annotations__", {})),
    )
    register(
        f"{_module}.get_origin",
        Native("typing.get_origin", lambda m, form: (form.origin or form) if isinstance(form, TypeForm) else None),
    )
    register(
        f"{_module}.get_args",
        Native("typing.get_args", lambda m, form: form.args if isinstance(form, TypeForm) else ()),
    )
    register(f"{_module}.Hashable", OBJECT)


def _simple_namespace(m: Any, self: Instance, *_args: Value, **values: Value) -> None:
    self.attrs.update(values)


def _namespace_text(m: Any, self: Instance) -> Value:
    parts = [f"{name}={text(m, value, quote=True)}" for name, value in self.attrs.items()]
    return f"namespace({', '.join(parts)})"


def _namespace_equal(m: Any, self: Instance, other: Value) -> Value:
    if not isinstance(other, Instance) or other.cls is not self.cls:
        return NotImplemented
    return operators.compare(m, "==", self.attrs, other.attrs)


register(
    "types.SimpleNamespace",
    native_class(
        "types.SimpleNamespace", __init__=_simple_namespace, __repr__=_namespace_text, __eq__=_namespace_equal
    ),
)
register("types.MethodType", Native("types.MethodType", lambda _m, function, obj: BoundMethod(function, obj)))
register("types.MappingProxyType", Native("types.MappingProxyType", lambda _m, value: value))
register(
    "types.ModuleType",
    native_class("types.ModuleType", __init__=lambda _m, self, name="", *_a: self.attrs.update(__name__=name)),
)
for _name in (
    "FunctionType",
    "LambdaType",
    "BuiltinFunctionType",
    "GeneratorType",
    "CodeType",
    "TracebackType",
    "BuiltinMethodType",
):
    _kind = Class(_name, f"types.{_name}", (OBJECT,), {})
    _kind.mro = linearise(_kind)
    if "Function" in _name or _name == "LambdaType":
        _kind.namespace["__subclasshook__"] = Native(
            "hook", lambda _m, kind: isinstance(kind, Class) and kind.qualname == "builtins.function"
        )
        _kind.namespace["__new__"] = Native(_name, lambda m, _cls, *_a, **_k: m.derived("a function made from code"))
    register(f"types.{_name}", _kind)
register("types.NoneType", builtin_types.NONE)
for _name in ("Number", "Real", "Integral", "Complex", "Rational"):
    _kind = Class(_name, f"numbers.{_name}", (OBJECT,), {})
    _kind.mro = linearise(_kind)
    _names = ("int", "bool") if _name == "Integral" else ("int", "float", "bool")
    _kind.namespace["__subclasshook__"] = Native(
        "hook",
        lambda _m, kind, _names=_names: (
            isinstance(kind, Class) and any(c.name in _names and c.qualname.startswith("builtins.") for c in kind.mro)
        ),
    )
    register(f"numbers.{_name}", _kind)


@entry("six.with_metaclass")
def with_metaclass(m: Any, _meta: Value, *bases: Value) -> Value:
    return bases[0] if bases else OBJECT


@entry("six.add_metaclass")
def add_metaclass(m: Any, _meta: Value) -> Value:
    return Native("six.add_metaclass", lambda _m, cls: cls)


for _name, _value in (
    ("PY2", False),
    ("PY3", True),
    ("string_types", (builtin_types.STR,)),
    ("integer_types", (builtin_types.INT,)),
    ("text_type", builtin_types.STR),
):
    register(f"six.{_name}", _value)
register("six.iteritems", Native("six.iteritems", lambda m, d: m.call(m.getattr(d, "items"))))
register("six.itervalues", Native("six.itervalues", lambda m, d: m.call(m.getattr(d, "values"))))
register("six.moves.range", builtin_types.RANGE)
register(
    "six.moves.cPickle.load", Native("pickle.load", lambda m, *_a, **_k: m.unknown("stored data", name="pickle.load"))
)


@entry("builtins.__getattr__")
def builtins_attribute(m: Any, name: Value) -> Value:
    return m.builtins.get(name, MISSING)


# -- contextlib ------------------------------------------------------------------------------------------------------


class GeneratorContext(HostObject):
    """``@contextmanager``: a generator as a context; also usable as a decorator."""

    def __init__(self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
        self.made = (function, args, kwargs)
        self.generator: Value = None

    def py_type(self) -> str:
        return "contextlib._GeneratorContextManager"

    def _enter(self, m: Context) -> Value:
        function, args, kwargs = self.made
        self.generator = m.call(function, args, kwargs)
        return (
            next_item(m, self.generator, None)
            if isinstance(self.generator, GeneratorObject)
            else m.unknown("a context manager that does not yield")
        )

    def _exit(self, m: Any, kind: Value = None, error: Value = None, _traceback: Value = None) -> Value:
        generator, self.generator = self.generator, None
        if not isinstance(generator, GeneratorObject):
            return False
        if error is None:
            next_item(m, generator, None)
            return False
        try:
            m.call(generator.py_getattr(m, "throw"), [kind, error])
        except Raised as raised:
            again = raised.value
        else:
            return True
        if again is error:
            return False
        if again.cls.name == "StopIteration":
            return True
        raise Raised(again)

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("__enter__", "__aenter__"):
            return Native("context.__enter__", self._enter)
        if name in ("__exit__", "__aexit__"):
            return Native("context.__exit__", self._exit)
        return MISSING

    def py_call(self, context: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        function = args[0]

        def inside(m: Any, *given: Value, **named: Value) -> Value:
            again = GeneratorContext(*self.made)
            again._enter(m)
            try:
                return m.call(function, given, named)
            finally:
                again._exit(m)

        return Native("contextlib.decorated", inside)


class ContextFunction(HostObject):
    """A function decorated with ``@contextmanager``."""

    def __init__(self, function: Value) -> None:
        self.function = function

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return GeneratorContext(self.function, args, kwargs)

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "__get__":
            return Native("__get__", lambda _m, obj, _cls=None: BoundMethod(self, obj) if obj is not None else self)
        return context.find(self.function, name) if name.startswith("__") and name != "__func__" else MISSING


for _name in ("contextmanager", "asynccontextmanager"):
    register(f"contextlib.{_name}", Native(f"contextlib.{_name}", lambda _m, fn: ContextFunction(fn)))


class Plain(HostObject):
    """A context that does nothing (``nullcontext``), or swallows some exceptions (``suppress``), or closes."""

    def __init__(self, value: Value = None, swallow: tuple[Value, ...] = ()) -> None:
        self.value = value
        self.swallow = swallow

    def _exit(self, m: Any, kind: Value = None, _error: Value = None, _tb: Value = None) -> Value:
        return isinstance(kind, Class) and any(isinstance(s, Class) and kind.is_subclass(s) for s in self.swallow)

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("__enter__", "__aenter__"):
            return Native("context.__enter__", lambda _m: self.value)
        return Native("context.__exit__", self._exit) if name in ("__exit__", "__aexit__") else MISSING

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return args[0] if args else self


register("contextlib.nullcontext", Native("contextlib.nullcontext", lambda _m, value=None: Plain(value)))
register("contextlib.closing", Native("contextlib.closing", lambda _m, value=None: Plain(value)))
register("contextlib.suppress", Native("contextlib.suppress", lambda _m, *kinds: Plain(None, kinds)))
for _name in ("redirect_stdout", "redirect_stderr", "chdir"):
    register(f"contextlib.{_name}", Native(f"contextlib.{_name}", lambda _m, value=None: Plain(value)))


def _decorate(m: Any, self: Instance, function: Value) -> Value:
    def inside(m: Any, *given: Value, **named: Value) -> Value:
        m.call(m.getattr(self, "__enter__"))
        error: Instance | None = None
        result: Value = None
        try:
            result = m.call(function, given, named)
        except Raised as raised:
            error = raised.value
        details = [None, None, None] if error is None else [error.cls, error, None]
        swallowed = m.truth(m.call(m.getattr(self, "__exit__"), details)) is True
        if error is not None and not swallowed:
            raise Raised(error)
        return result

    return BindingFunction(Native("contextlib.decorated", inside), function)


class BindingFunction(HostObject):
    """A host function in place of a script's: it binds like a method and answers for the original's attributes."""

    def __init__(self, native: Native, original: Value) -> None:
        self.native = native
        self.original = original

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return context.call(self.native, args, kwargs)

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "__get__":
            return Native(
                "__get__", lambda _m, obj, _cls=None: BoundMethod(self.native, obj) if obj is not None else self
            )
        return (
            context.find(self.original, name)
            if name in ("__name__", "__doc__", "__module__", "__qualname__")
            else MISSING
        )


register("contextlib.ContextDecorator", native_class("contextlib.ContextDecorator", __call__=_decorate))
register("contextlib.AbstractContextManager", native_class("contextlib.AbstractContextManager"))


class ExitStack(HostObject):
    """``contextlib.ExitStack``."""

    def __init__(self) -> None:
        self.held: list[Value] = []
        """What to call with an error's details at the end, last first."""

    def _push(self, m: Any, manager: Value) -> Value:
        method = m.find(manager, "__enter__")
        entered = m.derived("a context manager") if method is MISSING else m.call(method)
        self._keep(m, manager)
        return entered

    def _keep(self, m: Any, manager: Value) -> Value:
        method = m.find(manager, "__exit__")
        if method is MISSING and isinstance(manager, (Function, BoundMethod, Native)):
            method = manager
        if method is not MISSING:
            self.held.append(method)
        return manager

    def _callback(self, _m: Any, function: Value, *args: Value, **kwargs: Value) -> Value:
        self.held.append(Native("ExitStack.callback", lambda m, *_error: (m.call(function, args, kwargs), False)[1]))
        return function

    def _close(self, m: Any, *error: Value) -> Value:
        details, swallowed = list(error) or [None, None, None], False
        while self.held:
            if m.truth(m.call(self.held.pop(), details)) is True and details[0] is not None:
                details, swallowed = [None, None, None], True
        return swallowed

    def _all(self, _m: Any) -> Value:
        taken = ExitStack()
        taken.held, self.held = self.held, []
        return taken

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__enter__":
            return Native("ExitStack.__enter__", lambda _m: self)
        if name == "enter_context":
            return Native("ExitStack.enter_context", self._push)
        if name in ("__exit__", "close"):
            return Native("ExitStack.close", self._close)
        found: Any = {"callback": self._callback, "push": self._keep, "pop_all": self._all}.get(name)
        return MISSING if found is None else Native(f"ExitStack.{name}", found)


register("contextlib.ExitStack", Native("contextlib.ExitStack", lambda _m: ExitStack()))

# -- copy ------------------------------------------------------------------------------------------------------------


def deep(m: Any, value: Value, memo: dict[int, Value], depth: int = 0) -> Value:
    """``copy.deepcopy``: instances that know how (``clone(context, memo)``) copy themselves."""
    m.spend()
    if value is None or type(value) in (int, float, str, bool, bytes, complex, type(...)):
        return value
    if isinstance(value, (Class, Function, Native, Module, Unknown)) or depth > 100:
        return value
    key = id(value)
    if key in memo:
        return memo[key]
    clone = getattr(value, "clone", None)
    if callable(clone) and isinstance(value, (Instance, HostObject)):
        made = memo[key] = clone(m, memo)
        return made
    if isinstance(value, HostObject) and not isinstance(value, Instance):
        method = value.py_getattr(m, "__deepcopy__")
        return value if method is MISSING else m.call(method, [memo])
    if isinstance(value, Instance):
        return _deep_instance(m, value, memo, depth)
    if isinstance(value, list):
        out: Value = []
        memo[key] = out
        out.extend(deep(m, item, memo, depth + 1) for item in value)
        return out
    if isinstance(value, dict):
        made = value.copy()
        memo[key] = made
        made.update({k: deep(m, v, memo, depth + 1) for k, v in value.items()})
        return made
    if isinstance(value, tuple):
        return tuple(deep(m, item, memo, depth + 1) for item in value)
    if isinstance(value, BoundMethod):
        return BoundMethod(value.function, deep(m, value.receiver, memo, depth + 1))
    return m.host(_shallow, value)


def _deep_instance(m: Any, value: Instance, memo: dict[int, Value], depth: int) -> Value:
    method = value.cls.lookup("__deepcopy__")
    if method is not MISSING:
        made = memo[id(value)] = m.call(m.bind(method, value, value.cls), [memo])
        return made
    if isinstance(value, (int, float, str)):
        return value
    made = _bare(m, value)
    memo[id(value)] = made
    if isinstance(value, dict) and isinstance(made, dict):
        made.update({k: deep(m, v, memo, depth + 1) for k, v in value.items()})
    elif isinstance(value, (list, set)) and isinstance(made, list):
        made.extend(deep(m, v, memo, depth + 1) for v in value)
    for name, item in value.attrs.items():
        made.attrs[name] = deep(m, item, memo, depth + 1)
    return made


def _bare(m: Any, value: Instance) -> Instance:
    if isinstance(value, tuple):
        return builtin_types.TupleInstance(value.cls, tuple(value))
    if type(value) is Instance or isinstance(value, (dict, list, set)):
        return classes.allocate(m, value.cls)
    made = classes.allocate(m, value.cls)
    for name, item in vars(value).items():
        if name not in ("cls", "attrs"):
            setattr(made, name, item)
    return made


def _shallow(value: Value) -> Value:
    return value.copy() if hasattr(value, "copy") else value


@entry("copy.deepcopy")
def deepcopy(m: Any, value: Value, memo: Value = None, *_args: Value) -> Value:
    return deep(m, value, memo if isinstance(memo, dict) else {})


@entry("copy.copy")
def copy(m: Any, value: Value) -> Value:
    if isinstance(value, Instance):
        method = value.cls.lookup("__copy__")
        if method is not MISSING:
            return m.call(m.bind(method, value, value.cls))
        if isinstance(value, (int, float, str, tuple)):
            return value
        made = _bare(m, value)
        if isinstance(value, dict) and isinstance(made, dict):
            made.update(value)
        elif isinstance(value, list) and isinstance(made, list):
            made.extend(value)
        made.attrs.update(value.attrs)
        return made
    return _shallow(value) if isinstance(value, (list, dict, set)) or type(value).__name__ == "deque" else value


nothing("copyreg.pickle")
