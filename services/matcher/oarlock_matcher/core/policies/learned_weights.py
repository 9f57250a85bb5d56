"""The learned policy's weights: read from the file that training writes, or from what an operator put in its place.

The file says which version it is, for which features, and what it was trained on; only version and weights decide.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from oarlock_matcher.core.policies.packing_features import CLASSES, FEATURES
from oarlock_matcher.core.policy_settings import LearnedWeights

LARGEST_WEIGHT = 100.0
FILE = "learned.json"


RULES = LearnedWeights("rules", {name: {"fragmentation": 1.0, "scarcity": 1.0} for name in CLASSES})
"""Decides as the rules do; where training begins."""


def weights_of(document: Mapping[str, Any]) -> LearnedWeights:
    """The weights in a document such as `learned.json`; other keys are for people.

    Raises:
        ValueError: no version, a class or feature that there is not, or a weight that is no number within ±100.
    """
    version, weights = document.get("version"), document.get("weights")
    if not isinstance(version, str) or not version or len(version) > 64:
        raise ValueError("a set of weights needs a `version` (text, at most 64 characters)")
    if not isinstance(weights, Mapping) or not weights:
        raise ValueError(f"weights {version}: `weights` must name some of {', '.join(CLASSES)}")
    found: dict[str, dict[str, float]] = {}
    for name, by_feature in weights.items():
        if name not in CLASSES or not isinstance(by_feature, Mapping):
            raise ValueError(f"weights {version}: there is no class {name!r} of shapes; there are {', '.join(CLASSES)}")
        found[name] = {str(feature): _weight(version, feature, value) for feature, value in by_feature.items()}
    return LearnedWeights(version, found)


def _weight(version: str, feature: Any, value: Any) -> float:
    if feature not in FEATURES:
        raise ValueError(f"weights {version}: there is no feature {feature!r}; there are {', '.join(FEATURES)}")
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or abs(value) > LARGEST_WEIGHT:
        raise ValueError(f"weights {version}: {feature} weighs {value!r}, which is no number within ±{LARGEST_WEIGHT}")
    return float(value)


def shipped_document() -> dict[str, Any]:
    """`learned.json` as it stands in this release, with what it was trained on."""
    document: dict[str, Any] = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    return document


SHIPPED = weights_of(shipped_document())
