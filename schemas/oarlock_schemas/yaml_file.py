"""Task files in YAML, from people and from strangers."""

from __future__ import annotations

from typing import Any

import yaml

from oarlock_schemas.base import MAX_MESSAGE_BYTES, Fault, InvalidMessage


class _Loader(yaml.SafeLoader):
    """Plain values only, and no aliases: a kilobyte of them can stand for gigabytes. Times stay text, as in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012  (PyYAML's own declaration of it)
        first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not taken", event.start_mark)
        return super().compose_node(parent, index)


def read_yaml(data: bytes | str) -> dict[str, Any]:
    """The mapping that a YAML (or JSON) document holds.

    Raises:
        InvalidMessage: too large, not YAML, holds aliases, nested too deeply, or no mapping.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise InvalidMessage([Fault("$", f"is {len(data)} bytes; at most {MAX_MESSAGE_BYTES} are read")])
    try:
        document = yaml.load(data, Loader=_Loader)  # noqa: S506 (derives from SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidMessage([Fault("$", f"is not YAML: {error or type(error).__name__}")]) from None
    if not isinstance(document, dict):
        raise InvalidMessage([Fault("$", f"must be a mapping, not {type(document).__name__}")])
    return document
