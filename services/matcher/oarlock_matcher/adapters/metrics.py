"""What the matcher counts. Only the leader decides, so a stand-by's counters stay where they are."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from oarlock_matcher.core import effects as fx

_WAIT_BUCKETS_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
_DECISION_BUCKETS_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0)


class MatcherMetrics:
    """Metrics of decisions. Make one for each registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.leading = Gauge("oarlock_matcher_leading", "1 while this copy leads, else 0.", registry=registry)
        self.waiting = Gauge("oarlock_matcher_waiting_tasks", "Tasks in the leader's queue.", registry=registry)
        self.decision_seconds = Histogram(
            "oarlock_matcher_decision_seconds",
            "Time to decide on one event.",
            registry=registry,
            buckets=_DECISION_BUCKETS_SECONDS,
        )
        self.wait_seconds = Histogram(
            "oarlock_placement_wait_seconds",
            "From a task's arrival to its placement.",
            registry=registry,
            buckets=_WAIT_BUCKETS_SECONDS,
        )
        self._placements = Counter(
            "oarlock_placements",
            "Placements told, by policy and kind of device.",
            ["policy", "kind"],
            registry=registry,
        )
        self._rejections = Counter("oarlock_rejections", "Tasks rejected, by reason.", ["code"], registry=registry)
        self.conflicts = Counter(
            "oarlock_reservation_conflicts", "Reservations lost to another holder.", registry=registry
        )

        self._shadow = Counter(
            "oarlock_shadow_decisions",
            "Placements that a policy in the shadow would have made alike, or otherwise.",
            ["policy", "agrees"],
            registry=registry,
        )
        self._trusted = Gauge(
            "oarlock_learned_policy_trusted",
            "1 while the learned policy answers where it is asked for, 0 while the rules do; absent before rehearsals.",
            ["policy"],
            registry=registry,
        )
        self._regret = Gauge(
            "oarlock_policy_regret_percent",
            "Mean over the last rehearsals: what a policy placed less than the better one, in percent of the devices.",
            ["policy"],
            registry=registry,
        )

    def standing(self, effect: fx.PolicyStanding) -> None:
        """The learned policy has rehearsed beside the rules."""
        self._trusted.labels(effect.policy).set(effect.trusted)
        self._regret.labels(effect.policy).set(effect.regret_percent)
        self._regret.labels(effect.rules).set(effect.rules_regret_percent)

    def placed(self, effect: fx.Placed) -> None:
        """A placement has been booked and told."""
        if effect.shadow is not None:
            self._shadow.labels(effect.shadow.policy, "yes" if effect.shadow.agrees else "no").inc()
        self.wait_seconds.observe(max(0.0, effect.waited_seconds))
        self._placements.labels(effect.policy, effect.kind).inc()

    def rejected(self, effect: fx.Rejected) -> None:
        """A task was turned away."""
        self._rejections.labels(effect.code).inc()
