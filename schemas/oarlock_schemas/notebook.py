"""What a notebook means as a script. The reader sizes it and the launcher runs it, so both must mean the same."""

from __future__ import annotations

import json
import re

NOTEBOOK_SUFFIX = ".ipynb"

_COMMAND = re.compile(r"^([ \t]*)([%!?].*)$")
"""A line that speaks to IPython rather than to Python."""

_KEPT_CELL_MAGICS = ("%%time", "%%capture")
"""Cell magics below which the cell is still Python that runs once."""


def is_notebook(path: str) -> bool:
    """Whether the name is a notebook's."""
    return path.lower().endswith(NOTEBOOK_SUFFIX)


def notebook_script(data: bytes) -> bytes:
    """The code cells of a notebook, in order, as one script.

    Magics and shell commands become ``pass`` with the line as a comment, so that a block that holds nothing else stays
    a block; cells in another language are left out. What is no notebook comes back as it is.
    """
    try:
        cells = json.loads(data)["cells"]
        codes = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return data
    lines = [
        _COMMAND.sub(r"\1pass  # \2", line)
        for code in codes
        if not code.startswith("%%") or code.startswith(_KEPT_CELL_MAGICS)
        for line in [*code.split("\n"), ""]
    ]
    return "\n".join(lines).encode("utf-8", "surrogatepass")
