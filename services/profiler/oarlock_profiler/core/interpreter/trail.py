"""The reader's path for one who doubts it: calls with shapes, branches and why they were taken, loops, imports.

What lies alike side by side is folded into one step that counts (the rounds of a loop, the blocks of a network), and
the whole is bounded. Nothing here is held by the script's values, so that tensors die when they would anyway.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.interpreter.builtin_types import TYPES
from oarlock_profiler.core.interpreter.errors import Raised
from oarlock_profiler.core.interpreter.frames import Frame
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.interpreter.values import (
    BoundMethod,
    Class,
    Function,
    Instance,
    Iteration,
    Method,
    Module,
    Native,
    Unknown,
    Value,
)

MOST_STEPS = 3_000
DEEPEST = 40
_SHOWN_ARGUMENTS = 6
_SHOWN_TEXT = 40
_SILENT = {"__init__", "__new__", "__init_subclass__", "__set_name__", "__iter__", "__len__"}
_PLAIN = (bool, int, float, str, type(None))
_LANGUAGE = {cls.name for cls in TYPES.values()} | {"builtins", "object", "type", "super", "property", "generator"}


@dataclass(slots=True)
class Step:
    """One thing that the reader did: ``kind`` is call, make, branch, loop, round, import or raise.

    ``times``: how often in a row, alike but for plain numbers; ``omitted``: steps inside it that are not kept.
    """

    kind: str
    what: str
    where: Where | None
    result: str = ""
    times: int = 1
    steps: list[Step] = field(default_factory=list)
    omitted: int = 0
    alike: tuple[Any, ...] = ()


class Trail:
    """Collects steps; the innermost open one takes the next."""

    def __init__(self) -> None:
        self.root = Step("script", "", None)
        self._open = [self.root]
        self._count = 0

    def begin(self, step: Step) -> bool:
        """Open ``step``; False when there is no room for it."""
        if self._count >= MOST_STEPS or len(self._open) >= DEEPEST:
            self._open[-1].omitted += 1
            return False
        self._count += 1
        self._open.append(step)
        return True

    def end(self, step: Step, *, keep: bool = True) -> None:
        """Close ``step`` and whatever is still open in it."""
        while any(one is step for one in self._open):
            self._close(keep=keep or self._open[-1] is not step)

    def _close(self, *, keep: bool) -> None:
        """Close the innermost step: fold it into the one before it when they are alike."""
        step = self._open.pop()
        siblings = self._open[-1].steps
        if not keep:
            self._count -= 1
            siblings += step.steps
            self._open[-1].omitted += step.omitted
            return
        step.alike = (*step.alike, step.kind, step.where, tuple((one.alike, one.times) for one in step.steps))
        if siblings and siblings[-1].alike == step.alike:
            siblings[-1].times += step.times
            self._count -= _size(step)
        else:
            siblings.append(step)

    def note(self, step: Step) -> None:
        """A step with nothing inside it."""
        if self.begin(step):
            self.end(step)


def _size(step: Step) -> int:
    return 1 + sum(map(_size, step.steps))


class Loop:
    """A loop and its rounds; rounds in which nothing is told are not kept."""

    def __init__(self, trail: Trail, step: Step) -> None:
        self.trail = trail
        self.step = step
        self._round = self._begin()

    def _begin(self) -> Step | None:
        step = Step("round", "", self.step.where)
        return step if self.trail.begin(step) else None

    def _end(self) -> None:
        if self._round is not None:
            self.trail.end(self._round, keep=bool(self._round.steps))

    def round(self) -> None:
        """A round is over."""
        self._end()
        self._round = self._begin()

    def close(self, rounds: int, count: int | None) -> None:
        """The loop is left."""
        self._end()
        known = f"of {count:,}" if count is not None else "of an unknown number"
        self.step.result = f"{rounds:,} rounds walked {known}"
        self.step.alike = (known,)
        self.trail.end(self.step, keep=bool(self.step.steps))


class FollowedMachine(Machine):
    """A machine that keeps the trail of what it does in the files of the bundle."""

    follows = True

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.trail = Trail()

    def _inside(self) -> bool:
        """Whether the script itself is being walked, and not the source of a library."""
        return not self.frames or not self.frames[-1].module.library

    def invoke(self, function: Value, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
        """See :meth:`Machine.invoke`."""
        target = function
        while isinstance(target, BoundMethod):
            target = target.function
        if not self._inside() or not isinstance(target, (Function, Native, Method, Class, Unknown)):
            return super().invoke(function, args, kwargs)
        name = target.name or "unknown" if isinstance(target, Unknown) else _name(target)
        if name.rpartition(".")[2] in _SILENT:
            return super().invoke(function, args, kwargs)
        receiver = function.receiver if isinstance(function, BoundMethod) else None
        given = [*([receiver] if receiver is not None else []), *args]
        if name.endswith("__call__") and given:
            name, given = _callee(given[0]), given[1:]
        elif isinstance(receiver, Instance) and isinstance(target, Function):
            given = given[1:]
        shown = [*map(shape_of, given[:_SHOWN_ARGUMENTS])]
        shown += [
            f"{key}={shape_of(value)}" for key, value in list((kwargs or {}).items())[: _SHOWN_ARGUMENTS - len(shown)]
        ]
        if len(given) + len(kwargs or {}) > len(shown):
            shown.append("…")
        tensors = tuple(_tensor(value) for value in given if _tensor(value))
        del given, receiver
        step = Step("make" if isinstance(target, Class) else "call", f"{name}({', '.join(shown)})", self.where)
        step.alike = (name.rpartition(" ")[2], tensors)
        if not self.trail.begin(step):
            return super().invoke(function, args, kwargs)
        try:
            result = super().invoke(function, args, kwargs)
        except BaseException as error:
            step.result = f"raises {error.value.cls.name}" if isinstance(error, Raised) else "stops"
            self.trail.end(step)
            raise
        step.result = "" if isinstance(target, Class) else shape_of(result)
        made = _tensor(result)
        step.alike = (*step.alike, made or type(result).__name__)
        self.trail.end(step, keep=bool(made or step.steps or _worth_telling(target, name)))
        return result

    def decided(self, f: Frame, node: ast.If, truth: bool) -> None:
        """A branch whose condition is known."""
        if not f.module.library:
            step = Step("branch", f"if {_source(node.test)}", self.where, _because(f, node.test, truth))
            step.alike = (step.what, truth)
            self.trail.note(step)

    def assumed(self, test: ast.expr, why: str, side: str) -> None:
        """A branch whose condition is not known."""
        if self._inside():
            step = Step("branch", f"if {_source(test)}", self.where, f"not known ({why[:120]}): {side}")
            step.alike = (step.what, step.result)
            self.trail.note(step)

    def imported(self, name: str, value: Value) -> None:
        """An import statement of the script."""
        if not self._inside():
            return
        if isinstance(value, Unknown):
            result = f"not resolved: {value.why[:160]}"
        elif isinstance(value, Module) and value.file is not None:
            result = f"read from {value.file}" + (" (library source)" if value.library else "")
        else:
            result = "known to the reader"
        self.trail.note(Step("import", name, self.where, result, alike=(name,)))

    def loop_begins(self, f: Frame, iteration: Iteration | None) -> Loop | None:
        """A loop is entered; None when it is not followed."""
        if f.module.library:
            return None
        step = Step("loop", "while" if iteration is None else "for", self.where)
        return Loop(self.trail, step) if self.trail.begin(step) else None

    def raised(self, error: Value, frame: Frame) -> Value:
        """See :meth:`Machine.raised`."""
        if not frame.module.library:
            self.trail.note(Step("raise", shape_of(error), self.where))
        return super().raised(error, frame)


def _name(target: Function | Native | Method | Class) -> str:
    return target.qualname if isinstance(target, (Function, Class)) else target.name


def _callee(layer: Value) -> str:
    """A layer that is called: its path in the model and its class."""
    path = getattr(layer, "path", None)
    cls = layer.cls.name if isinstance(layer, Instance) else type(layer).__name__
    return f"{path} {cls}" if path else cls


def _worth_telling(target: Value, name: str) -> bool:
    """Whether a call without tensors says something: functions of the script, what is made, library calls, unknowns."""
    if isinstance(target, Function):
        return True
    if ".Tensor." in name:
        return name.endswith("backward")
    top = name.partition(".")[0]
    if (
        top in _LANGUAGE
        or top in sys.builtin_module_names
        or (isinstance(target, Class) and "." not in target.qualname)
    ):
        return isinstance(target, Class) and target.module is not None
    return "." in name and top not in sys.stdlib_module_names


def _tensor(value: Value) -> str:
    """``float32[8, 64]`` for a tensor, of a list of tensors the first's and how many; else nothing."""
    if isinstance(value, (list, tuple)) and value:
        first = _tensor(value[0])
        return f"{len(value)} of {first}" if first else ""
    if type(value).__name__ != "Tensor":
        return ""
    shape = getattr(value, "shape", None)
    return f"{value.dtype}{list(shape)}" if shape is not None else "tensor of unknown shape"


def shape_of(value: Value) -> str:
    """A value in a few words: a tensor's type and shape, a plain value itself, else what kind it is."""
    tensor = _tensor(value)
    if tensor:
        return tensor
    if isinstance(value, Unknown):
        return f"unknown {value.hint}" if value.hint in ("int", "float", "str", "bool", "list") else "unknown"
    if isinstance(value, _PLAIN):
        text = repr(value)
        return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…"
    if isinstance(value, (list, tuple, dict, set)) and not isinstance(value, Instance):
        if len(value) <= 4 and all(isinstance(one, _PLAIN) for one in value) and not isinstance(value, dict):
            return repr(value)[:_SHOWN_TEXT]
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, Instance):
        return value.cls.name
    if isinstance(value, (Function, Native, Method, Class)):
        return _name(value)
    return type(value).__name__


def _source(node: ast.expr) -> str:
    return ast.unparse(node)[:80]


def _because(f: Frame, test: ast.expr, truth: bool) -> str:
    """``true`` or ``false``, with the plain values that the condition names."""
    shown: dict[str, str] = {}
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            value = f.vars.get(node.id, f.globals.get(node.id, ...))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            holder = f.vars.get(node.value.id, f.globals.get(node.value.id))
            attributes: Mapping[str, Value] = getattr(holder, "attrs", {})
            value = attributes.get(node.attr, ...)
        else:
            continue
        if isinstance(value, _PLAIN) and len(shown) < 3:
            shown[ast.unparse(node)] = shape_of(value)
    values = ", ".join(f"{name} = {value}" for name, value in shown.items())
    return f"{'true' if truth else 'false'}{f' ({values})' if values else ''}"
