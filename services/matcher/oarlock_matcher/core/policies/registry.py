"""Policies by name. `random` is not here: it needs a source of chance, which whoever wants it passes in."""

from __future__ import annotations

from collections.abc import Callable

from oarlock_matcher.core.policies.base import PlacementPolicy
from oarlock_matcher.core.policies.fgd import FgdPolicy
from oarlock_matcher.core.policies.fragmentation import FragmentationAwarePolicy
from oarlock_matcher.core.policies.heuristics import (
    BestFitPolicy,
    ClusteringPolicy,
    DotProductPolicy,
    FirstFitPolicy,
    PackingPolicy,
)
from oarlock_matcher.core.policies.learned import LearnedPolicy
from oarlock_matcher.core.policies.weighted import RuleBasedPolicy
from oarlock_matcher.core.policy_settings import PolicySettings

BUILDERS: dict[str, Callable[[PolicySettings], PlacementPolicy]] = {
    "rule_based": lambda settings: RuleBasedPolicy(settings.weights),
    "rl_based": lambda settings: LearnedPolicy(settings.weights, settings.learned),
    "fragmentation_aware": lambda _: FragmentationAwarePolicy(),
    "fgd": lambda _: FgdPolicy(),
    "packing": lambda _: PackingPolicy(),
    "clustering": lambda _: ClusteringPolicy(),
    "first_fit": lambda _: FirstFitPolicy(),
    "best_fit": lambda _: BestFitPolicy(),
    "dot_product": lambda _: DotProductPolicy(),
}

LEARNED = "rl_based"
RULES = "rule_based"
"""Answers where the learned policy is set aside, or a policy is unknown."""


def resolve(name: str | None, settings: PolicySettings, learned_trusted: bool = True) -> tuple[str, str | None]:
    """The policy that will answer for `name`, and a note when it is not the one that was asked for."""
    wanted = name or settings.policy
    if wanted == LEARNED and not learned_trusted:
        return RULES, f"{LEARNED} is set aside, because it placed less than {RULES} when both rehearsed on this fleet"
    if wanted in BUILDERS:
        return wanted, None
    return RULES, f"there is no policy {wanted!r}, so {RULES} decided"


def build(name: str, settings: PolicySettings) -> PlacementPolicy:
    """A fresh policy that has learned nothing yet.

    Raises:
        KeyError: no such policy.
    """
    return BUILDERS[name](settings)
