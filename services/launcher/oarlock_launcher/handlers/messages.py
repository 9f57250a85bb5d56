"""What comes in: placements and cancellations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from pydantic import BaseModel, ConfigDict, RootModel

from oarlock_launcher.core import events as on
from oarlock_launcher.core.record import final_if_failed
from oarlock_launcher.core.run import DeviceGrant, Gang, Run
from oarlock_launcher.handlers.site import Site
from oarlock_launcher.ports import Channel
from oarlock_runtime import Context, InvalidName, PermanentError, TemporaryError, token
from oarlock_schemas import FINAL, InvalidMessage, TaskPlaced, read

_EARLY = frozenset({"submitted", "profiled", "queued"})
_EARLY_SECONDS = 0.2
_EARLY_DELIVERIES = 25
_READY_SECONDS = 10.0
_READY_AGAIN_SECONDS = 5.0


class AnyObject(RootModel[dict[str, Any]]):
    """A JSON object, to be read tolerantly: a newer matcher may say more than we know."""


class CancelRequest(BaseModel):
    """A cancellation as anyone may publish it, an empty object included: the subject names the task."""

    model_config = ConfigDict(extra="ignore")

    task_id: str | None = None
    by: str = "anonymous"
    reason: str | None = None
    preempt_attempt: int | None = None


class Handlers:
    """Handlers of one launcher.

    Args:
        site: whose runs these are.
        node: this machine; real devices must be on it.
        sites: every site whose placements come here (simulated ones beside our own).
        channel: leases and task records.
        clock: seconds since the epoch.
        shared: whether other launchers take the placements of the site's other nodes.
        simulates: whether simulated devices are ours, where the site is shared.
    """

    def __init__(
        self,
        site: Site,
        node: str,
        sites: Collection[str],
        channel: Channel,
        clock: Callable[[], float],
        *,
        shared: bool = False,
        simulates: bool = True,
    ) -> None:
        self._site = site
        self._node = node
        self._sites = frozenset(sites)
        self._channel = channel
        self._clock = clock
        self._shared = shared
        self._simulates = simulates

    async def on_placed(self, message: AnyObject, context: Context) -> None:
        """`tasks.placed.{site}.{task_id}`."""
        try:
            placed, ignored = read(TaskPlaced, message.root)
        except InvalidMessage as error:
            raise PermanentError(f"not a placement: {error}", fix="publish TaskPlaced of oarlock_schemas") from error
        if ignored:
            context.log.info("unknown fields of a placement ignored", fields=ignored)
        if placed.site not in self._sites:
            raise PermanentError(f"the placement is for site {placed.site}, not for {', '.join(sorted(self._sites))}")
        if not self._ours(placed):
            return
        run = run_of(placed, self._clock(), self._node if self._shared else None)
        await self._ready()
        known = await self._channel.task_state(placed.task_id)
        state, attempt = known or (None, 0)
        if state in _EARLY and attempt <= placed.attempt and context.delivery_count < _EARLY_DELIVERIES:
            # Its matcher publishes before it has moved the record; the move is on its way.
            raise TemporaryError(f"the task's record still says {state}", _EARLY_SECONDS)
        known_here = run.key in self._site.state.runs
        unheld = () if known_here else await self._channel.unheld(run)
        if state in FINAL and not known_here and len(unheld) == len(run.devices):
            # Long over: a durable that was created later hears the site's whole past.
            return
        event = on.Placed(
            run,
            foreign=self._foreign(run),
            unheld=unheld,
            final=state if state in FINAL else None,
            newer_attempt=attempt if attempt > placed.attempt else None,
        )
        deferred = self._site.placed(placed, event)
        if deferred is not None:
            raise TemporaryError(deferred.why, deferred.delay_seconds)

    async def on_cancel(self, message: CancelRequest, context: Context) -> None:
        """`tasks.cancel.{task_id}`."""
        task_id = context.subject.rpartition(".")[2]
        if message.task_id not in (None, task_id):
            raise PermanentError(f"the subject names task {task_id}, the body {message.task_id}")
        try:
            token(task_id, "task id")
        except InvalidName as error:
            raise PermanentError(str(error)) from error
        reason = None if message.reason is None else message.reason[:1024]
        await self._ready()
        self._site.happened(on.Cancel(task_id, message.by[:128], reason, message.preempt_attempt))

    async def _ready(self) -> None:
        """Take nothing before what an earlier launcher left is taken over: it may be the very same run.

        Raises:
            TemporaryError: the site's runtime does not answer yet.
        """
        if not await self._site.ready(_READY_SECONDS):
            raise TemporaryError("the site's runtime does not answer", _READY_AGAIN_SECONDS)

    def _ours(self, placed: TaskPlaced) -> bool:
        """Whether any part of it is for us; where we have the site alone, all is, if only to be refused."""
        if not self._shared:
            return True
        if any(device.simulated for device in placed.devices):
            return self._simulates
        return any(device.node == self._node for device in placed.devices)

    def _foreign(self, run: Run) -> str | None:
        """Why the placement cannot be ours; None where it can."""
        if any(device.simulated for device in run.devices):
            return None if run.simulated else "the placement mixes simulated and real devices"
        nodes = {device.node for device in run.devices}
        if len(nodes) > 1 and self._node in nodes:
            return (
                f"the placement is for nodes {', '.join(sorted(nodes))}, and this launcher has the site to itself: set "
                "OARLOCK_SITE_SHARED on each of them"
            )
        if nodes != {self._node}:
            return f"the placement is for node {', '.join(sorted(nodes))}; this launcher starts runs on {self._node}"
        return None


def run_of(placed: TaskPlaced, now: float, node: str | None = None) -> Run:
    """The run a placement asks for; with ``node``, that node's part where it is for several."""
    gang = None if node is None else gang_of(placed, node)
    return Run(
        task_id=placed.task_id,
        attempt=placed.attempt,
        devices=tuple(
            DeviceGrant(
                uid=device.uid,
                kind=device.kind,
                vendor=device.vendor,
                node=device.node,
                fence=device.fence,
                index=device.index,
                simulated=device.simulated,
            )
            for device in placed.devices
            if gang is None or device.node == gang.node
        ),
        gang=gang,
        exclusive=placed.exclusive,
        accepted_at_seconds=now,
        timeout_seconds=placed.task.scheduler.run_timeout_seconds,
        predicted_bytes=placed.predicted_bytes,
        predicted_step_seconds=placed.predicted_step_seconds,
        simulated=all(device.simulated for device in placed.devices),
        final_if_failed=final_if_failed(attempt=placed.attempt, retries=placed.task.retries),
        retry_on_oom=placed.task.resource_policy.allow_retry_on_oom,
    )


def gang_of(placed: TaskPlaced, node: str) -> Gang | None:
    """What ``node``'s part belongs to; None where the placement is for one node, or for simulated ones."""
    on_nodes = Counter(device.node for device in placed.devices)
    if len(on_nodes) < 2 or any(device.simulated for device in placed.devices):
        return None
    nodes = tuple(sorted(on_nodes))
    uids = tuple(device.uid for name in nodes for device in placed.devices if device.node == name)
    return Gang(node, nodes, tuple(on_nodes[name] for name in nodes), uids)
