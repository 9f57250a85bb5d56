"""``function.__code__``: what scripts ask of it is its parameters."""

# ruff: noqa: ARG002 - the signatures are Python's own

from __future__ import annotations

import ast
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, Function, HostObject, Value

FLAGS = {
    "CO_OPTIMIZED": 1,
    "CO_NEWLOCALS": 2,
    "CO_VARARGS": 4,
    "CO_VARKEYWORDS": 8,
    "CO_NESTED": 16,
    "CO_GENERATOR": 32,
    "CO_COROUTINE": 128,
    "CO_ASYNC_GENERATOR": 512,
}
"""As the ``inspect`` module documents them."""

CO_COROUTINE = FLAGS["CO_COROUTINE"]


class CodeObject(HostObject):
    """The code of one function of the script."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def py_type(self) -> str:
        return "types.CodeType"

    def variables(self) -> tuple[str, ...]:
        """``co_varnames``: parameters as CPython orders them, then the other local variables."""
        code = self.function.closure.code
        parameters = [*code.positional, *code.keyword_only]
        parameters += [name for name in (code.vararg, code.kwarg) if name is not None]
        code.ready()
        cells = set(code.own_cells)
        seen = dict.fromkeys(parameters)
        for node in ast.walk(code.node):
            if isinstance(node, ast.Name) and node.id in code.scope.bound and node.id not in cells:
                seen.setdefault(node.id)
        return tuple(seen)

    def flags(self) -> int:
        """``co_flags``."""
        code = self.function.closure.code
        code.ready()
        asynchronous = isinstance(code.node, ast.AsyncFunctionDef)
        bits = 3 | (4 if code.vararg else 0) | (8 if code.kwarg else 0) | (16 if code.free else 0)
        if asynchronous:
            return bits | (512 if code.generator else 128)
        return bits | (32 if code.generator else 0)

    def py_getattr(self, context: Any, name: str) -> Value:
        function, code = self.function, self.function.closure.code
        match name:
            case "co_argcount":
                return len(code.positional)
            case "co_posonlyargcount":
                return code.positional_only
            case "co_kwonlyargcount":
                return len(code.keyword_only)
            case "co_varnames":
                return self.variables()
            case "co_nlocals":
                return len(self.variables())
            case "co_name":
                return function.name
            case "co_qualname":
                return function.qualname
            case "co_flags":
                return self.flags()
            case "co_freevars":
                return tuple(sorted(code.free))
            case "co_cellvars":
                code.ready()
                return (*code.parameter_cells, *code.own_cells)
            case "co_filename":
                return function.module.file or ""
            case "co_firstlineno":
                return getattr(code.node, "lineno", 1)
        return context.derived(f"function.__code__.{name}") if name.startswith("co_") else MISSING


def closure_cells(function: Function) -> Value:
    """``function.__closure__``: its captured variables in order, or None."""
    cells = function.closure.cells
    names = sorted(name for name in function.closure.code.free if name in cells)
    return tuple(CellObject(cells[name]) for name in names) or None


class CellObject(HostObject):
    """One captured variable."""

    def __init__(self, cell: Value) -> None:
        self.cell = cell

    def py_getattr(self, context: Any, name: str) -> Value:
        return self.cell.value if name == "cell_contents" else MISSING

    def py_setattr(self, context: Any, name: str, value: Value) -> bool:
        if name != "cell_contents":
            return False
        self.cell.value = value
        return True


__all__ = ["CO_COROUTINE", "FLAGS", "CellObject", "CodeObject", "closure_cells"]
