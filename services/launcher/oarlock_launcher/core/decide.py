"""The life of a site's runs.

accepted → running → (stopping →) ended → reported. A member of a gang waits in accepted for the others. A run is
written down before it is started and before its end is told, so that a launcher that dies at any point goes on from
what it wrote: what was accepted and is not found in the runtime is started, what is found is followed, what has ended
is told again (under the same message id).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from oarlock_launcher.core import effects as do
from oarlock_launcher.core import events as on
from oarlock_launcher.core.effects import Effect
from oarlock_launcher.core.fence import judge
from oarlock_launcher.core.gang import JOIN_PATIENCE_SECONDS, failed_elsewhere, rendezvous
from oarlock_launcher.core.outcome import Understood, understand
from oarlock_launcher.core.run import Key, Run, SiteState, StopReason

KEEP_REPORTED_SECONDS = 86_400.0
"""How long an ended run is remembered. A placement is redelivered within minutes; a day leaves room for an outage."""

RETRY_SUPERSEDED_SECONDS = 2.0
"""How soon a placement is looked at again while the run it supersedes ends."""

Decision = tuple[SiteState, list[Effect]]


def decide(state: SiteState, event: on.Event, now: float) -> Decision:
    """What becomes of the site when ``event`` happens at ``now`` (seconds since the epoch)."""
    match event:
        case on.Placed():
            return _placed(state, event, now)
        case on.Started():
            return _started(state, event, now)
        case on.StartFailed():
            return _end(state, event.key, Understood("error", event.message), discard=True)
        case on.Exited():
            return _exited(state, event)
        case on.Cancel():
            return _cancel(state, event, now)
        case on.GangSeen():
            return _gang_seen(state, event)
        case on.Recovered():
            return _recovered(state, event)
        case on.LaunchTold():
            return _launch_told(state, event.key)
        case on.Reported():
            return _reported(state, event.key)
        case on.Tick():
            return _tick(state, now)


def _placed(state: SiteState, event: on.Placed, now: float) -> Decision:
    run = event.run
    known = state.runs.get(run.key)
    if known is not None:
        # Redelivered. Only an end that was never told needs anything; telling is idempotent.
        return state, [do.TellFinished(known)] if known.phase == "ended" else []
    if run.task_id in state.cancelled or event.final == "cancelled":
        ended = run.to("ended", outcome="cancelled", message="cancelled before it was started")
        return state.with_run(ended), [do.Save(ended), do.TellFinished(ended)]
    if event.foreign is not None:
        return _refuse(state, run, event.foreign)
    if event.final is not None:
        return _refuse(state, run, f"the task is {event.final}")
    if event.newer_attempt is not None:
        return _refuse(state, run, f"attempt {event.newer_attempt} of the task has been placed since")
    verdict = judge(run, (other for other in state.runs.values() if other.outcome != "refused"), event.unheld)
    if verdict.refusal is not None:
        return _refuse(state, run, verdict.refusal)
    if verdict.superseded:
        effects: list[Effect] = []
        for other in verdict.superseded:
            state, more = _ask_to_stop(state, other, "lost", f"its lease was given to task {run.task_id}")
            effects += more
        names = ", ".join(other.task_id for other in verdict.superseded)
        return state, [*effects, do.Defer(RETRY_SUPERSEDED_SECONDS, f"task {names} must end first")]
    accepted = run.to("accepted", accepted_at_seconds=now)
    return state.with_run(accepted), [do.Save(accepted), _begin(accepted)]


def _begin(run: Run) -> Effect:
    return do.Join(run) if run.waits_for_others else do.Start(run)


def _gang_seen(state: SiteState, event: on.GangSeen) -> Decision:
    run = state.runs.get(event.key)
    if run is None or run.gang is None:
        return state, []
    if not run.active:
        # Closed in our name after our own part was told: by giving up a node, or before a restart.
        untold = event.book.closed_by == run.gang.node and not event.book.told
        return state, [do.TellFinished(run)] if untold else []
    failed = failed_elsewhere(event.book, run.gang.node)
    if failed is not None:
        return _ask_to_stop(state, run, "stopped", failed)
    if not run.waits_for_others:
        return state, []
    try:
        met = rendezvous(event.book)
    except ValueError as error:
        return _end(state, run.key, Understood("error", str(error)))
    if met is None:
        return state, []
    run = run.to("accepted", rendezvous=met)
    return state.with_run(run), [do.Save(run), do.Start(run)]


def _refuse(state: SiteState, run: Run, message: str) -> Decision:
    refused = run.to("ended", outcome="refused", message=message)
    return state.with_run(refused), [do.Save(refused), do.TellFinished(refused)]


def _started(state: SiteState, event: on.Started, now: float) -> Decision:
    run = state.runs.get(event.key)
    if run is None or run.started_at_seconds is not None or not run.active:
        return state, []
    known = {
        "run_id": event.run_id,
        "pid": event.pid,
        "command": event.command,
        "docker_command": event.docker_command,
        "started_at_seconds": now,
    }
    # Cancelled while it was being started: the launch is told all the same, since it did happen.
    stopping = run.phase == "stopping"
    run = run.to("stopping" if stopping else "running", **known)
    effects: list[Effect] = [do.Save(run), do.TellLaunched(run), do.Follow(run)]
    return state.with_run(run), [*effects, do.Stop(run.key)] if stopping else effects


def _exited(state: SiteState, event: on.Exited) -> Decision:
    run = state.runs.get(event.key)
    if run is None or not run.active:
        return state, []
    understood = understand(event.ending, run.stop_reason, run.stop_note, event.oom_line)
    return _end(state.with_run(run.to(run.phase, ending=event.ending)), event.key, understood)


def _end(state: SiteState, key: Key, understood: Understood, *, discard: bool = False) -> Decision:
    run = state.runs.get(key)
    if run is None or not run.active:
        return state, []
    if discard and run.stop_reason is not None:
        # It was to be stopped anyway: that its start failed is not what ended it.
        understood = Understood(run.stop_reason, run.stop_note)
    run = run.to("ended", outcome=understood.outcome, message=understood.message)
    effects: list[Effect] = [do.Save(run), do.TellFinished(run)]
    return state.with_run(run), [*effects, do.Discard(key)] if discard else effects


def _cancel(state: SiteState, event: on.Cancel, now: float) -> Decision:
    if event.preempt_attempt is not None:
        run = state.runs.get((event.task_id, event.preempt_attempt))
        return (state, []) if run is None else _ask_to_stop(state, run, "preempted", event.reason or "preempted")
    note = f"cancelled by {event.by}" + (f": {event.reason}" if event.reason else "")
    state = _with_cancelled(state, event.task_id, now)
    effects: list[Effect] = [do.RememberCancel(event.task_id)]
    for run in state.of_task(event.task_id):
        state, more = _ask_to_stop(state, run, "cancelled", note)
        effects += more
    return state, effects


def _ask_to_stop(state: SiteState, run: Run, reason: StopReason, note: str) -> Decision:
    if run.phase not in ("accepted", "running"):
        return state, []
    if run.waits_for_others:
        return _end(state, run.key, Understood(reason, note))
    stopping = run.to("stopping", stop_reason=reason, stop_note=note)
    return state.with_run(stopping), [do.Save(stopping), do.Stop(run.key)]


def _recovered(state: SiteState, event: on.Recovered) -> Decision:
    run = event.run
    state = state.with_run(run)
    # It had started, and whether anybody was told so is not known.
    untold: list[Effect] = [] if run.launch_told or run.started_at_seconds is None else [do.TellLaunched(run)]
    if run.phase == "ended":
        return state, [*untold, do.TellFinished(run)]
    if run.phase == "reported":
        return state, []
    if event.present:
        # Found without a start on record: the launcher died before it could write so, and starting finds it.
        effects: list[Effect] = [do.Start(run)] if run.started_at_seconds is None else [*untold, do.Follow(run)]
        return state, [*effects, do.Stop(run.key)] if run.phase == "stopping" else effects
    if run.started_at_seconds is None and run.phase == "accepted":
        return state, [_begin(run)]
    # It had started (or was to be stopped), and nothing of it is left to ask.
    reason = run.stop_reason or "lost"
    note = run.stop_note or "nothing of the run was found after the launcher's restart; its exit code is not known"
    ended = run.to("ended", outcome=reason, message=note)
    return state.with_run(ended), [do.Save(ended), *untold, do.TellFinished(ended)]


def _launch_told(state: SiteState, key: Key) -> Decision:
    run = state.runs.get(key)
    if run is None or run.launch_told:
        return state, []
    run = run.to(run.phase, launch_told=True)
    return state.with_run(run), [do.Save(run)]


def _reported(state: SiteState, key: Key) -> Decision:
    run = state.runs.get(key)
    if run is None or run.phase != "ended":
        return state, []
    # What was told need not be kept: runs are remembered for a day, and there may be thousands.
    ending = None if run.ending is None else replace(run.ending, log_tail=())
    run = run.to("reported", ending=ending)
    return state.with_run(run), [do.Save(run), do.Discard(key)]


def _tick(state: SiteState, now: float) -> Decision:
    effects: list[Effect] = []
    for run in list(state.runs.values()):
        if run.phase == "running" and run.timeout_seconds is not None and run.started_at_seconds is not None:
            if now - run.started_at_seconds >= run.timeout_seconds:
                note = f"stopped after its longest run of {run.timeout_seconds:g} s"
                state, more = _ask_to_stop(state, run, "timeout", note)
                effects += more
        elif run.waits_for_others and now - run.accepted_at_seconds >= JOIN_PATIENCE_SECONDS:
            note = f"not every node of the gang answered within {JOIN_PATIENCE_SECONDS:g} s"
            state, more = _end(state, run.key, Understood("refused", note))
            effects += more
        elif run.phase == "reported" and now - _ended_at(run) > KEEP_REPORTED_SECONDS:
            state = state.without(run.key)
            effects.append(do.Forget(run))
    for task_id, at in list(state.cancelled.items()):
        if now - at > KEEP_REPORTED_SECONDS:
            state = _without_cancelled(state, task_id)
            effects.append(do.ForgetCancel(task_id))
    return state, effects


def _ended_at(run: Run) -> float:
    known = run.ending.ended_at_seconds if run.ending else None
    return known or run.started_at_seconds or run.accepted_at_seconds


def _with_cancelled(state: SiteState, task_id: str, now: float) -> SiteState:
    return SiteState(state.runs, MappingProxyType({**state.cancelled, task_id: now}))


def _without_cancelled(state: SiteState, task_id: str) -> SiteState:
    return SiteState(state.runs, MappingProxyType({k: v for k, v in state.cancelled.items() if k != task_id}))
