"""The builtin functions."""

# ruff: noqa: ARG001 - the signatures are Python's own

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.interpreter import (
    container_methods,
    cut_lists,
    newer_syntax,
    operators,
    text_methods,
    unknown_lengths,
)
from oarlock_profiler.core.interpreter.builtin_types import TYPES
from oarlock_profiler.core.interpreter.constructors import TYPE
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, StaticMethod, Super
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, OBJECT, Raised, exception
from oarlock_profiler.core.interpreter.formatting import format_value, text
from oarlock_profiler.core.interpreter.frames import Frame
from oarlock_profiler.core.interpreter.iterators import HostIterator, next_item
from oarlock_profiler.core.interpreter.open_lists import WHY
from oarlock_profiler.core.interpreter.ordering import extreme, sort_items
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
    length,
)

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine

_TABLE: dict[str, Value] = {}


def builtin(fn: Callable[..., Value]) -> Callable[..., Value]:
    """Register a builtin under the function's own name (a trailing ``_`` dropped)."""
    name = fn.__name__.rstrip("_") if not fn.__name__.startswith("__") else fn.__name__
    _TABLE[name] = Native(name, fn)
    return fn


def builtins_table(_machine: Machine) -> dict[str, Value]:
    """A fresh table of builtin names."""
    return dict(_TABLE)


@builtin
def len_(m: Any, value: Value) -> Value:
    if m.open_lists.holds(value):
        return Unknown(WHY, m.where, "int", 1)
    if isinstance(value, HostObject):
        found = value.py_len(m)
        if found is not MISSING:
            return found
    if isinstance(value, Unknown):
        long = cut_lists.length(m, value)
        return Unknown(value.why, value.where, "int", 0, name=value.name) if long is None else long
    if isinstance(value, Class) and value.meta is not None:
        method = value.meta.getattr(m, value, "__len__")
        if method is not MISSING:
            return m.call(method)
    if isinstance(value, Instance):
        method = value.cls.lookup("__len__")
        if method is not MISSING:
            return m.call(m.bind(method, value, value.cls))
    if isinstance(value, Class) and value.meta is not None:
        items = value.meta.items(m, value)
        if items is not None:
            return len(list(items))
    unknown = unknown_lengths.length(m, value)
    return m.host(len, value) if unknown is None else unknown


def _chained(m: Any, sources: list[Value]) -> tuple[list[Iteration], bool, int | None]:
    """Iterations of several sources, whether together they are exact, and how many rounds they give."""
    iterations = [m.iterate(s) for s in sources]
    exact = all(i.exact for i in iterations)
    counts = []
    for i in iterations:
        if i.count is not None:
            counts.append(i.count)
        elif i.exact and hasattr(i.items, "__len__"):
            counts.append(length(i.items))
    return iterations, exact, (min(counts) if counts and not exact else None)


@builtin
def enumerate_(m: Any, iterable: Value, start: Value = 0) -> Value:
    def pairs(source: Any, first: Value) -> Iterator[Value]:
        index = first
        source = iter(source)
        for item in source:
            pair = (index, item)
            del item
            yield pair
            del pair
            index = operators.binary(m, "+", index, 1)

    (iteration,), exact, count = _chained(m, [iterable])
    return HostIterator(pairs(iteration.items, start), exact, count, lambda: pairs(m.iterate(iterable).items, start))


@builtin
def zip_(m: Any, *iterables: Value, strict: Value = False) -> Value:
    iterations, exact, count = _chained(m, list(iterables))
    if strict is True and exact:
        return HostIterator(_zipped(m, [i.items for i in iterations]), exact, count)
    return HostIterator(zip(*(i.items for i in iterations), strict=False), exact, count)


def _zipped(m: Any, parts: list[Any]) -> Iterator[Value]:
    """``zip(..., strict=True)``."""
    try:
        yield from zip(*parts, strict=True)
    except ValueError as error:
        m.fail("ValueError", str(error))


@builtin
def map_(m: Any, function: Value, *iterables: Value) -> Value:
    def results(parts: list[Any]) -> Iterator[Value]:
        for items in zip(*parts, strict=False):
            m.spend()
            given = list(items)
            del items
            yield m.invoke(function, given, None)

    iterations, exact, count = _chained(m, list(iterables))
    return HostIterator(results([i.items for i in iterations]), exact, count)


@builtin
def filter_(m: Any, function: Value, iterable: Value) -> Value:
    def kept(items: Any) -> Iterator[Value]:
        for item in items:
            m.spend()
            # an unknown test keeps the item: the larger need
            if m.truth(item if function is None else m.call(function, [item])) is not False:
                yield item

    (iteration,), exact, count = _chained(m, [iterable])
    return HostIterator(kept(iteration.items), exact, count)


@builtin
def iter_(m: Any, value: Value, sentinel: Value = MISSING) -> Value:
    if sentinel is not MISSING:
        return HostIterator(_until(m, value, sentinel))
    if isinstance(value, HostIterator) or hasattr(value, "__next__"):
        return value
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Instance):
        method = m.find(value, "__iter__")
        if method is not MISSING:
            made = m.call(method)
            if hasattr(made, "__next__") or (isinstance(made, Instance) and m.find(made, "__next__") is not MISSING):
                return made
    iteration = m.iterate(value)
    return HostIterator(iteration.items, iteration.exact, iteration.count, lambda: m.iterate(value).items)


def _until(m: Any, function: Value, sentinel: Value) -> Iterator[Value]:
    for _ in range(m.budget.limits.loop):
        value = m.call(function)
        if m.truth(operators.compare(m, "==", value, sentinel)) is not False:
            return
        yield value


@builtin
def next_(m: Any, iterator: Value, default: Value = MISSING) -> Value:
    return next_item(m, iterator, default)


@builtin
def sorted_(m: Any, iterable: Value, *, key: Value = None, reverse: Value = False) -> Value:
    if isinstance(iterable, Unknown):
        return Unknown(iterable.why, iterable.where, "list", item=iterable.item, name=iterable.name)
    return m.open_lists.copied(sort_items(m, m.listed(iterable), key, reverse), iterable)


@builtin
def reversed_(m: Any, value: Value) -> Value:
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Instance):
        method = value.cls.lookup("__reversed__")
        if method is not MISSING:
            return m.call(m.bind(method, value, value.cls))
    if isinstance(value, range):
        return HostIterator(reversed(value))
    return HostIterator(reversed(m.listed(value)))


@builtin
def sum_(m: Any, iterable: Value, start: Value = 0) -> Value:
    if isinstance(iterable, Unknown):
        return m.part(iterable)
    iteration = m.iterate(iterable)
    total = start
    for item in iteration.items:
        m.spend()
        total = operators.binary(m, "+", total, item)
    if not iteration.exact and not isinstance(total, (Unknown, HostObject)):
        return Unknown("a sum over items that are only partly known", m.where, type(total).__name__)
    return total


def _extreme(m: Any, args: tuple[Value, ...], key: Value, default: Value, largest: bool) -> Value:
    if len(args) == 1:
        if isinstance(args[0], Unknown):
            return m.part(args[0])
        items = m.listed(args[0])
    else:
        items = list(args)
    if not items:
        return m.fail("ValueError", "max or min of nothing") if default is MISSING else default
    return extreme(m, items, key, largest)


@builtin
def max_(m: Any, *args: Value, key: Value = None, default: Value = MISSING) -> Value:
    return _extreme(m, args, key, default, True)


@builtin
def min_(m: Any, *args: Value, key: Value = None, default: Value = MISSING) -> Value:
    return _extreme(m, args, key, default, False)


@builtin
def abs_(m: Any, value: Value) -> Value:
    if isinstance(value, Unknown):
        high = None if value.low is None or value.high is None else max(abs(value.low), abs(value.high))
        return Unknown(value.why, value.where, value.hint, 0, high, name=value.name)
    method = m.find(value, "__abs__") if isinstance(value, (Instance, HostObject)) else MISSING
    return m.call(method) if method is not MISSING else m.host(abs, value)


@builtin
def round_(m: Any, value: Value, digits: Value = None) -> Value:
    if isinstance(value, Unknown):
        return Unknown(
            value.why, value.where, "int" if digits is None else "float", value.low, value.high, name=value.name
        )
    if isinstance(digits, Unknown):
        return value
    method = m.find(value, "__round__") if isinstance(value, (Instance, HostObject)) else MISSING
    if method is not MISSING:
        return m.call(method, [] if digits is None else [digits])
    return m.host(round, value) if digits is None else m.host(round, value, digits)


@builtin
def pow_(m: Any, base: Value, exponent: Value, modulus: Value = None) -> Value:
    if modulus is None:
        return operators.binary(m, "**", base, exponent)
    if all(isinstance(v, int) and v.bit_length() < 4096 for v in (base, exponent, modulus)):
        return m.host(pow, base, exponent, modulus)
    return m.unknown("a modular power that is too large or not known", hint="int")


@builtin
def divmod_(m: Any, a: Value, b: Value) -> Value:
    for holder, name, other in ((a, "__divmod__", b), (b, "__rdivmod__", a)):
        method = holder.cls.lookup(name) if isinstance(holder, Instance) else MISSING
        if method is not MISSING:
            return m.call(m.bind(method, holder, holder.cls), [other])
    return operators.binary(m, "//", a, b), operators.binary(m, "%", a, b)


@builtin
def isinstance_(m: Any, value: Value, cls: Value) -> Value:
    return m.isinstance(value, cls)


@builtin
def issubclass_(m: Any, one: Value, cls: Value) -> Value:
    if isinstance(cls, tuple):
        return any(m.truth(issubclass_(m, one, c)) is True for c in cls)
    if isinstance(one, Class) and isinstance(cls, Class):
        return m.issubclass(one, cls)
    if isinstance(one, Unknown) or isinstance(cls, Unknown):
        return m.part(one if isinstance(one, Unknown) else cls)
    return False


@builtin
def hasattr_(m: Any, value: Value, name: Value) -> Value:
    if isinstance(name, Unknown):
        return Unknown(name.why, name.where, "bool")
    if isinstance(value, Unknown):
        return Unknown(value.why, value.where, "bool", name=value.name)
    try:
        return m.find(value, name) is not MISSING
    except Raised:
        return False


@builtin
def getattr_(m: Any, value: Value, name: Value, default: Value = ...) -> Value:
    if isinstance(name, Unknown):
        return Unknown(name.why, name.where, None, name=name.name)
    if not isinstance(name, str):
        return m.fail("TypeError", "an attribute name must be text")
    return m.getattr(value, name, default)


@builtin
def setattr_(m: Any, target: Value, name: Value, value: Value) -> None:
    if isinstance(name, str):
        m.setattr(target, name, value)


@builtin
def delattr_(m: Any, target: Value, name: Value) -> None:
    if isinstance(name, str):
        m.delattr(target, name)


@builtin
def callable_(m: Any, value: Value) -> Value:
    if isinstance(value, Unknown):
        return Unknown(value.why, value.where, "bool")
    if isinstance(value, (Function, Native, BoundMethod, Class)):
        return True
    return m.find(value, "__call__") is not MISSING


@builtin
def print_(m: Any, *_args: Value, **_kw: Value) -> None:
    """Prints nothing: the arguments were evaluated, and that is all there is to see."""


@builtin
def repr_(m: Any, value: Value) -> Value:
    return text(m, value, quote=True)


@builtin
def ascii_(m: Any, value: Value) -> Value:
    shown = text(m, value, quote=True)
    return shown if isinstance(shown, Unknown) else shown.encode("ascii", "backslashreplace").decode("ascii")


@builtin
def format_(m: Any, value: Value, spec: Value = "") -> Value:
    return format_value(m, value, spec, "")


@builtin
def hash_(m: Any, value: Value) -> Value:
    if isinstance(value, Instance):
        method = value.cls.lookup("__hash__")
        if method is None:
            return m.fail("TypeError", f"unhashable type: '{value.cls.name}'")
        if method is not MISSING:
            return m.call(m.bind(method, value, value.cls))
    if isinstance(value, (int, float)):
        return m.host(hash, value)
    if isinstance(value, (list, dict, set, bytearray)):
        return m.fail("TypeError", f"unhashable type: '{type(value).__name__}'")
    if isinstance(value, tuple):
        parts = [hash_(m, part) for part in value]
        if all(isinstance(part, int) for part in parts):
            return m.host(hash, tuple(parts))
    return m.derived("hash of a value", "int")


@builtin
def id_(m: Any, value: Value) -> Value:
    return id(value)


@builtin
def input_(m: Any, *_prompt: Value) -> Value:
    return m.unknown("typed in by a person", hint="str", name="input()")


@builtin
def any_(m: Any, iterable: Value) -> Value:
    doubt: Value = False
    for item in m.iterate(iterable).items:
        m.spend()
        truth = m.truth(item)
        if truth is True:
            return True
        doubt = truth if isinstance(truth, Unknown) else doubt
    return doubt


@builtin
def all_(m: Any, iterable: Value) -> Value:
    doubt: Value = True
    for item in m.iterate(iterable).items:
        m.spend()
        truth = m.truth(item)
        if truth is False:
            return False
        doubt = truth if isinstance(truth, Unknown) else doubt
    return doubt


def _simple(name: str, function: Callable[..., Any], hint: str) -> None:
    def call(m: Any, value: Value) -> Value:
        if isinstance(value, Unknown):
            return Unknown(value.why, value.where, hint)
        return m.host(function, value)

    _TABLE[name] = Native(name, call)


for _name, _function, _hint in (
    ("ord", ord, "int"), ("chr", chr, "str"),
):  # fmt: skip
    _simple(_name, _function, _hint)


def _base_text(function: Callable[[int], str]) -> Callable[..., Value]:
    def shown(m: Any, value: Value) -> Value:
        if isinstance(value, Instance) and not isinstance(value, int):
            value = m.call(m.getattr(value, "__index__"))
        return Unknown(value.why, value.where, "str") if isinstance(value, Unknown) else m.host(function, value)

    return shown


for _name, _function in (("hex", hex), ("bin", bin), ("oct", oct)):
    _TABLE[_name] = Native(_name, _base_text(_function))


@builtin
def vars_(m: Any, value: Value = MISSING) -> Value:
    if isinstance(value, Unknown):
        return Unknown(value.why, value.where, "dict", name=value.name)
    found = m.find(value, "__dict__")
    return m.fail("TypeError", "vars() of a value without attributes") if found is MISSING else found


@builtin
def dir_(m: Any, value: Value = MISSING) -> Value:
    names: set[str] = set()
    if value is MISSING:
        names.update(m.frames[-1].vars)
    if isinstance(value, (Module, Instance)):
        names.update(value.attrs)
    if isinstance(value, Module) and value.resolve is not None:
        names.update(m.importer.listing(value))
    cls = value.cls if isinstance(value, Instance) else value
    if isinstance(cls, Class):
        for one in cls.mro:
            names.update(one.namespace)
    return sorted(n for n in names if isinstance(n, str))


@builtin
def staticmethod_(m: Any, function: Value) -> Value:
    return StaticMethod(function)


@builtin
def classmethod_(m: Any, function: Value) -> Value:
    return ClassMethod(function)


@builtin
def super_(m: Any, cls: Value = None, holder: Value = None) -> Value:
    return Super(cls, holder) if isinstance(cls, Class) else m.unknown("super() of a class that is not known")


@builtin
def exit_(m: Any, code: Value = 0) -> Value:
    raise Raised(exception("SystemExit", text(m, code) if not isinstance(code, Unknown) else ""))  # type: ignore[arg-type]


_TABLE["quit"] = _TABLE["exit"]


def _source(m: Any, code: Value, mode: str) -> ast.AST | Unknown:
    if isinstance(code, Unknown):
        return code
    if not isinstance(code, (str, bytes)) or len(code) > 100_000:
        return m.unknown("evaluating what is not source text")  # type: ignore[no-any-return]
    source = code if isinstance(code, str) else code.decode("utf-8", "replace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.strip() if mode == "eval" else source, newer_syntax.NOWHERE, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return m.fail("SyntaxError", str(error)[:200])  # type: ignore[no-any-return]


def _scope(m: Any, given: tuple[Value, ...]) -> Frame:
    caller: Frame = m.frames[-1]
    frame = Frame(dict(caller.vars), caller.cells, caller.module)
    if given and isinstance(given[0], dict):
        frame.vars = given[0]
    return frame


@builtin
def eval_(m: Any, code: Value, *scopes: Value) -> Value:
    """Source text is interpreted like the rest of the script, never evaluated by the host."""
    from oarlock_profiler.core.interpreter.compiler import Compiler  # noqa: PLC0415 - cycle

    parsed = _source(m, code, "eval")
    if isinstance(parsed, Unknown):
        return Unknown(parsed.why, parsed.where)
    tree = ast.Module([ast.Expr(parsed.body, lineno=1, col_offset=0)], [])  # type: ignore[attr-defined]
    frame = _scope(m, scopes)
    compiler = Compiler(m, tree)
    scope = compiler.scopes[tree]
    scope.kind = "class"
    frame.line = m.frames[-1].line
    return compiler.expr(parsed.body, scope)(frame)  # type: ignore[attr-defined]


@builtin
def exec_(m: Any, code: Value, *scopes: Value) -> None:
    """As :func:`eval_`, for statements."""
    from oarlock_profiler.core.interpreter.compiler import Compiler  # noqa: PLC0415 - cycle

    parsed = _source(m, code, "exec")
    if isinstance(parsed, ast.Module):
        frame = _scope(m, scopes)
        compiler = Compiler(m, parsed)
        compiler.scopes[parsed].kind = "class"
        if not scopes:
            frame.vars = m.frames[-1].vars
        for statement in compiler.module(parsed):
            statement(frame)


@builtin
def compile_(m: Any, source: Value, *_args: Value, **_kw: Value) -> Value:
    return source


@builtin
def __import__(
    m: Any, name: Value, globals: Value = None, locals: Value = None, fromlist: Value = (), level: Value = 0
) -> Value:
    if not isinstance(name, str):
        return m.unknown("import of an unknown name")
    module = m.importer.load(name)
    return module if fromlist else m.importer.top(name, module)


@builtin
def open_(m: Any, file: Value, mode: Value = "r", *_args: Value, **_kw: Value) -> Value:
    from oarlock_profiler.core.overlays import stdlib_files  # noqa: PLC0415 - only scripts that open files need it

    return stdlib_files.open_file(m, file, mode)


@builtin
def breakpoint_(m: Any, *_args: Value, **_kw: Value) -> None:
    """Nothing to stop."""


@builtin
def memoryview_(m: Any, value: Value) -> Value:
    return value


for _cls in TYPES.values():
    if _cls.qualname.startswith("builtins."):
        _TABLE.setdefault(_cls.name, _cls)
for _gone in ("NoneType", "ellipsis", "NotImplementedType"):
    _TABLE.pop(_gone, None)
_TABLE.update(EXCEPTIONS)
_TABLE.update(
    {
        "object": OBJECT,
        "type": TYPE,
        "NotImplemented": NotImplemented,
        "Ellipsis": ...,
        "__debug__": True,
        "__name__": "builtins",
    }
)
_METHODS = (container_methods, text_methods)
