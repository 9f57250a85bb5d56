"""A reservation or a maintenance window, as operators write it into the policy document."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, model_validator

from oarlock_schemas.base import Message, Token


class Window(Message):
    """Devices kept for an owner, or for nobody, for some time (bucket `policy`, key `matcher`, `windows.{name}`).

    Sites, nodes and kinds narrow each other; devices are added. The whole fleet must be asked for by ``everything``.
    """

    begins_at: str = Field(description="RFC 3339, with its offset from UTC.", examples=["2026-12-01T08:00:00Z"])
    ends_at: str = Field(description="RFC 3339; later than ``begins_at``.", examples=["2026-12-01T12:00:00Z"])
    owner: Token | None = Field(None, description="Whose tasks may use the devices; null: nobody's (maintenance).")
    devices: list[Token] = Field(default_factory=list, max_length=4096, description="Uids.")
    nodes: list[Token] = Field(default_factory=list, max_length=4096)
    sites: list[Token] = Field(default_factory=list, max_length=256)
    kinds: list[str] = Field(default_factory=list, max_length=256, examples=[["A100"]])
    everything: bool = False
    reason: str | None = Field(None, max_length=256)

    @model_validator(mode="after")
    def _sane(self) -> Window:
        named = bool(self.devices or self.nodes or self.sites or self.kinds)
        if named == self.everything:
            raise ValueError("name devices, nodes, sites or kinds; or say everything, and name none")
        if self.ends <= self.begins:
            raise ValueError("it must end later than it begins")
        return self

    @property
    def begins(self) -> float:
        """Seconds since the epoch."""
        return seconds_of(self.begins_at)

    @property
    def ends(self) -> float:
        """Seconds since the epoch."""
        return seconds_of(self.ends_at)


def seconds_of(text: str) -> float:
    """RFC 3339 as seconds since the epoch.

    Raises:
        ValueError: no time, or one without an offset from UTC.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no RFC 3339 time, such as 2026-12-01T08:00:00Z") from None
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC; end it with Z or +08:00")
    return time.timestamp()
