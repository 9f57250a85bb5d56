"""What the runtime counts, in Prometheus base units. One registry per service, so that several fit one process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0)


class ServiceMetrics:
    """The runtime's own metrics. A service adds its own to :attr:`registry`."""

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        names = ["service", "consumer"]
        self.service = service
        self.handled = Counter(
            "oarlock_messages_handled", "Messages whose handler returned.", names, registry=self.registry
        )
        self.failed = Counter(
            "oarlock_messages_failed",
            "Deliveries whose handler raised, by kind of error (temporary, retried, permanent, exhausted, invalid, "
            "crashing).",
            [*names, "kind"],
            registry=self.registry,
        )
        self.redelivered = Counter(
            "oarlock_messages_redelivered", "Deliveries that were not the first.", names, registry=self.registry
        )
        self.dead = Counter(
            "oarlock_messages_dead", "Messages put into the dead letters.", names, registry=self.registry
        )
        self.handler_seconds = Histogram(
            "oarlock_handler_seconds", "Time in the handler.", names, registry=self.registry, buckets=_SECONDS_BUCKETS
        )
        self.in_flight = Gauge(
            "oarlock_messages_in_flight", "Messages in hand, waiting or being handled.", names, registry=self.registry
        )
        self.pending = Gauge(
            "oarlock_messages_pending", "Messages of the stream not yet delivered.", names, registry=self.registry
        )
        self.requests = Counter(
            "oarlock_requests",
            "Requests answered, by outcome (ok, error).",
            ["service", "subject", "outcome"],
            registry=self.registry,
        )
        self.reconnects = Counter(
            "oarlock_bus_reconnects", "Times the connection was made anew.", ["service"], registry=self.registry
        )
        self.connected = Gauge(
            "oarlock_bus_connected", "1 while the server is in touch, else 0.", ["service"], registry=self.registry
        )
        self.background_failures = Counter(
            "oarlock_background_failures",
            "Background loops that raised and were started again.",
            ["service", "loop"],
            registry=self.registry,
        )
        self.reconnects.labels(service)
        self.connected.labels(service)
