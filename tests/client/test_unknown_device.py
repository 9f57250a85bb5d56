"""A device kind that does not exist is answered with kinds of the same make."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarlock.local import UnknownDevice, explain_path


def test_kinds_that_share_a_word_are_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    with pytest.raises(UnknownDevice, match="near it: RTX"):
        explain_path(script, gpu="RTX 9999")
