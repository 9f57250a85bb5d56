"""Library modules of our own writing, as text that the reader interprets: what a framework does in Python above its operators.

Models (vision, language), trainers and wrappers are a loop, a forward and some arithmetic; written as Python they need no
second explanation in host code. The text is read only where the library's own source is not on the library path.
Operators, tensors and layers do not belong here: they are host functions of the areas beside this package.
"""

from __future__ import annotations

import functools
import importlib.resources

_SUFFIX = ".py.txt"

HOMES: dict[str, str] = {}
"""Public names that live in a text module of another name: ``paddle.Model`` → ``oarlock_hapi``."""


@functools.cache
def modules() -> frozenset[str]:
    """Dotted names of the text modules."""
    files = importlib.resources.files(__name__).iterdir()
    return frozenset(file.name.removesuffix(_SUFFIX) for file in files if file.name.endswith(_SUFFIX))


@functools.cache
def source(module: str) -> tuple[str, bytes] | None:
    """The text of ``module``: (path to show, source), or None when we have none."""
    if module not in modules():
        return None
    file = importlib.resources.files(__name__).joinpath(f"{module}{_SUFFIX}")
    return f"oarlock/library/{module}.py", file.read_bytes()


def homes(owner: str, names: str, *publics: str) -> None:
    """Say that each of ``names`` (space-separated) is found in text module ``owner``, under every prefix of ``publics``."""
    for name in names.split():
        for public in publics:
            HOMES[f"{public}.{name}"] = owner


homes("oarlock_hapi", "Model", "paddle", "paddle.hapi", "paddle.hapi.model")
homes(
    "oarlock_hapi",
    "Callback ProgBarLogger ModelCheckpoint VisualDL LRScheduler EarlyStopping ReduceLROnPlateau WandbCallback",
    "paddle.callbacks", "paddle.hapi.callbacks",
)  # fmt: skip
homes("oarlock_hapi", "Metric Accuracy Precision Recall Auc accuracy", "paddle.metric")
homes("oarlock_hapi", "summary flops", "paddle", "paddle.hapi")
