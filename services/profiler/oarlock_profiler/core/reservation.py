"""How much to book beyond an estimate so that the run fits with the chosen probability.

Each completed run scores ``log(measured / predicted)``. The scores are kept as a histogram per family, and one over
everything that stands in until a family has enough runs of its own. What is booked is the quantile of the scores that
held for the chosen share of runs (split conformal prediction), at a level that follows the misses really seen (Gibbs
and Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021).

The probability is one of all runs. A family whose estimates are so good that it is booked at the floor misses less than
its share, and leaves the rest to families where the last misses cost the most memory; no family may miss more than
:data:`FAMILY_SHARE` times the whole's share.

A floor and a ceiling bound the ratio, and no owner's runs weigh more than half of a histogram once others have run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

PROBABILITY = 0.99
RATIO_FLOOR = 1.02
RATIO_CEILING = 1.6
RATIO_PRIOR = 1.08
"""What is booked beyond the estimate before any run has completed."""

PRIOR_RUNS = 25.0
"""How many runs of its own a family needs before its histogram speaks alone."""

LEVEL_STEP = 0.002
FAMILY_SHARE = 2.0
"""How many times the share of all runs that may miss, one family may."""

BIN = 0.005
"""Width of a bin of the histogram, in log units."""

DECAY = 0.999
OWNER_SHARE = 0.5
MAX_OWNERS = 32
EVERYTHING = "*"

MAX_BYTES = 192 * 1024
"""Of the histograms as JSON; then the family that has not run for longest is forgotten."""

Scores = Mapping[str, Any]


def ratio(scores: Scores, family: str) -> float:
    """What to book over the estimate of a run of ``family``."""
    own, everything = scores.get(family), scores.get(EVERYTHING)
    if everything is None:
        return RATIO_PRIOR
    if own is None:
        return _quantile(everything["bins"], everything["alpha"])
    weight = sum(own["bins"].values())
    level = min(own["alpha"], everything["alpha"])
    if weight >= PRIOR_RUNS:
        return _quantile(own["bins"], level)
    lent = (PRIOR_RUNS - weight) / max(sum(everything["bins"].values()), 1e-9)
    merged = dict(own["bins"])
    for place, count in everything["bins"].items():
        merged[place] = merged.get(place, 0.0) + min(1.0, lent) * count
    return _quantile(merged, level)


def observed(scores: Scores, family: str, owner: str, score: float) -> dict[str, Any]:
    """The histograms with one more run of ``family`` whose ``log(measured / predicted)`` is ``score``."""
    bounded = min(max(score, math.log(0.5)), math.log(RATIO_CEILING) + BIN)
    missed = 1.0 if bounded > math.log(ratio(scores, family)) + 1e-12 else 0.0
    new = dict(scores)
    for name in (EVERYTHING, family):
        share = 1 - PROBABILITY if name == EVERYTHING else FAMILY_SHARE * (1 - PROBABILITY)
        old = new.get(name) or {"bins": {}, "alpha": share, "owners": {}}
        weight = _owner_weight(old["owners"], owner)
        bins = {place: count * DECAY for place, count in old["bins"].items() if count * DECAY > 0.01}
        place = str(math.ceil(bounded / BIN))
        bins[place] = bins.get(place, 0.0) + weight
        alpha = old["alpha"] + LEVEL_STEP * (share - missed) * weight
        new.pop(name, None)  # to the end: the family that has not run for longest stands first
        new[name] = {
            "bins": bins,
            "alpha": min(max(alpha, 0.001), FAMILY_SHARE * (1 - PROBABILITY)),
            "owners": _counted(old["owners"], owner, weight),
        }
    for name in [name for name in new if name not in (EVERYTHING, family)]:
        if len(json.dumps(new)) <= MAX_BYTES:
            break
        del new[name]
    return new


def _quantile(bins: Mapping[str, float], alpha: float) -> float:
    """The ratio below which at least ``1 - alpha`` of the scores lie, with the finite-sample correction.

    With fewer than ``1 / alpha`` runs no score is known to be high enough; then the prior stands behind the largest.
    """
    places = sorted((int(place), count) for place, count in bins.items())
    total = sum(count for _, count in places)
    wanted = (total + 1) * (1 - alpha)
    if not places:
        value = math.log(RATIO_PRIOR)
    elif wanted > total:
        value = max(places[-1][0] * BIN, math.log(RATIO_PRIOR))
    else:
        below, value = 0.0, places[-1][0] * BIN
        for place, count in places:
            below += count
            if below >= wanted:
                value = place * BIN
                break
    return min(max(math.exp(value), RATIO_FLOOR), RATIO_CEILING)


def _owner_weight(owners: Mapping[str, float], owner: str) -> float:
    """Less than one run once the owner already holds its share and others have run too."""
    total = sum(owners.values())
    if len(owners) < 2 or owners.get(owner, 0.0) <= OWNER_SHARE * total:
        return 1.0
    return 0.1


def _counted(owners: Mapping[str, float], owner: str, weight: float) -> dict[str, float]:
    counted = {name: count * DECAY for name, count in owners.items()}
    if owner not in counted and len(counted) >= MAX_OWNERS:
        owner = "*others"
    counted[owner] = counted.get(owner, 0.0) + weight
    return counted
