"""Writes ``schemas/json``: a JSON Schema for each message and an AsyncAPI 3 document of the bus.

``python -m oarlock_schemas.export FOLDER`` writes; with ``--check`` it only compares, and exits 1 when stale.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from oarlock_schemas.base import Message
from oarlock_schemas.catalogue import CHANNELS, STATES, Channel

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = "0.1.0"


def models() -> list[type[Message]]:
    """Every model that is exported, once, by name."""
    found = {model.__name__: model for model in STATES}
    for channel in CHANNELS:
        for model in (channel.model, channel.reply):
            if model is not None:
                found[model.__name__] = model
    return [found[name] for name in sorted(found)]


def documents() -> dict[str, str]:
    """The files of ``schemas/json`` by name."""
    files = {}
    for model in models():
        schema = {"$schema": DIALECT, "$id": f"urn:oarlock:{model.__name__}", **model.model_json_schema()}
        files[f"{model.__name__}.json"] = _text(schema)
    files["asyncapi.json"] = _text(asyncapi())
    return files


def asyncapi() -> dict[str, Any]:
    """The bus as an AsyncAPI 3.0.0 document."""
    _, definitions = models_json_schema(
        [(model, "validation") for model in models()], ref_template="#/components/schemas/{model}"
    )
    channels, operations = {}, {}
    for channel in CHANNELS:
        channels[channel.name] = _channel(channel)
        for service in channel.publishers:
            operations[f"{service}.send.{channel.name}"] = _operation("send", channel)
        for service in channel.consumers:
            operations[f"{service}.receive.{channel.name}"] = _operation("receive", channel)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Oarlock",
            "version": VERSION,
            "description": "Everything that services say to each other, on NATS JetStream. Subjects follow a prefix "
            "(default `oarlock.`). Headers carry Nats-Msg-Id, W3C traceparent and CloudEvents attributes, all "
            "optional on what others publish.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {
            "messages": {model.__name__: _message(model) for model in models()},
            "schemas": definitions["$defs"],
        },
    }


def _message(model: type[Message]) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{model.__name__}"}
    header = next((c.header for c in CHANNELS if c.model is model and c.header), None)
    carried = (
        {"payload": reference} if header is None else {"headers": {"type": "object", "properties": {header: reference}}}
    )
    summary = (model.__doc__ or "").strip().split("\n")[0]
    return {"name": model.__name__, "title": model.__name__, "summary": summary, **carried}


def _channel(channel: Channel) -> dict[str, Any]:
    body: dict[str, Any] = {
        "address": f"oarlock.{channel.subject}",
        "messages": {m.__name__: {"$ref": f"#/components/messages/{m.__name__}"} for m in _messages(channel)},
        "description": f"Stream {channel.stream}." if channel.stream else "Core NATS; not stored.",
    }
    tokens = re.findall(r"{(\w+)}", channel.subject)
    if tokens:
        body["parameters"] = {token: {"description": f"The {token.replace('_', ' ')}."} for token in tokens}
    return body


def _messages(channel: Channel) -> list[type[Message]]:
    return [channel.model, *([channel.reply] if channel.reply else [])]


def _operation(action: str, channel: Channel) -> dict[str, Any]:
    reference = f"#/channels/{channel.name}"
    operation: dict[str, Any] = {
        "action": action,
        "channel": {"$ref": reference},
        "messages": [{"$ref": f"{reference}/messages/{channel.model.__name__}"}],
    }
    if channel.reply:
        operation["reply"] = {
            "channel": {"$ref": reference},
            "messages": [{"$ref": f"{reference}/messages/{channel.reply.__name__}"}],
        }
    return operation


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def stale(folder: Path) -> list[str]:
    """Names of files in ``folder`` that are missing, changed or left over."""
    wanted = documents()
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit status."""
    folder = Path(next((a for a in arguments if not a.startswith("-")), "schemas/json"))
    old = stale(folder)
    if "--check" in arguments:
        sys.stdout.write("".join(f"stale: {folder / name}\n" for name in old))
        return 1 if old else 0
    folder.mkdir(parents=True, exist_ok=True)
    wanted = documents()
    for name in old:
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
