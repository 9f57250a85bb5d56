"""``inspect``: signatures, kinds of values, members."""

from __future__ import annotations

import inspect
from typing import Any

from oarlock_profiler.core.interpreter.code_objects import CO_COROUTINE, FLAGS, CodeObject
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, Property, StaticMethod
from oarlock_profiler.core.interpreter.errors import OBJECT
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Function,
    HostObject,
    Instance,
    Iteration,
    Module,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.optimizer_signatures import OPTIMIZER_PARAMETERS
from oarlock_profiler.core.overlays.registry import entry, get, linearise, register
from oarlock_profiler.core.overlays.stdlib_collections import Partial

LIBRARIES = ("inspect",)

EMPTY = Class("_empty", "inspect._empty", (OBJECT,), {})
EMPTY.mro = linearise(EMPTY)
_KINDS = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD")


class Parameter(HostObject):
    """One parameter of a signature."""

    def __init__(self, name: str, default: Value, kind: str, annotation: Value) -> None:
        self.values = {"name": name, "default": default, "kind": kind, "annotation": annotation}

    def py_type(self) -> str:
        return "inspect.Parameter"

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "kind":
            return ParameterKind(self.values["kind"])
        if name == "__str__":
            return Native("Parameter.__str__", self.shown)
        if name == "replace":
            return Native("Parameter.replace", lambda _m, **new: Parameter(**{**self.values, **new}))
        return {"empty": EMPTY, **{k: ParameterKind(k) for k in _KINDS}}.get(name, self.values.get(name, MISSING))

    def shown(self, m: Any) -> str:
        """As in the text of a signature."""
        kind, name = self.values["kind"], str(self.values["name"])
        out = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(kind, "") + name
        annotation, default = self.values["annotation"], self.values["default"]
        annotated = annotation is not EMPTY
        if annotated:
            out += f": {annotation.name if isinstance(annotation, Class) else text(m, annotation, quote=True)}"
        if default is not EMPTY:
            out += f"{' = ' if annotated else '='}{text(m, default, quote=True)}"
        return out


class ParameterKind(HostObject):
    """``Parameter.VAR_KEYWORD`` and the like."""

    def __init__(self, name: str) -> None:
        self.name = name

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "__str__":
            return Native("kind", lambda _m: self.name)
        return {"name": self.name, "value": _KINDS.index(self.name)}.get(name, MISSING)

    def py_binary(self, context: Any, op: str, other: Value, reflected: bool) -> Value:
        if not isinstance(other, ParameterKind):
            return MISSING
        mine, theirs = _KINDS.index(self.name), _KINDS.index(other.name)
        return {"==": mine == theirs, "!=": mine != theirs, "<": mine < theirs, ">": mine > theirs}.get(op, MISSING)


class Parameters(HostObject):
    """The parameters of a library's function that takes more than we model: a name that is missing may be there.

    ``names`` are all its parameters, where they are known by name.
    """

    def __init__(self, known: dict[str, Value], name: str) -> None:
        self.known = known
        self.name = name
        listed = OPTIMIZER_PARAMETERS.get(name)
        self.names = None if listed is None else listed.split()

    def py_binary(self, context: Any, op: str, other: Value, reflected: bool) -> Value:
        if op != "in":
            return MISSING
        if self.names is not None:
            return other in self.names
        return True if other in self.known else context.derived(f"the parameters of {self.name}", "bool")

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "keys" and self.names is not None:
            names = list(self.names)
            return Native("Parameters.keys", lambda _m: names)
        return context.derived(f"the parameters of {self.name}") if name in ("keys", "values", "items") else MISSING

    def py_iterate(self, context: Any) -> Iteration | None:
        if self.names is not None:
            return Iteration(list(self.names))
        return Iteration(list(self.known), exact=False)

    def py_getitem(self, context: Any, key: Value) -> Value:
        return self.known.get(key) or context.derived(f"a parameter of {self.name}")


class BoundArguments(HostObject):
    """``signature.bind(...)``."""

    def __init__(self, signature: Signature, arguments: dict[str, Value]) -> None:
        self.signature = signature
        self.arguments = arguments

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "arguments":
            return self.arguments
        if name == "apply_defaults":
            return Native("BoundArguments.apply_defaults", self._defaults)
        if name in ("args", "kwargs"):
            return self._spread()[name == "kwargs"]
        return MISSING

    def _defaults(self, _m: Any) -> None:
        given = dict(self.arguments)
        self.arguments.clear()
        for name, parameter in self.signature.parameters.items():
            kind, default = parameter.values["kind"], parameter.values["default"]
            if name in given:
                self.arguments[name] = given[name]
            elif kind in ("VAR_POSITIONAL", "VAR_KEYWORD"):
                self.arguments[name] = () if kind == "VAR_POSITIONAL" else {}
            elif default is not EMPTY:
                self.arguments[name] = default

    def _spread(self) -> tuple[tuple[Value, ...], dict[str, Value]]:
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        for name, value in self.arguments.items():
            kind = self.signature.parameters[name].values["kind"]
            if kind == "VAR_POSITIONAL":
                args += value
            elif kind == "VAR_KEYWORD":
                kwargs.update(value)
            elif kind == "KEYWORD_ONLY" or kwargs:
                kwargs[name] = value
            else:
                args.append(value)
        return tuple(args), kwargs


class Signature(HostObject):
    """``inspect.signature(f)``."""

    def __init__(self, parameters: dict[str, Parameter], returns: Value = EMPTY, more: str | None = None) -> None:
        self.parameters = parameters
        self.returns = returns
        self.more = more
        """The name of a library's function whose parameters are known in part only."""

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "parameters":
            return dict(self.parameters) if self.more is None else Parameters(dict(self.parameters), self.more)
        if name in ("bind", "bind_partial"):
            partly = name == "bind_partial"
            return Native(f"Signature.{name}", lambda m, *args, **kwargs: self.bind(m, args, kwargs, partly))
        if name == "__str__":
            return Native("Signature.__str__", self.shown)
        if name == "replace":
            return Native("Signature.replace", self.replaced)
        return {"return_annotation": self.returns, "empty": EMPTY}.get(name, MISSING)

    def py_binary(self, context: Any, op: str, other: Value, reflected: bool) -> Value:
        if op not in ("==", "!=") or not isinstance(other, Signature):
            return MISSING
        return (self.shown(context) == other.shown(context)) is (op == "==")

    def replaced(self, m: Any, **new: Value) -> Signature:
        """``signature.replace(parameters=…)``."""
        given = m.listed(new["parameters"]) if "parameters" in new else list(self.parameters.values())
        parameters = {p.values["name"]: p for p in given if isinstance(p, Parameter)}
        return Signature(parameters, new.get("return_annotation", self.returns), self.more)

    def bind(self, m: Any, args: tuple[Value, ...], kwargs: dict[str, Value], partly: bool) -> Value:
        """Names to the values given, by Python's rules."""
        if self.more is not None:
            return m.derived(f"bound arguments of {self.more}")
        left, named = list(args), dict(kwargs)
        out: dict[str, Value] = {}
        for name, parameter in self.parameters.items():
            kind = parameter.values["kind"]
            if kind == "VAR_POSITIONAL":
                if left:
                    out[name] = tuple(left)
                left = []
            elif kind == "VAR_KEYWORD":
                if named:
                    out[name] = dict(named)
                named = {}
            elif left and kind != "KEYWORD_ONLY":
                out[name] = left.pop(0)
            elif name in named and kind != "POSITIONAL_ONLY":
                out[name] = named.pop(name)
            elif parameter.values["default"] is EMPTY and not partly:
                return m.fail("TypeError", f"missing a required argument: {name!r}")
        if left or named:
            return m.fail("TypeError", "too many arguments" if left else f"unexpected argument {next(iter(named))!r}")
        return BoundArguments(self, out)

    def shown(self, m: Any) -> str:
        """``(a, /, b=1, *, c)``."""
        parts: list[str] = []
        kinds = [p.values["kind"] for p in self.parameters.values()]
        starred = False
        for index, parameter in enumerate(self.parameters.values()):
            kind = parameter.values["kind"]
            if kind == "KEYWORD_ONLY" and not starred:
                parts.append("*")
            starred = starred or kind in ("VAR_POSITIONAL", "KEYWORD_ONLY")
            parts.append(parameter.shown(m))
            if kind == "POSITIONAL_ONLY" and kinds[index + 1 : index + 2] != ["POSITIONAL_ONLY"]:
                parts.append("/")
        body = f"({', '.join(parts)})"
        if self.returns is EMPTY:
            return body
        return (
            f"{body} -> {self.returns.name if isinstance(self.returns, Class) else text(m, self.returns, quote=True)}"
        )


def parameters_of(m: Any, target: Value) -> dict[str, Parameter] | None:
    """Name to :class:`Parameter` of a script's function, method or class; None when it has none to show."""
    skip = 0
    if isinstance(target, Partial):
        return _partial(m, target)
    if isinstance(target, Class):
        target, skip = target.lookup("__init__"), 1
    if isinstance(target, Instance):
        target, skip = target.cls.lookup("__call__"), 1
    if isinstance(target, BoundMethod):
        target, skip = target.function, 1
    if isinstance(target, (StaticMethod, ClassMethod)):
        target = target.function
    for _ in range(20):
        wrapped = target.attrs.get("__wrapped__") if isinstance(target, Function) else None
        if not isinstance(wrapped, Function):
            break
        target = wrapped
    if not isinstance(target, Function):
        return None
    code = target.closure.code
    hints = m.annotations(target)
    out: dict[str, Parameter] = {}
    defaults = (
        dict(zip(code.positional[len(code.positional) - len(target.defaults) :], target.defaults, strict=True))
        if target.defaults
        else {}
    )
    for index, name in list(enumerate(code.positional))[skip:]:
        kind = "POSITIONAL_ONLY" if index < code.positional_only else "POSITIONAL_OR_KEYWORD"
        out[name] = Parameter(name, defaults.get(name, EMPTY), kind, hints.get(name, EMPTY))
    if code.vararg:
        out[code.vararg] = Parameter(code.vararg, EMPTY, "VAR_POSITIONAL", EMPTY)
    for name in code.keyword_only:
        out[name] = Parameter(name, target.kw_defaults.get(name, EMPTY), "KEYWORD_ONLY", hints.get(name, EMPTY))
    if code.kwarg:
        out[code.kwarg] = Parameter(code.kwarg, EMPTY, "VAR_KEYWORD", EMPTY)
    return out


def _partial(m: Any, target: Partial) -> dict[str, Parameter] | None:
    inner = parameters_of(m, target.function)
    if inner is None:
        return None
    left = len(target.args)
    out: dict[str, Parameter] = {}
    keyword = False
    for name, parameter in inner.items():
        values = dict(parameter.values)
        if left and values["kind"].startswith("POSITIONAL"):
            left -= 1
            continue
        if name in target.kwargs:
            values["default"], keyword = target.kwargs[name], True
        if keyword and values["kind"] == "POSITIONAL_OR_KEYWORD":
            values["kind"] = "KEYWORD_ONLY"
        if keyword and values["kind"] == "VAR_POSITIONAL":
            continue
        out[name] = Parameter(**values)
    return out


def native_signature(target: Value) -> Signature | None:
    """What our own function for a library's one says: its parameters less the context (and ``self``)."""
    skip, name = 1, ""
    if isinstance(target, BoundMethod):
        target, skip = target.function, 2
    if isinstance(target, Class):
        name = target.qualname
        found = target.lookup("__init__")
        target, skip = (found, 2) if isinstance(found, Native) and found.name != "object.__init__" else (None, 0)
    if not isinstance(target, Native):
        return None
    plain = inspect.unwrap(target.call)
    computed = get(getattr(plain, "computed_by", ""))
    if isinstance(computed, Native):
        plain, skip = inspect.unwrap(computed.call), 1
    try:
        listed = list(inspect.signature(plain).parameters.values())[skip:]
    except (TypeError, ValueError):
        return None
    parameters, more = {}, None
    for one in listed:
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            more = name or target.name
            continue
        default = EMPTY if one.default is one.empty else one.default
        default = EMPTY if default is MISSING else default
        parameters[one.name] = Parameter(one.name, default, one.kind.name, EMPTY)
    return Signature(parameters, more=more)


@entry("inspect.signature")
def signature(m: Any, target: Value, **_kw: Value) -> Value:
    found = parameters_of(m, target)
    if found is not None:
        function = target.function if isinstance(target, BoundMethod) else target
        node = getattr(function, "node", None)
        returns = getattr(node, "returns", None)
        return Signature(found, EMPTY if returns is None else m.evaluate(returns, function))
    native = native_signature(target)
    return native or m.unknown("the signature of a library function", name="inspect.signature")


@entry("inspect.getfullargspec", "inspect.getargspec")
def getfullargspec(m: Any, target: Value) -> Value:
    found = parameters_of(m, target)
    if found is None:
        return m.unknown("the signature of a library function", name="inspect.getfullargspec")
    names = [n for n, p in found.items() if p.values["kind"].startswith("POSITIONAL")]
    defaults = tuple(p.values["default"] for n, p in found.items() if p.values["default"] is not EMPTY and n in names)
    only = {n: p.values["default"] for n, p in found.items() if p.values["kind"] == "KEYWORD_ONLY"}
    if isinstance(target, (Class, BoundMethod)):
        names.insert(0, "self")
    by_kind = {p.values["kind"]: n for n, p in found.items()}
    made = Instance(OBJECT)
    made.attrs.update(
        args=names,
        defaults=defaults or None,
        kwonlyargs=list(only),
        kwonlydefaults={n: v for n, v in only.items() if v is not EMPTY} or None,
        varargs=by_kind.get("VAR_POSITIONAL"),
        varkw=by_kind.get("VAR_KEYWORD"),
        annotations={n: p.values["annotation"] for n, p in found.items() if p.values["annotation"] is not EMPTY},
    )
    return made


def _yields(value: Value) -> bool:
    return isinstance(value, Function) and value.closure.code.ready() is not None and bool(value.closure.code.generator)


def _coroutine(value: Value) -> bool:
    return isinstance(value, Function) and bool(CodeObject(value).flags() & CO_COROUTINE)


for _name, _test in (
    ("isclass", lambda v: isinstance(v, Class)),
    ("isfunction", lambda v: isinstance(v, Function)),
    ("ismethod", lambda v: isinstance(v, BoundMethod)),
    ("ismodule", lambda v: isinstance(v, Module)),
    ("isbuiltin", lambda v: isinstance(v, Native)),
    ("isroutine", lambda v: isinstance(v, (Function, BoundMethod, Native))),
    ("isgeneratorfunction", _yields),
    ("isabstract", lambda v: isinstance(v, Class) and bool(v.namespace.get("__abstractmethods__"))),
    ("iscoroutinefunction", _coroutine),
    ("isdatadescriptor", lambda v: isinstance(v, Property)),
):
    register(f"inspect.{_name}", Native(f"inspect.{_name}", lambda _m, value, _test=_test: _test(value)))
for _name, _bit in FLAGS.items():
    register(f"inspect.{_name}", _bit)


@entry("inspect.unwrap")
def unwrap(m: Any, function: Value, **_kw: Value) -> Value:
    for _ in range(100):
        inner = m.find(function, "__wrapped__")
        if inner is MISSING or isinstance(inner, Unknown):
            break
        function = inner
    return function


@entry("inspect.getmembers")
def getmembers(m: Any, value: Value, predicate: Value = None) -> Value:
    names = m.listed(m.call(m.builtins["dir"], [value]))
    out = []
    for name in names:
        found = m.find(value, name)
        if found is not MISSING and (predicate is None or m.truth(m.call(predicate, [found])) is not False):
            out.append((name, found))
    return out


@entry("inspect.getmodule")
def getmodule(m: Any, value: Value) -> Value:
    return value.module if isinstance(value, (Function, Class)) else m.derived("a module")


@entry("inspect.getmro")
def getmro(m: Any, cls: Value) -> Value:
    return cls.mro if isinstance(cls, Class) else ()


@entry(
    "inspect.getsource",
    "inspect.getfile",
    "inspect.getsourcefile",
    "inspect.getdoc",
    "inspect.getsourcelines",
)
def getsource(m: Any, *_args: Value) -> Value:
    return m.derived("the text of the script", "str")


register("inspect.Parameter", Parameter("", None, "POSITIONAL_OR_KEYWORD", None))
register("inspect._empty", EMPTY)
register("inspect.Parameter.empty", EMPTY)


@entry("inspect.Signature")
def make_signature(m: Any, parameters: Value = (), **more: Value) -> Value:
    given = [p for p in m.listed(parameters) if isinstance(p, Parameter)]
    return Signature({p.values["name"]: p for p in given}, more.get("return_annotation", EMPTY))
