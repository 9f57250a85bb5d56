"""How an Oarlock service hears, answers, fails, and reports on itself.

Belongs here: the bus (NATS JetStream), key-value state, code bundles, consuming and serving, dead letters, leadership,
health, metrics, traces, logs, the embedded server. Does not belong here: anything that knows what a task, a device or
a portrait is. Models are passed in; of ours this package imports at most ``oarlock_schemas``.
"""

from oarlock_runtime.bus import Bus
from oarlock_runtime.connect import connect
from oarlock_runtime.consumer import ConsumerOptions
from oarlock_runtime.context import Context
from oarlock_runtime.dead import DeadLetter, DeadLetters, Reason
from oarlock_runtime.embedded import EmbeddedServer, EmbeddedServerError
from oarlock_runtime.errors import (
    BusUnavailable,
    Contended,
    InvalidName,
    InvalidPayload,
    OarlockError,
    PayloadTooLarge,
    PermanentError,
    RemoteError,
    StaleRevision,
    TemporaryError,
)
from oarlock_runtime.kv import DELETE, Bucket, Change, Entry
from oarlock_runtime.leader import Leadership
from oarlock_runtime.logging import configure_logging, get_logger
from oarlock_runtime.messages import BusMessage
from oarlock_runtime.objects import BundleStore
from oarlock_runtime.service import Service
from oarlock_runtime.settings import RuntimeSettings
from oarlock_runtime.subjects import ANY, Subjects, escape_token, token, unescape_token
from oarlock_runtime.topology import CORDONS_KEY
from oarlock_runtime.tracing import Tracing

__all__ = [
    "ANY",
    "CORDONS_KEY",
    "DELETE",
    "Bucket",
    "BundleStore",
    "Bus",
    "BusMessage",
    "BusUnavailable",
    "Change",
    "ConsumerOptions",
    "Contended",
    "Context",
    "DeadLetter",
    "DeadLetters",
    "EmbeddedServer",
    "EmbeddedServerError",
    "Entry",
    "InvalidName",
    "InvalidPayload",
    "Leadership",
    "OarlockError",
    "PayloadTooLarge",
    "PermanentError",
    "Reason",
    "RemoteError",
    "RuntimeSettings",
    "Service",
    "StaleRevision",
    "Subjects",
    "TemporaryError",
    "Tracing",
    "configure_logging",
    "connect",
    "escape_token",
    "get_logger",
    "token",
    "unescape_token",
]
