"""Writes docs/events.md from the catalogue: ``python docs/events.py``; with ``--check``, exit 1 when it is stale."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from oarlock_runtime import Subjects
from oarlock_runtime.topology import BUCKETS, BUNDLES, BUNDLES_MAX_BYTES, streams
from oarlock_schemas.base import Message
from oarlock_schemas.catalogue import CHANNELS, STATES, Channel

FILE = Path(__file__).parent / "events.md"
_MIB = 2**20
_DAY_SECONDS = 86_400

_HEAD = """\
# Events: everything on the bus

*Written by `python docs/events.py` from `oarlock_schemas.catalogue` and `oarlock_runtime.topology`; do not edit.*

Every subject begins with the prefix `oarlock.` (`OARLOCK_PREFIX`). Bodies are JSON; their schemas lie in
[`schemas/json`](../schemas/json), with all of this as an [AsyncAPI 3 document](../schemas/json/asyncapi.json).
What others publish is read tolerantly: unknown fields are ignored and reported, defaults are filled in.

所有主题均以前缀 `oarlock.` 开头, 消息体为 JSON, 模式见 `schemas/json`。
任何程序都可以直接向 `oarlock.tasks.submitted` 发布任务。

## Submitting from any program

Publish to `oarlock.tasks.submitted` (fire and forget), or send a request to `oarlock.submit` (answers the id, or every
fault with its JSON path):

```
nats pub oarlock.tasks.submitted '{"source": {"inline": "import numpy as np\\nprint(np.ones(3).sum())"}}'
nats req oarlock.submit "$(jq -n --rawfile code train.py '{source: {inline: $code}}')"
```

## Headers

All are optional on what others publish, and set on everything that Oarlock publishes.

| header | meaning |
|---|---|
| `Nats-Msg-Id` | identity of the event, `{task_id}:{event}:{attempt}`; stored once per id within ten minutes |
| `traceparent` | W3C trace context; one trace from submission to run record |
| `ce-id` `ce-type` `ce-source` `ce-time` | CloudEvents 1.0, binary mode |

Delivery is at least once, so a reader of its own must be idempotent: an event's identity is its message id.
"""


def _summary(model: type[Message]) -> str:
    first = " ".join((model.__doc__ or "").split("\n\n")[0].split()).replace("``", "`")
    # The subject stands in a column of its own.
    return re.sub(r"^`[^`]*`( \([^)]*\))?: ", "", first)


def _schema(model: type[Message]) -> str:
    return f"[{model.__name__}](../schemas/json/{model.__name__}.json)"


def _row(channel: Channel) -> str:
    body = _schema(channel.model)
    if channel.header is not None:
        body = f"the original message; {body} in the header `{channel.header}`"
    if channel.reply is not None:
        body += f", answered by {_schema(channel.reply)}"
    heard = ", ".join(channel.consumers) or "whoever wants to know"
    stored = channel.stream or "not stored"
    cells = (f"`{channel.subject}`", ", ".join(channel.publishers), heard, body, stored, _summary(channel.model))
    return f"| {' | '.join(cells)} |"


def document() -> str:
    """The page."""
    lines = [_HEAD, "## Subjects", "", "| subject | published by | heard by | body | stream | what it says |"]
    lines += ["|---|---|---|---|---|---|", *(_row(channel) for channel in CHANNELS), ""]
    lines += ["## Streams", "", "| stream | subjects | keeps at most | for at most |", "|---|---|---|---|"]
    for spec in streams(Subjects()):
        subjects = ", ".join(f"`{subject}`" for subject in spec.subjects)
        days = round(spec.max_age_seconds / _DAY_SECONDS)
        lines.append(f"| `{spec.name}` | {subjects} | {spec.max_bytes // _MIB} MiB | {days} days |")
    lines += [
        "",
        "The oldest messages leave first. An administrator's larger limits, replicas and placement are kept.",
        "",
        "## State",
        "",
        "Key-value buckets; values move by compare-and-set on their revision only.",
        "",
        "| bucket | at most | an entry ends |",
        "|---|---|---|",
    ]
    for bucket in BUCKETS:
        ends = "never" if bucket.ttl_seconds is None else f"{bucket.ttl_seconds:g} s after its last write"
        lines.append(f"| `oarlock_{bucket.name}` | {bucket.max_bytes // _MIB} MiB | {ends} |")
    lines += [
        "",
        f"The object store `oarlock_{BUNDLES}` holds code bundles, at most {BUNDLES_MAX_BYTES // _MIB} MiB.",
        "",
        "What the buckets hold:",
        "",
        *(f"- {_schema(model)}: {_summary(model)}" for model in STATES),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit status."""
    text = document()
    if "--check" in arguments:
        stale = not FILE.exists() or FILE.read_text(encoding="utf-8") != text
        sys.stdout.write(f"stale: {FILE}\n" if stale else "")
        return int(stale)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
