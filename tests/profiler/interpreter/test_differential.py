"""Our own small programs, run by CPython and by the reader: both must come to the same.

Each program of ``programs`` leaves its results in a list ``r``. What the reader leaves out on purpose is not in them:
refusals (an abstract class, a frozen field, ``__slots__``) and dictionary keys with a ``__hash__`` of their own.
"""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import pytest

from oarlock_profiler.core.interpreter.formatting import text

from .bench import run

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
NEWER = HERE / "newer_syntax.txt"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_as_cpython(program: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        expected = [repr(value) for value in runpy.run_path(str(program))["r"]]
    ran = run(program.read_text())
    assert ran.stopped is None
    assert not ran.machine.internal_errors
    assert [text(ran.machine, value, quote=True) for value in ran["r"]] == expected


def test_newer_syntax() -> None:
    """As CPython 3.13 has it, whatever Python reads."""
    ran = run(NEWER.read_text())
    assert ran.stopped is None
    assert ran["r"] == [
        "1 and 2",
        "nested deep 2",
        "x\ny",
        "2",
        '    1|1  |names["a"]=1',
        "{literal} [2, 3]",
        "11",
        "1\nsecond line",
        "\\d1",
        "1   |",
        "a",
        "5",
        "{'a': 1, 'b': [2, 3]}",
        3,
        3,
        7,
        "wide",
        1,
        "still a name",
        2,
        1,
    ]


def test_newer_syntax_keeps_its_lines() -> None:
    source = NEWER.read_text() + "\nnobody_knows_this\n"
    gaps = run(source).machine.findings.gaps.values()
    assert [gap.where.line for gap in gaps if gap.where] == [source.count("\n")]


@pytest.mark.parametrize("source", ["x = f'{a!'", "def f[T(x): pass", "type X[ = 1", "f'{'", "class A[T]:", 'f"{"a""'])
def test_what_no_python_takes_is_a_placed_message(source: str) -> None:
    [gap] = run(source).machine.findings.gaps.values()
    assert gap.why.startswith("syntax error")
    assert gap.where is not None
