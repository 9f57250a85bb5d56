"""The interpreter: it holds the state of one reading and is the context that natives are given."""

# ruff: noqa: ARG002 - the signatures are Python's own

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from oarlock_profiler.core.findings import Findings, Where
from oarlock_profiler.core.interpreter import attributes, calls, classes, iterators, operators
from oarlock_profiler.core.interpreter.branches import Branches
from oarlock_profiler.core.interpreter.budget import Budget
from oarlock_profiler.core.interpreter.builtin_types import TYPES
from oarlock_profiler.core.interpreter.builtins import builtins_table
from oarlock_profiler.core.interpreter.descriptors import Super, TypeForm
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, OBJECT, Raised, class_of_host, exception
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.frames import Closure, Frame
from oarlock_profiler.core.interpreter.guarded import Border, Guard
from oarlock_profiler.core.interpreter.importer import Importer
from oarlock_profiler.core.interpreter.open_lists import OpenLists
from oarlock_profiler.core.interpreter.unfollowed import Unfollowed
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Function,
    HostObject,
    Instance,
    Iteration,
    Method,
    Module,
    Native,
    Unknown,
    Value,
    length,
)
from oarlock_profiler.core.overlays import registry
from oarlock_profiler.core.reading import Request, Sources


class Machine(Unfollowed):
    """Implements :class:`values.Context`. One machine reads one script once."""

    def __init__(self, request: Request, sources: Sources, engine: Any, findings: Findings, budget: Budget) -> None:
        self.request = request
        self.sources = sources
        self._engine = engine
        self.trace = engine.trace
        self._findings = findings
        self.budget = budget
        self.spend = budget.spend
        self._state: dict[str, Any] = {}
        self.frames: list[Frame] = []
        self.guards: list[Guard] = []
        self.handled: list[Instance] = []
        self.creating: list[Class] = []
        self.children: dict[Class, list[Class]] = {}
        self.training_loops: list[tuple[Where | None, int | None]] = []
        self.internal_errors: list[str] = []
        self.path: list[tuple[Where, str]] = []
        self.object = OBJECT
        self.builtins: dict[str, Value] = builtins_table(self)
        self.importer = Importer(self)
        self.branches = Branches(self)
        self.open_lists = OpenLists()
        self._quiet = 0
        self._place: Where | None = None
        self._patched: list[tuple[Class, str, Value]] = []
        self._last: tuple[Instance, Where | None] | None = None

    def place_of(self, error: Instance) -> Where | None:
        """Where the script itself raised ``error`` (its frames are gone by then); None when it did not."""
        return self._last[1] if self._last is not None and self._last[0] is error else None

    # -- what natives ask ----------------------------------------------------------------------------------------

    @property
    def where(self) -> Where | None:
        """The line of the bundle being executed; inside library source, the line that called it."""
        for frame in reversed(self.frames):
            file = frame.module.file
            if file is not None and not frame.module.library:
                place = self._place
                # asked several times for each operator of a line
                if place is None or place.line != frame.line or place.file != file:
                    place = self._place = Where(file, frame.line)
                return place
        return None

    @property
    def findings(self) -> Findings:
        return self._findings

    @property
    def engine(self) -> Any:
        return self._engine

    @property
    def state(self) -> dict[str, Any]:
        return self._state

    def call(self, function: Value, args: Sequence[Value] = (), kwargs: Mapping[str, Value] | None = None) -> Value:
        """Call any callable."""
        return self.invoke(function, list(args), dict(kwargs) if kwargs else None)

    def invoke(self, function: Value, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
        """Call, handing over ``args`` and ``kwargs`` (they may be emptied)."""
        self.spend()
        kind = type(function)
        while kind is BoundMethod:
            args.insert(0, function.receiver)
            function = function.function
            kind = type(function)
        if kind is Function:
            return calls.function(self, function, args, kwargs)
        if kind is Native or kind is Method:
            return calls.native(self, function, args, kwargs)
        if kind is Class:
            return classes.instantiate(self, function, args, kwargs)
        if isinstance(function, Unknown):
            return calls.unknown(self, function)
        if isinstance(function, Instance):
            method = self.find(function, "__call__")
            if method is not MISSING:
                return self.invoke(method, args, kwargs)
        if isinstance(function, HostObject):
            try:
                return function.py_call(self, args, kwargs or {})
            except Raised:
                raise
            except Exception as error:
                return self.native_failed(function.py_type(), error)
        wrapped = self.find(function, "__func__")
        if wrapped is not MISSING and wrapped is not function:
            return self.invoke(wrapped, args, kwargs)
        return self.fail("TypeError", f"{self.type_name(function)} is not callable")

    def getattr(self, value: Value, name: str, default: Value = ...) -> Value:
        """``value.name``; without a default a missing attribute is an error of the script (or an unknown)."""
        found = attributes.find(self, value, name)
        if found is not MISSING:
            return found
        if default is not ...:
            return default
        if isinstance(value, Module):
            return self.importer.unknown_member(value, name)
        if isinstance(value, Native) or (isinstance(value, Class) and value.module is None):
            full = f"{value.name if isinstance(value, Native) else value.qualname}.{name}"
            if not self.caught(EXCEPTIONS["AttributeError"]):
                return Unknown(f"{full} is not known to the reader", self.where, "library", name=full)
        return self.fail("AttributeError", f"{self.type_name(value)} has no attribute {name!r}")

    def find(self, value: Value, name: str) -> Value:
        """The attribute, or ``MISSING``."""
        return attributes.find(self, value, name)

    def bind(self, found: Value, obj: Value, cls: Class) -> Value:
        """A class attribute as read through ``obj``."""
        return attributes.bind(self, found, obj, cls)

    def setattr(self, value: Value, name: str, new: Value) -> None:
        """``value.name = new``."""
        attributes.setattr_(self, value, name, new)

    def delattr(self, value: Value, name: str) -> None:
        """``del value.name``."""
        attributes.delattr_(self, value, name)

    def getitem(self, value: Value, key: Value) -> Value:
        """``value[key]``."""
        return operators.getitem(self, value, key)

    def iterate(self, value: Value) -> Iteration:
        """As a ``for`` loop would."""
        return iterators.iteration(self, value)

    def truth(self, value: Value) -> bool | Unknown:
        """``bool(value)``."""
        if value is True or value is False:
            return value
        if value is None:
            return False
        if isinstance(value, Unknown):
            if value.low is not None and value.high is not None and (value.low > 0 or value.high < 0):
                return True
            return value
        if isinstance(value, HostObject):
            result = value.py_truth(self)
            return result if isinstance(result, (bool, Unknown)) else bool(result)
        if isinstance(value, Instance):
            for name in ("__bool__", "__len__"):
                method = value.cls.lookup(name)
                if method is not MISSING and not (isinstance(method, Native) and isinstance(value, (dict, list))):
                    return self.truth(self.call(self.bind(method, value, value.cls)))
            if not isinstance(value, (int, float, str, list, tuple, dict, set)):
                return True
        try:
            return bool(value)
        except Exception:
            return self.derived("truth of a value")

    def type_of(self, value: Value) -> Value:
        """``type(value)``."""
        if isinstance(value, Instance):
            return value.cls
        found = TYPES.get(type(value))
        if found is not None:
            return found
        if isinstance(value, Unknown):
            named = self.builtins.get(value.hint or "")
            return named if isinstance(named, Class) else Unknown(value.why, value.where, "type", name=value.name)
        if isinstance(value, HostObject):
            known = registry.resolve(value.py_type())
            return known if known is not MISSING else self.host_class(value.py_type())
        if isinstance(value, Class):
            meta = value.meta
            return meta.metaclass if isinstance(meta, classes.UserMeta) else self.builtins["type"]
        if isinstance(value, (Function, Native, BoundMethod)):
            return self.host_class("builtins.function")
        if isinstance(value, Module):
            return self.host_class("types.ModuleType")
        for base in type(value).__mro__:
            if base in TYPES:
                return TYPES[base]
        return self.host_class(f"builtins.{type(value).__name__}")

    def host_class(self, qualname: str) -> Class:
        """A class that only names a kind of host object."""
        cache: dict[str, Class] = self._state.setdefault("host_classes", {})
        if qualname not in cache:
            cls = Class(qualname.rpartition(".")[2], qualname, (OBJECT,), {})
            cls.mro = (cls, OBJECT)
            cache[qualname] = cls
        return cache[qualname]

    def is_open(self, value: Value) -> bool:
        """Whether ``value`` is a list that holds more items than were seen."""
        return self.open_lists.holds(value)

    def isinstance(self, value: Value, cls: Value) -> bool | Unknown:
        """``isinstance(value, cls)``."""
        if isinstance(cls, TypeForm):
            cls = cls.args if cls.origin is None else cls.origin
        if isinstance(cls, (tuple, list)):
            doubt: Unknown | None = None
            for one in cls:
                answer = self.isinstance(value, one)
                if answer is True:
                    return True
                doubt = answer if isinstance(answer, Unknown) else doubt
            return doubt if doubt is not None else False
        if cls is None:
            return value is None
        if isinstance(cls, Unknown):
            plain = type(value) in TYPES and cls.hint in ("library", "module", None)
            return False if plain else Unknown(cls.why, cls.where, "bool", name=cls.name)
        hook = self.find(cls, "py_isinstance") if isinstance(cls, HostObject) else MISSING
        if hook is not MISSING:
            return self.truth(self.call(hook, [value]))
        if isinstance(cls, Native):
            if isinstance(value, Unknown):
                return Unknown(value.why, value.where, "bool", name=value.name)
            # a type that the table makes with a function: torch.device
            return isinstance(value, HostObject) and value.py_type() == cls.name
        if not isinstance(cls, Class):
            return False
        if isinstance(value, Unknown):
            if value.hint in ("int", "float", "str", "bool", "list", "dict", "tuple"):
                return self.issubclass(self.builtins[value.hint], cls)
            return Unknown(value.why, value.where, "bool", name=value.name)
        if isinstance(value, HostObject) and cls.qualname == "collections.abc.Callable":
            return type(value).py_call is not HostObject.py_call
        mine = self.type_of(value)
        if isinstance(mine, Unknown):
            return mine
        if mine is cls:
            return True
        if isinstance(mine, Class):
            answer = self.issubclass(mine, cls)
            if answer is False and mine.unknown_base is not None and cls.module is None and cls is not OBJECT:
                return Unknown(mine.unknown_base.why, mine.unknown_base.where, "bool")
            return answer
        return False

    def issubclass(self, one: Class, other: Class) -> bool | Unknown:
        """Whether ``one`` derives from ``other`` (by identity, by public name, or by the ABC's own test)."""
        if other is OBJECT or other in one.mro:
            return True
        if other.module is None and any(base.qualname == other.qualname for base in one.mro):
            return True
        test = other.namespace.get("__subclasshook__", MISSING)
        if isinstance(test, Native):
            return self.truth(test.call(self, one))
        return False

    def unknown(self, why: str, *, hint: str | None = None, **more: Any) -> Unknown:
        """A new unknown, placed and noted in the findings."""
        where = self.where
        if not self._quiet:
            self._findings.gap(more.get("name") or "value", where, why)
        return Unknown(why, where, hint, **more)

    # -- errors --------------------------------------------------------------------------------------------------

    def caught(self, cls: Class, *, explicit: bool = False) -> bool:
        """Whether the script itself would handle an implicit error of ``cls`` raised now.

        ``explicit``: an error that would happen in truth too, such as one that the source raises by its own words.
        """
        for guard in reversed(self.guards):
            if type(guard) is Border and not explicit:
                return False
            answer = guard.catches(cls)
            if answer is True:
                return True
            if isinstance(answer, Class):
                cls = answer
        return False

    def fail(self, kind: str, message: str, *, explicit: bool = False) -> Value:
        """An operation failed: raise it in the script if a handler takes it, else give an unknown."""
        if self.caught(EXCEPTIONS[kind], explicit=explicit):
            raise Raised(exception(kind, message), implicit=True)
        return self.unknown(f"{kind}: {message}")

    def fail_host(self, error: Exception) -> Value:
        """As :meth:`fail`, for an exception of the host's own operation."""
        if isinstance(error, Raised):
            raise error
        # str() of a KeyError quotes the key
        message = error.args[0] if isinstance(error, KeyError) and error.args else error
        return self.fail(class_of_host(error), str(message)[:200])

    def native_failed(self, name: str, error: Exception) -> Value:
        """A host function raised: an unknown, and a note for tests that demand none."""
        message = f"{type(error).__name__}: {error}"[:300]
        if not isinstance(error, (NotImplementedError, MemoryError)):
            self.internal_errors.append(f"{name}: {message} at {self.where}")
        return self.unknown(f"{name} could not be applied ({message})", name=name)

    def raised(self, error: Value, frame: Frame) -> Value:
        """``raise error``; raising what nobody catches inside library source only gives up its own result."""
        if isinstance(error, Class):
            error = self.call(error)
        if isinstance(error, Unknown) or not isinstance(error, Instance):
            error = Instance(EXCEPTIONS["Exception"], {"args": ()})
        if frame.module.library and not self.caught(error.cls, explicit=True):
            frame.ret = self.unknown(f"library code raises {self.describe(error)}")
            return 3
        self._last = (error, self.where)
        if self.handled and self.handled[-1] is not error:
            error.attrs.setdefault("__context__", self.handled[-1])
        raise Raised(error)

    def handling(self) -> Value:
        """The exception being handled, for a bare ``raise``."""
        return self.handled[-1] if self.handled else exception("RuntimeError", "no active exception to re-raise")

    def describe(self, error: Instance) -> str:
        """``ValueError: message``."""
        shown = text(self, error)
        return f"{error.cls.name}: {shown}"[:300] if isinstance(shown, str) and shown else error.cls.name

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Record no gaps meanwhile."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def gap_at(self, path: str, line: int, why: str) -> Unknown:
        """A fault of a file."""
        where = Where(path, line)
        self._findings.gap(f"file {path}", where, why)
        return Unknown(why, where, "module", name=path)

    # -- unknowns ------------------------------------------------------------------------------------------------

    def derived(self, why: str, hint: str | None = None) -> Unknown:
        """An unknown that needs no note of its own."""
        return Unknown(why, self.where, hint)

    def part(
        self, whole: Unknown, key: Value = None, *, attribute: str | None = None, index: int | None = None
    ) -> Value:
        """Something of an unknown: still unknown, for the same reason."""
        if attribute is None and whole.item is not None:
            return whole.item
        if attribute is not None:
            name = f"{whole.name}.{attribute}" if whole.name else attribute
            hint = "library" if whole.hint == "library" else None
            return Unknown(whole.why, whole.where, hint, name=name[-200:])
        hint = "str" if whole.hint == "str" else None
        return Unknown(whole.why, whole.where, hint, name=whole.name)

    # -- helpers of the compiled code ----------------------------------------------------------------------------

    def enter(self, frame: Frame) -> bool:
        """Push ``frame``; False when calls are nested too deeply."""
        if len(self.frames) >= self.budget.limits.depth:
            return False
        self.frames.append(frame)
        return True

    def generator(self, frame: Frame, body: Callable[[Frame], Any], name: str) -> iterators.GeneratorObject:
        """A generator object over ``body``."""
        return iterators.GeneratorObject(self, frame, body, name)

    def super(self, cls: Class, holder: Value) -> Super:
        """``super(cls, holder)``."""
        return Super(cls, holder)

    def decorate(self, decorator: Value, value: Value) -> Value:
        """Apply a decorator; an unknown one is taken to return what it is given."""
        result = self.invoke(decorator, [value], None)
        return value if isinstance(result, Unknown) else result

    def listed(self, value: Value) -> list[Value]:
        """All items of ``value`` as a host list, within the size limit."""
        if type(value) in (list, tuple):
            return list(value)
        iteration = self.iterate(value)
        return self.take(iteration.items, self.budget.limits.size)

    def take(self, items: Any, limit: int) -> list[Value]:
        """At most ``limit`` items, charged to the budget."""
        if isinstance(items, range) and length(items) > limit:
            self.unknown(f"{length(items):,} items are too many to hold; the first {limit:,} are kept")
        out: list[Value] = []
        for item in islice(items, limit):
            out.append(item)
            if not len(out) & 63:
                self.spend(64)
        return out

    def host(self, function: Callable[..., Value], *args: Value) -> Value:
        """Apply a trusted host function to host values."""
        try:
            return function(*args)
        except Exception as error:
            return self.fail_host(error)

    def mapping(self, value: Value) -> dict[Value, Value] | Unknown:
        """What ``**value`` spreads."""
        if isinstance(value, (dict, Unknown)):
            return value
        keys = self.find(value, "keys")
        if keys is MISSING:
            self.fail("TypeError", f"{self.type_name(value)} is not a mapping")
            return {}
        return {key: self.getitem(value, key) for key in self.listed(self.call(keys)) if isinstance(key, str)}

    def type_name(self, value: Value) -> str:
        """For messages."""
        kind = self.type_of(value) if value is not None else None
        if value is None:
            return "None"
        return kind.name if isinstance(kind, Class) else type(value).__name__

    def union(self, one: Value, other: Value) -> TypeForm:
        """``A | B`` of types."""
        return TypeForm(None, (one, other), "Union")

    def class_getitem(self, cls: Class, key: Value) -> Value:
        """``cls[key]``."""
        if cls.meta is not None:
            value = cls.meta.getitem(self, cls, key)
            if value is not MISSING:
                return value
        hook = attributes.class_(self, cls, "__class_getitem__")
        if isinstance(hook, BoundMethod):
            return self.call(hook, [key])
        return TypeForm(cls, key if isinstance(key, tuple) else (key,), cls.name)

    def type_of_native(self, native: Native) -> Value:
        """A base class given as a function of a library: the class it makes is not known."""
        return Unknown(f"{native.name} is not a class to the reader", self.where, "library", name=native.name)

    def subclasses(self, cls: Class) -> list[Value]:
        """``cls.__subclasses__()``."""
        return list(self.children.get(cls, ()))

    def docstring(self, node: ast.AST) -> str | None:
        """A function's docstring."""
        return ast.get_docstring(node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None

    def annotations(self, function: Function) -> dict[str, Value]:
        """The evaluated annotations of a function's parameters."""
        closure: Closure = function.closure
        hints = {name: self.evaluate(node, function) for name, node in closure.code.annotations.items()}
        returns = getattr(function.node, "returns", None)
        if returns is not None:
            hints["return"] = self.evaluate(returns, function)
        return hints

    def evaluate(self, node: ast.expr, function: Function) -> Value:
        """Evaluate an annotation in the function's globals (strings are parsed)."""
        from oarlock_profiler.core.interpreter.compiler import Compiler  # noqa: PLC0415 - cycle

        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return self.derived("annotation")
        tree = ast.Module([ast.Expr(node)], [])
        compiler = Compiler(self, tree, library=function.module.library)
        run = compiler.expr(node, compiler.scopes[tree])
        with self.quiet():
            return run(Frame({}, {}, function.module))

    def patch(self, cls: Class, name: str, value: Value) -> None:
        """Set (or with ``MISSING`` delete) a class attribute.

        Overlay classes outlive the reading: what a script changes in them is undone when it ends.
        """
        if cls.module is None:
            self._patched.append((cls, name, cls.namespace.get(name, MISSING)))
        if value is MISSING:
            cls.namespace.pop(name, None)
        else:
            cls.namespace[name] = value

    def unpatch(self) -> None:
        """Give overlay classes back what they had before the reading."""
        while self._patched:
            cls, name, old = self._patched.pop()
            if old is MISSING:
                cls.namespace.pop(name, None)
            else:
                cls.namespace[name] = old

    def completed(self, key: Value) -> bool:
        """A lookup failed in library code: whether loading what it has not read yet may have filled the table."""
        return bool(self.frames) and self.frames[-1].module.library and self.importer.lazy.complete(key)

    def step_into(self, path: str, line: int, what: str) -> None:
        """Note the reader's path (bounded)."""
        if len(self.path) < self.budget.limits.path:
            self.path.append((Where(path, line), what))

    def note_training_loop(self, where: Where | None, count: int | None) -> None:
        """A loop that trained is over; inner loops are noted first."""
        if len(self.training_loops) < 100:
            self.training_loops.append((where, count))
