"""``try`` and ``with``.

An operation that fails inside our reading may only mean that a library is modelled too coarsely. So an implicit error
is raised in the script only if one of its own handlers would take it; otherwise the operation gives an unknown. A
handler that only re-raises or exits does not count, and a bare ``except Exception`` far up the stack does not either.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.branches import ending
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, Raised, group, split
from oarlock_profiler.core.interpreter.frames import Frame, Run
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.targets import store_name
from oarlock_profiler.core.interpreter.values import MISSING, Class, Instance, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler
    from oarlock_profiler.core.interpreter.machine import Machine

_BROAD_REACH = 2


class Guard:
    """An active ``try``: what its handlers catch."""

    __slots__ = ("depth", "frame", "handlers", "machine")

    def __init__(self, machine: Machine, frame: Frame, handlers: list[Handler]) -> None:
        self.machine = machine
        self.frame = frame
        self.handlers = handlers
        self.depth = len(machine.frames)

    def catches(self, cls: Class) -> bool | Class:
        """Whether an implicit error of class ``cls`` raised now would be handled here.

        A handler that raises in turn gives the class of what it raises: an outer ``try`` may take that.
        """
        far = len(self.machine.frames) - self.depth > _BROAD_REACH
        for handler in self.handlers:
            if not handler.matches(self.machine, self.frame, cls):
                continue
            if handler.rethrows:
                return handler.raises(self.machine, self.frame, cls)
            return not (far and handler.broad(self.machine, self.frame))
        return False


class Border(Guard):
    """Where a library's module begins: what the reader does not know inside it is no error of those who import it."""

    __slots__ = ()

    def __init__(self, machine: Machine, frame: Frame) -> None:
        super().__init__(machine, frame, [])


class Swallow(Guard):
    """An active context that swallows some exceptions (``contextlib.suppress``)."""

    __slots__ = ("classes",)

    def __init__(self, machine: Machine, frame: Frame, classes: tuple[Value, ...]) -> None:
        super().__init__(machine, frame, [])
        self.classes = classes

    def catches(self, cls: Class) -> bool | Class:
        return any(isinstance(one, Class) and cls.is_subclass(one) for one in self.classes)


class Handler:
    """One ``except`` clause, compiled."""

    __slots__ = ("again", "body", "line", "name", "rethrows", "store", "type")

    def __init__(self, c: Compiler, node: ast.ExceptHandler, scope: Scope) -> None:
        self.type = c.expr(node.type, scope) if node.type is not None else None
        self.body = c.block(node.body, scope)
        self.name = node.name
        self.store = store_name(node.name, scope) if node.name else None
        self.rethrows = ending(node.body) in ("raise", "exit")
        last = node.body[-1]
        raised = last.exc if isinstance(last, ast.Raise) else None
        if isinstance(raised, ast.Call):
            raised = raised.func
        self.again = c.expr(raised, scope) if isinstance(raised, ast.Name) and raised.id != node.name else None
        self.line = node.lineno

    def classes(self, m: Machine, f: Frame) -> list[Value]:
        """The classes it names."""
        if self.type is None:
            return [EXCEPTIONS["BaseException"]]
        with m.quiet():
            value = self.type(f)
        return list(value) if isinstance(value, (tuple, list)) else [value]

    def matches(self, m: Machine, f: Frame, cls: Class) -> bool:
        """Whether it takes an exception of ``cls``. A class that is not known takes any ``Exception``."""
        for one in self.classes(m, f):
            if isinstance(one, Class):
                if cls.is_subclass(one):
                    return True
            elif cls.is_subclass(EXCEPTIONS["Exception"]) and self.type is not None:
                return True
        return False

    def raises(self, m: Machine, f: Frame, cls: Class) -> Class:
        """What it raises in turn."""
        if self.again is None:
            return cls
        with m.quiet():
            value = self.again(f)
        return value if isinstance(value, Class) else cls

    def broad(self, m: Machine, f: Frame) -> bool:
        """Whether it takes about everything."""
        wide = (EXCEPTIONS["BaseException"], EXCEPTIONS["Exception"])
        return any(one in wide or not isinstance(one, Class) for one in self.classes(m, f))

    def begin(self, f: Frame, error: Instance) -> None:
        """Bind ``error`` to the clause's name."""
        f.line = self.line
        if self.store is not None:
            self.store(f, error)

    def end(self, f: Frame) -> None:
        """The name is gone after the clause."""
        if self.name is not None:
            f.vars.pop(self.name, None)

    def run(self, m: Machine, f: Frame, error: Instance) -> Value:
        """Run its body with ``error`` bound."""
        self.begin(f, error)
        m.handled.append(error)
        try:
            return self.body(f)
        finally:
            m.handled.pop()
            self.end(f)


def select(m: Machine, f: Frame, handlers: list[Handler], error: Instance) -> Handler | None:
    """The clause that takes ``error``."""
    return next((h for h in handlers if h.matches(m, f, error.cls)), None)


def divide(m: Machine, f: Frame, handler: Handler, error: Instance | None) -> tuple[Instance | None, Instance | None]:
    """What an ``except*`` clause takes of ``error`` (as a group), and what is left."""
    if error is None:
        return None, None
    members = error.attrs.get("exceptions")
    if not isinstance(members, tuple):
        if not handler.matches(m, f, error.cls):
            return None, error
        return group(EXCEPTIONS["ExceptionGroup"], "", [error]), None
    return split(error, lambda one: handler.matches(m, f, one.cls))


def handle_groups(m: Machine, f: Frame, handlers: list[Handler], error: Instance) -> Value:
    """The clauses of ``except*``: each takes its part; what nobody takes goes on."""
    rest: Instance | None = error
    for handler in handlers:
        taken, rest = divide(m, f, handler, rest)
        if taken is not None:
            handler.run(m, f, taken)
    if rest is not None:
        raise Raised(rest)
    return 0


def try_(c: Compiler, node: ast.Try | ast.TryStar, scope: Scope) -> Run:
    m = c.machine
    body, orelse, final = (c.block(b, scope) for b in (node.body, node.orelse, node.finalbody))
    handlers = [Handler(c, h, scope) for h in node.handlers]
    starred = isinstance(node, ast.TryStar)

    def attempt(f: Frame) -> Value:
        error: Instance | None = None
        signal: Value = 0
        m.guards.append(Guard(m, f, handlers))
        depth = len(m.guards)
        try:
            signal = body(f)
        except Raised as raised:
            error = raised.value
        finally:
            del m.guards[depth - 1 :]
        if error is None:
            return signal or orelse(f)
        if starred:
            return handle_groups(m, f, handlers, error)
        handler = select(m, f, handlers, error)
        if handler is None:
            raise Raised(error)
        return handler.run(m, f, error)

    if not node.finalbody:
        return attempt

    def run(f: Frame) -> Value:
        error: Instance | None = None
        signal: Value = 0
        try:
            signal = attempt(f) if handlers else (body(f) or orelse(f))
        except Raised as raised:
            error = raised.value
        kept, f.ret = f.ret, None
        last = final(f)
        if last:
            return last
        f.ret = kept
        if error is not None:
            raise Raised(error)
        return signal

    return run


def enter_context(m: Machine, manager: Value) -> Value:
    """``__enter__``; an unknown manager enters as an unknown."""
    method = m.find(manager, "__enter__")
    if method is MISSING:
        method = m.find(manager, "__aenter__")
    return m.derived("context manager") if method is MISSING else m.call(method)


def exit_context(m: Machine, manager: Value, error: Instance | None) -> bool:
    """``__exit__``; True when it swallows ``error``."""
    method = m.find(manager, "__exit__")
    if method is MISSING:
        method = m.find(manager, "__aexit__")
    if method is MISSING:
        return False
    details = (None, None, None) if error is None else (error.cls, error, None)
    return m.truth(m.call(method, details)) is True and error is not None


def with_(c: Compiler, node: ast.With | ast.AsyncWith, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    items = [
        (c.expr(i.context_expr, scope), c.store(i.optional_vars, scope) if i.optional_vars is not None else None)
        for i in node.items
    ]
    body = c.block(node.body, scope)

    def level(f: Frame, index: int) -> Value:
        if index == len(items):
            return body(f)
        expression, store = items[index]
        f.line = line
        manager = expression(f)
        entered = enter_context(m, manager)
        if store is not None:
            store(f, entered)
        del entered
        error: Instance | None = None
        swallowed = getattr(manager, "swallow", ())
        depth = len(m.guards)
        if swallowed:
            m.guards.append(Swallow(m, f, swallowed))
        try:
            signal = level(f, index + 1)
        except Raised as raised:
            error = raised.value
        finally:
            del m.guards[depth:]
        if exit_context(m, manager, error):
            return 0
        if error is not None:
            raise Raised(error)
        return signal

    return lambda f: level(f, 0)
