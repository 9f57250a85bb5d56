"""What must exist on the server: streams, buckets, the object store; and how large each may grow.

Pure description, so that the administrator's documentation, the least-privilege configuration and ``Bus.ensure`` read
the same table. Making it so is :mod:`oarlock_runtime.bus`'s task.
"""

from __future__ import annotations

from dataclasses import dataclass

from nats.js import api

from oarlock_runtime.subjects import Subjects

_MIB = 1024 * 1024
_DAY_SECONDS = 86_400.0
# What the server fills in; named so that what is present equals what is wanted and is not updated at each start.
_DEFAULT_DUPLICATE_WINDOW_SECONDS = 120.0

DUPLICATE_WINDOW_SECONDS = 600.0
"""How long the server remembers message ids. Longer than any retry of a publish, short enough to stay in memory."""

PAYLOAD_MAX_BYTES = _MIB
"""The default ``max_payload`` of nats-server; it counts headers and body."""

MESSAGE_MAX_BYTES = _MIB - 64 * 1024
"""Largest headers and body together that streams and buckets take. The rest of the server's limit is left for what a
dead letter adds, so that whatever can be published can also be buried. Larger things go into the bundle store."""


@dataclass(frozen=True)
class StreamSpec:
    """One event log. The oldest messages leave first when a limit is reached."""

    name: str
    subjects: tuple[str, ...]
    max_bytes: int
    max_age_seconds: float
    max_message_bytes: int = MESSAGE_MAX_BYTES


@dataclass(frozen=True)
class BucketSpec:
    """One key-value bucket holding the last value of each key.

    ``ttl_seconds`` ends an entry that is not written again in time; None keeps it.
    """

    name: str
    max_bytes: int
    ttl_seconds: float | None = None


DEVICES_TTL_SECONDS = 15.0
"""A node writes its devices every few seconds; three missed heartbeats and it is gone."""

LEADERS_TTL_SECONDS = 5.0
"""How long a fleet waits for a leader that died."""

CORDONS_KEY = "cordons"
"""Key of the bucket `policy` with the devices and nodes that operators keep tasks off, by name. Kept apart from the
inventory, whose entries expire with their node's heartbeat."""

BUCKETS = (
    BucketSpec("tasks", 256 * _MIB),
    BucketSpec("devices", 64 * _MIB, DEVICES_TTL_SECONDS),
    BucketSpec("leases", 64 * _MIB),
    BucketSpec("gangs", 64 * _MIB),
    BucketSpec("calibration", 64 * _MIB),
    BucketSpec("policy", 16 * _MIB),
    BucketSpec("leaders", 4 * _MIB, LEADERS_TTL_SECONDS),
    # How often a message was given back on purpose; kept out of its count of failures.
    BucketSpec("attempts", 16 * _MIB, _DAY_SECONDS),
)

BUNDLES = "bundles"
BUNDLES_MAX_BYTES = 1024 * _MIB


def streams(subjects: Subjects) -> tuple[StreamSpec, ...]:
    """The event logs of one prefix."""
    prefix = subjects.prefix
    return (
        StreamSpec(f"{prefix}_TASKS", (f"{prefix}.tasks.>",), 512 * _MIB, 30 * _DAY_SECONDS),
        StreamSpec(
            f"{prefix}_RUNS",
            (f"{prefix}.runs.>", f"{prefix}.estimator.>", f"{prefix}.policy.>"),
            256 * _MIB,
            365 * _DAY_SECONDS,
        ),
        StreamSpec(f"{prefix}_LOGS", (f"{prefix}.logs.>",), 256 * _MIB, 7 * _DAY_SECONDS),
        StreamSpec(f"{prefix}_DEAD", (f"{prefix}.dead.>",), 64 * _MIB, 90 * _DAY_SECONDS, PAYLOAD_MAX_BYTES),
    )


def stream_of(subjects: Subjects, subject: str) -> str | None:
    """Name of the stream that stores ``subject`` (which may hold wildcards); None for what is never stored."""
    for spec in streams(subjects):
        if any(subject.startswith(pattern.removesuffix(">")) for pattern in spec.subjects):
            return spec.name
    return None


def bucket_name(subjects: Subjects, bucket: str) -> str:
    return f"{subjects.prefix}_{bucket}"


def stream_config(spec: StreamSpec) -> api.StreamConfig:
    return api.StreamConfig(
        name=spec.name,
        subjects=list(spec.subjects),
        retention=api.RetentionPolicy.LIMITS,
        storage=api.StorageType.FILE,
        discard=api.DiscardPolicy.OLD,
        max_bytes=spec.max_bytes,
        max_age=spec.max_age_seconds,
        max_msg_size=spec.max_message_bytes,
        duplicate_window=DUPLICATE_WINDOW_SECONDS,
        allow_direct=True,
    )


def bucket_config(subjects: Subjects, spec: BucketSpec) -> api.StreamConfig:
    """A key-value bucket is a stream; this is the layout every NATS client agrees on (NATS ADR-8)."""
    name = bucket_name(subjects, spec.name)
    return api.StreamConfig(
        name=f"KV_{name}",
        subjects=[f"$KV.{name}.>"],
        retention=api.RetentionPolicy.LIMITS,
        storage=api.StorageType.FILE,
        discard=api.DiscardPolicy.NEW,
        max_bytes=spec.max_bytes,
        max_age=spec.ttl_seconds,
        max_msg_size=MESSAGE_MAX_BYTES,
        max_msgs_per_subject=1,
        duplicate_window=min(_DEFAULT_DUPLICATE_WINDOW_SECONDS, spec.ttl_seconds or _DEFAULT_DUPLICATE_WINDOW_SECONDS),
        allow_rollup_hdrs=True,
        allow_direct=True,
        deny_delete=True,
        allow_msg_ttl=True,
        # Watchers are told of what expired, instead of finding out by polling.
        subject_delete_marker_ttl=max(1.0, min(60.0, spec.ttl_seconds or 60.0)),
    )


def bundles_config(subjects: Subjects) -> api.StreamConfig:
    """The object store's stream (NATS ADR-20)."""
    name = bucket_name(subjects, BUNDLES)
    return api.StreamConfig(
        name=f"OBJ_{name}",
        subjects=[f"$O.{name}.C.>", f"$O.{name}.M.>"],
        retention=api.RetentionPolicy.LIMITS,
        storage=api.StorageType.FILE,
        discard=api.DiscardPolicy.NEW,
        max_bytes=BUNDLES_MAX_BYTES,
        duplicate_window=_DEFAULT_DUPLICATE_WINDOW_SECONDS,
        allow_rollup_hdrs=True,
        allow_direct=True,
    )
