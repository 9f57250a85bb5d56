"""What the other members of our gangs have written, and whether their nodes are still there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from oarlock_launcher.core.events import GangSeen
from oarlock_launcher.core.run import Key
from oarlock_launcher.handlers.site import Site
from oarlock_launcher.ports import Channel
from oarlock_runtime import get_logger
from oarlock_schemas import GangBook

log = get_logger("launcher")

_LOOK_SECONDS = 5.0


class Gangs:
    """The gangs of which ``site`` runs the part of ``node``.

    A node's devices leave the inventory when its heartbeat stops. Where ours are there and another's are not, its
    launcher is asked in the book. If it is silent too, its part is given up after ``lost_seconds`` in all: the others
    end, and its devices may be booked again, by a later fence. Should the node come back, its launcher reads that the
    part was given up, and ends it before anything else starts.
    """

    def __init__(
        self, site: Site, node: str, channel: Channel, clock: Callable[[], float], lost_seconds: float
    ) -> None:
        self._site = site
        self._node = node
        self._channel = channel
        self._clock = clock
        self._lost_seconds = lost_seconds
        self._open: dict[Key, GangBook] = {}
        self._missing_since: dict[str, float] = {}
        self._asked: set[tuple[Key, str]] = set()

    async def follow(self) -> None:
        """Tell the site of every change of its gangs' books, those of before its start included."""
        await self._site.recovered()
        async for key, book in self._channel.gangs():
            if self._node not in book.nodes:
                continue
            if book.told:
                self._open.pop(key, None)
            else:
                self._open[key] = book
            self._site.happened(GangSeen(key, book))
            mine = book.members.get(self._node)
            if mine is not None and mine.asked_at is not None:
                await self._channel.answer_gang(key)

    async def keep_looking(self) -> None:
        """Give up the parts of nodes that are gone."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS if self._lost_seconds > _LOOK_SECONDS else self._lost_seconds / 4)
            await self._look()

    async def _look(self) -> None:
        waited_for = {
            (key, node)
            for key, book in self._open.items()
            for node, member in book.members.items()
            if node != self._node and member.phase == "ready"
        }
        present = await self._channel.nodes(self._site.name) if waited_for else set()
        if self._node not in present:
            # Nobody reports devices here either: that says nothing of the others.
            self._missing_since.clear()
            return
        missing = {node for _, node in waited_for} - present
        now = self._clock()
        self._missing_since = {node: self._missing_since.get(node, now) for node in missing}
        for key, node in sorted((key, node) for key, node in waited_for if node in missing):
            asked = self._open[key].members[node].asked_at is not None
            if not asked and (key, node) in self._asked:
                # It answered: only its telemetry is away.
                self._asked.discard((key, node))
                self._missing_since[node] = now
            waited = now - self._missing_since[node]
            if not asked and waited >= self._lost_seconds / 2:
                self._asked.add((key, node))
                await self._channel.ask_member(key, node)
            elif asked and waited >= self._lost_seconds:
                log.warning("a node's part of a run is given up", task_id=key[0], lost_node=node)
                why = f"the node has reported no devices for {self._lost_seconds:g} s, and its launcher does not answer"
                await self._channel.lose_member(key, node, why)
