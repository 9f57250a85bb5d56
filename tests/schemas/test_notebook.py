"""A notebook as a script: what is Python stays and runs, what speaks to IPython does nothing."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

from oarlock_schemas import is_notebook, notebook_script


def notebook(*cells: str | list[str]) -> bytes:
    code = [{"cell_type": "code", "source": cell, "outputs": [], "execution_count": None} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "print(0)"}, *code], "nbformat": 4}).encode()


def test_cells_run_in_order_without_magics_shell_commands_and_other_languages() -> None:
    script = notebook_script(
        notebook(
            ["%matplotlib inline\n", "x = 1\n", "if x:\n", "    !pip install nothing\n"],
            "%%bash\nexit 3",
            "%%time\ny = x + 1",
            "?print\nprint(y % 2, x)",
        )
    )
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(script, "nb", "exec"), {})
    assert out.getvalue() == "0 1\n"


@pytest.mark.parametrize(
    "data", [b"x = 1\n", b"{}", b"[]", b'{"cells": 3}', b'{"cells": [3]}', b"[" * 100_000, b"\xff"]
)
def test_what_is_no_notebook_stays_as_it_is(data: bytes) -> None:
    assert notebook_script(data) == data


def test_the_name_says_what_a_notebook_is() -> None:
    assert is_notebook("a/b.ipynb") and is_notebook("B.IPYNB") and not is_notebook("ipynb.py")
