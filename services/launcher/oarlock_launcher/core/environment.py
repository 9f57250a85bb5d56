"""A run's environment: a few plain variables, the task's own, and the visibility of its devices. Nothing else.

The launcher's own environment (which holds the bus's credentials) is never passed on. The task's variables cannot widen
what the run sees: visibility is written last, and other vendors' visibility variables are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
_VISIBILITY = re.compile(r"[A-Z0-9_]*VISIBLE_(?:DEVICES|MODULES|CARDS)|NVIDIA_[A-Z_]+|CUDA_DEVICE_ORDER")
_OURS = re.compile(r"OARLOCK_.*", re.IGNORECASE)
_VALUE_MAX_LENGTH = 65_536


def run_environment(
    base: Mapping[str, str],
    task: Mapping[str, str],
    devices: Mapping[str, str],
    unset: Iterable[str] = (),
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment, and the names of the task's variables that were left out.

    Args:
        base: what every run gets.
        task: what the submitter asked for.
        devices: what makes exactly the placed devices visible.
        unset: variables that would win over ``devices``.
    """
    unset = frozenset(unset)
    refused = tuple(sorted(name for name, value in task.items() if not _allowed(name, value, unset)))
    own = {name: value for name, value in task.items() if name not in refused}
    kept = {name: value for name, value in {**base, **own}.items() if name not in unset}
    return {**kept, **devices}, refused


def visible_names(devices: Mapping[str, str], count: int) -> tuple[str, ...] | None:
    """The names a visibility variable gives to ``count`` devices; None where none does."""
    for name, value in devices.items():
        if name.endswith("_VISIBLE_DEVICES") and name != "NVIDIA_VISIBLE_DEVICES":
            names = tuple(part.strip() for part in value.split(",") if part.strip())
            if len(names) == count:
                return names
    return None


def _allowed(name: str, value: str, unset: frozenset[str]) -> bool:
    return (
        _NAME.fullmatch(name) is not None
        and _VISIBILITY.fullmatch(name) is None
        and _OURS.fullmatch(name) is None
        and name not in unset
        and "\0" not in value
        and len(value) <= _VALUE_MAX_LENGTH
    )
