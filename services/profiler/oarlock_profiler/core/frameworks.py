"""Whose rules hold: the framework that the entry's text imports, else the first that the reading comes to import."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEAD_BYTES = 200_000
NAMES = {"paddle": "paddlepaddle", "torch": "pytorch"}
"""Frameworks by the module that is imported. PaddlePaddle first, where a script imports both."""
_HINTS = (
    (rb"paddle\w+", "paddlepaddle"),
    (rb"torch\w+|transformers|lightning|timm|pytorch_lightning|accelerate|deepspeed", "pytorch"),
)


def named(entry: bytes) -> str | None:
    """The framework that the entry's text imports itself."""
    return next((name for word, name in NAMES.items() if _imports(entry, word.encode())), None)


def guessed(entry: bytes, declared: Mapping[str, object]) -> str | None:
    """What the libraries that it imports rest upon, else what the task declares."""
    found = next((name for words, name in _HINTS if _imports(entry, words)), None)
    told = declared.get("framework")
    return found or (str(told) if told else None)


def _imports(text: bytes, word: bytes) -> bool:
    """Whether a line imports the module: ``import numpy as np, paddle`` does as well as ``from paddle import nn``."""
    found = rb"^[ \t\"']*(?:from[ \t]+(?:%b)(?![\w])|import[ \t][^#\n]*?(?<![\w.])(?:%b)(?![\w]))" % (word, word)
    return re.search(found, text[:_HEAD_BYTES], re.MULTILINE) is not None
