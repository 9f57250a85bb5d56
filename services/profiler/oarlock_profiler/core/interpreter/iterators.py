"""Iterators as values: generators of the script, and host iterators that remember whether their items are exact."""

# ruff: noqa: ARG002, ARG005 - the signatures are Python's own

from __future__ import annotations

import collections
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, Raised, exception
from oarlock_profiler.core.interpreter.frames import Frame
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Class,
    Context,
    HostObject,
    Instance,
    Iteration,
    Native,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine


class GeneratorObject(HostObject):
    """A generator of the script: its body runs as it is consumed."""

    def __init__(self, machine: Machine, frame: Frame, body: Callable[[Frame], Any], name: str) -> None:
        self.machine = machine
        self.frame: Frame | None = frame
        self.name = name
        self.steps = body(frame)
        self.guards: list[Any] = []
        self.result: Value = None
        """What it returned, once it is done."""

    def py_type(self) -> str:
        return "types.GeneratorType"

    def __iter__(self) -> Iterator[Value]:
        return self

    def __next__(self) -> Value:
        return self._resume(self.steps.__next__)

    def _resume(self, step: Callable[..., Value], *args: Value) -> Value:
        m, frame = self.machine, self.frame
        if frame is None:
            raise StopIteration
        if not m.enter(frame):
            raise StopIteration
        level = len(m.guards)
        m.guards.extend(self.guards)
        try:
            return step(*args)
        except StopIteration:
            self.result, self.frame = frame.ret, None
            raise
        except ValueError as error:
            m.findings.gap(f"generator {self.name}", m.where, str(error))
            raise StopIteration from None
        finally:
            self.guards = m.guards[level:]
            del m.guards[level:]
            m.frames.pop()

    def delegate(self) -> Generator[Value, Value, Value]:
        """``yield from``: passes on what is sent and thrown in; its value is what this generator returns."""
        step: Callable[..., Value] = self.steps.__next__
        args: tuple[Value, ...] = ()
        while True:
            try:
                item = self._resume(step, *args)
            except StopIteration:
                return self.result
            try:
                sent = yield item
            except Raised as raised:
                step, args = self.steps.throw, (Raised(raised.value),)
            except GeneratorExit:
                self._close()
                raise
            else:
                step, args = self.steps.send, (sent,)
            del item

    def _close(self) -> None:
        if self.frame is None:
            return
        try:
            self._resume(self.steps.throw, GeneratorExit)
        except (StopIteration, GeneratorExit):
            pass
        except Raised as raised:
            if raised.value.cls is not EXCEPTIONS["GeneratorExit"]:
                raise
        finally:
            self.frame = None

    def py_iterate(self, context: Context) -> Iteration | None:
        return Iteration(self)

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "send":
            return Native("generator.send", self._send)
        if name == "throw":
            return Native("generator.throw", self._throw)
        if name == "close":
            return Native("generator.close", lambda _c: self._close())
        if name in ("__next__", "__anext__"):
            return Native("generator.__next__", lambda c: next_item(self.machine, self, MISSING))
        return Native("generator.__iter__", lambda _c: self) if name in ("__iter__", "__aiter__") else MISSING

    def _send(self, _context: Context, value: Value) -> Value:
        try:
            return self._resume(self.steps.send, value)
        except StopIteration:
            raise Raised(self._stop()) from None

    def _throw(self, _context: Context, error: Value, *_rest: Value) -> Value:
        if isinstance(error, Class):
            error = _rest[0] if _rest and isinstance(_rest[0], Instance) else self.machine.call(error, _rest[:1])
        value = error if isinstance(error, Instance) else exception("Exception", "")
        try:
            return self._resume(self.steps.throw, Raised(value))
        except StopIteration:
            raise Raised(self._stop()) from None

    def _stop(self) -> Instance:
        args = () if self.result is None else (self.result,)
        return Instance(EXCEPTIONS["StopIteration"], {"args": args, "value": self.result})


class HostIterator(HostObject):
    """``iter(x)``, ``zip``, ``map``, ``enumerate``…: lazily produced items, exact or standing for ``count`` of them.

    ``restart`` begins again when the few symbolic items of an inexact source are used up by ``next``.
    """

    def __init__(
        self, items: Any, exact: bool = True, count: int | None = None, restart: Callable[[], Any] | None = None
    ) -> None:
        self.items = iter(items)
        self.exact = exact
        self.count = count
        self.restart = restart

    def py_type(self) -> str:
        return "iterator"

    def __iter__(self) -> Iterator[Value]:
        return self

    def __next__(self) -> Value:
        return next(self.items)

    def py_iterate(self, context: Context) -> Iteration | None:
        return Iteration(self, self.exact, self.count)

    def py_len(self, context: Context) -> Value:
        return self.count if self.count is not None else MISSING

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__iter__":
            return Native("iterator.__iter__", lambda _c: self)
        if name == "__next__":
            return Native("iterator.__next__", lambda c: next_item(c, self, MISSING))
        return MISSING


_END = object()
_CHANGING: tuple[type, ...] = (set, collections.deque, type({}.keys()), type({}.values()), type({}.items()))


def next_item(m: Any, iterator: Value, default: Value) -> Value:
    """``next(iterator[, default])``."""
    if isinstance(iterator, Unknown):
        return iterator.item if iterator.item is not None else m.part(iterator, index=0)
    if isinstance(iterator, Instance) and not isinstance(iterator, HostObject):
        method = m.find(iterator, "__next__")
        if method is MISSING:
            return m.fail("TypeError", f"{m.type_name(iterator)} is not an iterator")
        try:
            return m.call(method)
        except Raised as raised:
            error = raised.value
        if default is not MISSING and error.cls.is_subclass(EXCEPTIONS["StopIteration"]):
            return default
        raise Raised(error)
    if not hasattr(iterator, "__next__"):
        method = m.find(iterator, "__next__")
        if method is not MISSING:
            return m.call(method)
        return m.fail("TypeError", f"{m.type_name(iterator)} is not an iterator")
    item = next(iterator, _END)
    if item is not _END:
        return item
    if default is not MISSING:
        return default
    restart = iterator.restart if isinstance(iterator, HostIterator) and not iterator.exact else None
    if restart is not None and not m.caught(EXCEPTIONS["StopIteration"]):
        iterator.items = iter(restart())
        item = next(iterator.items, _END)
        if item is not _END:
            return item
    stepping = any(f.function is not None and f.function.name in ("__next__", "__anext__") for f in m.frames[-8:])
    if stepping or m.caught(EXCEPTIONS["StopIteration"]):
        result = iterator.result if isinstance(iterator, GeneratorObject) else None
        args = () if result is None else (result,)
        raise Raised(Instance(EXCEPTIONS["StopIteration"], {"args": args, "value": result}), implicit=True)
    return m.unknown("StopIteration: nothing is left to take from the iterator")


def iteration(m: Machine, value: Value) -> Iteration:
    """How a ``for`` loop runs over ``value``."""
    kind = type(value)
    if kind is list and m.open_lists.holds(value):
        return Iteration(value, exact=False)
    if kind in (list, tuple, range, str, frozenset, bytes):
        return Iteration(value)
    if kind in _CHANGING:
        # the host's iterators of these refuse to go on when the body changes them
        return Iteration(list(value))
    if isinstance(value, HostObject):
        found = value.py_iterate(m)
        if found is not None:
            return found
    if isinstance(value, Unknown):
        item = value.item if value.item is not None else m.part(value, index=0)
        return Iteration([item], exact=False)
    if isinstance(value, Instance):
        found = _instance(m, value)
        if found is not None:
            return found
    if isinstance(value, dict):
        return Iteration(list(value))
    if isinstance(value, Class) and value.meta is not None:
        items = value.meta.items(m, value)
        if items is not None:
            return Iteration(items)
    if hasattr(value, "__iter__") and not isinstance(value, (HostObject, Class)):
        return Iteration(value)
    m.fail("TypeError", f"{m.type_name(value)} cannot be looped over")
    return Iteration([m.derived(f"an item of {m.type_name(value)}")], exact=False)


def _instance(m: Machine, value: Instance) -> Iteration | None:
    method = m.find(value, "__iter__")
    if method is MISSING:
        method = m.find(value, "__aiter__")
    if method is not MISSING and not (isinstance(method, Unknown)):
        source = m.call(method)
        if isinstance(source, Iteration):
            return source
        if isinstance(source, Instance) and not isinstance(source, HostObject):
            if isinstance(source, (list, tuple, dict, set)):
                return Iteration(source)
            return Iteration(_stepping(m, source))
        return iteration(m, source) if source is not value else None
    getter = m.find(value, "__getitem__")
    if getter is MISSING or isinstance(value, (dict, list, tuple, str)):
        return None
    length = m.find(value, "__len__")
    bound = m.call(length) if length is not MISSING else None
    return Iteration(_indexing(m, getter, bound), exact=not isinstance(bound, Unknown))


def _stepping(m: Machine, source: Instance) -> Iterator[Value]:
    method = m.find(source, "__next__")
    if method is MISSING:
        method = m.find(source, "__anext__")
    if method is MISSING:
        yield m.fail("TypeError", f"{m.type_name(source)} is not an iterator")
        return
    while True:
        m.spend()
        try:
            item = m.call(method)
        except Raised as raised:
            error = raised.value
            if error.cls.is_subclass(EXCEPTIONS["StopIteration"]) or error.cls.name == "StopAsyncIteration":
                return
            raise
        yield item
        del item


def _indexing(m: Machine, getter: Value, bound: Value) -> Iterator[Value]:
    from oarlock_profiler.core.interpreter.guarded import Swallow  # noqa: PLC0415 - cycle

    limit = bound if isinstance(bound, int) else m.budget.limits.loop
    if isinstance(bound, Unknown):
        limit = 1
    for index in range(limit):
        m.spend()
        m.guards.append(Swallow(m, m.frames[-1], (EXCEPTIONS["IndexError"],)))
        depth = len(m.guards)
        try:
            item = m.call(getter, [index])
        except Raised as raised:
            if raised.value.cls.is_subclass(EXCEPTIONS["IndexError"]):
                return
            raise
        finally:
            del m.guards[depth - 1 :]
        yield item
        del item
