"""Running code: cells, frames and compiled bodies.

A frame's ``vars`` hold its locals exactly as long as CPython would: only variables that an inner function really
captures live in cells, so that a frame and its closures form no cycle that would keep tensors alive.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.values import MISSING, Function, Module, Value

BREAK, CONTINUE, RETURN = 1, 2, 3
"""What a statement tells its block; 0 or None: go on."""


class Cell:
    """A variable shared between a function and those defined in it."""

    __slots__ = ("value",)

    def __init__(self, value: Value = MISSING) -> None:
        self.value = value


class Frame:
    """One activation. ``vars`` of a module frame are its globals; of a class frame, the class's namespace."""

    __slots__ = ("cells", "code", "function", "globals", "line", "loop", "module", "ret", "vars")

    def __init__(
        self,
        vars: dict[str, Value],
        cells: dict[str, Cell],
        module: Module,
        code: Code | None = None,
        function: Function | None = None,
        line: int = 0,
    ) -> None:
        self.vars = vars
        self.cells = cells
        self.globals = module.attrs
        self.module = module
        self.code = code
        self.function = function
        self.line = line
        self.ret: Value = None
        self.loop: list[int] = []


Run = Callable[[Frame], Value]
"""A compiled expression (its value) or statement (a signal)."""


@dataclass(eq=False, slots=True)
class Code:
    """A function's compiled form; ``body`` is made on the first call."""

    node: ast.AST
    scope: Scope
    name: str
    positional: tuple[str, ...] = ()
    positional_only: int = 0
    keyword_only: tuple[str, ...] = ()
    vararg: str | None = None
    kwarg: str | None = None
    generator: bool = False
    body: Callable[[Frame], Value] | None = None
    compile: Callable[[], Callable[[Frame], Value]] | None = None
    first: str | None = None
    parameter_cells: tuple[str, ...] = ()
    own_cells: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    annotations: dict[str, ast.expr] = field(default_factory=dict)

    def ready(self) -> Callable[[Frame], Value] | None:
        """The body, compiled if this is the first time it is asked for; ``generator`` and the cells are known then."""
        if self.body is None and self.compile is not None:
            self.body = self.compile()
        return self.body


@dataclass(eq=False, slots=True)
class Closure:
    """A function's code with the cells it captured."""

    code: Code
    cells: dict[str, Cell]
