"""A run over several nodes: all of its members or none.

Each node's launcher writes its own part into one book by compare-and-set. Members start when all are ready. When one
ends badly, those that were not heard of are closed in the same write, so they can never begin, and the others stop.
Whoever's write completes the book tells the end, which is so told once.
"""

from __future__ import annotations

from dataclasses import replace

from oarlock_launcher.core.run import Ending, Gang, Rendezvous, Run
from oarlock_schemas import GangBook, GangMember

JOIN_PATIENCE_SECONDS = 300.0
"""How long members wait, holding their devices, for a node whose launcher says nothing."""

TAIL_BYTES = 256 * 1024
"""Last output of all members together in the book, which travels as one message of at most 960 KiB."""

_WORST_FIRST = ("cancelled", "preempted", "timeout", "oom", "lost", "error", "refused", "ok")
"""What was asked for goes before what followed from it. Of failures, the one goes first that makes the others fail: a
member that runs out of memory or vanishes breaks its peers' connections, which they report as an error."""

_LOOPBACK = ("127.", "::1", "localhost")


def join(book: GangBook | None, run: Run, address: str, ports: tuple[int, ...], master_port: int) -> GangBook | None:
    """The book with this member ready; None where it is there already, or was closed."""
    gang = _gang(run)
    if book is not None and gang.node in book.members:
        return None
    member = GangMember(
        phase="ready", device_uids=_uids(run), address=address, ports=list(ports), master_port=master_port
    )
    return _with(book or _new(run), gang.node, member)


def end(book: GangBook | None, run: Run, started_at: str | None, finished_at: str) -> GangBook | None:
    """The book with this member's end; None where there is nothing to write.

    A run that had met the others and finds no book was told of long ago.
    """
    gang = _gang(run)
    if book is None and run.rendezvous is not None:
        return None
    book = book or _new(run)
    known = book.members.get(gang.node)
    if known is not None and known.phase == "ended":
        return None
    ending = run.ending or Ending()
    member = GangMember.model_validate(
        {
            **(known.model_dump() if known else {}),
            "phase": "ended",
            "device_uids": _uids(run),
            "outcome": run.outcome,
            "message": run.message,
            "exit_code": ending.exit_code,
            "peak_process_bytes": ending.peak_process_bytes,
            "started_at": started_at,
            "finished_at": finished_at,
            "log_tail": _tail(ending.log_tail, TAIL_BYTES // len(book.nodes)),
        }
    )
    book = _with(book, gang.node, member)
    if run.outcome != "ok":
        for node in book.nodes:
            if node not in book.members:
                closed = GangMember(
                    phase="ended",
                    outcome="stopped",
                    message=f"never begun: the part on {gang.node} ended: {run.outcome}",
                    finished_at=finished_at,
                )
                book = _with(book, node, closed)
    return _closed(book, gang.node)


def ask(book: GangBook | None, node: str, at: str) -> GangBook | None:
    """The book with the question whether ``node`` is there; None where it was asked, or there is nothing to ask."""
    known = None if book is None else book.members.get(node)
    if book is None or known is None or known.phase == "ended" or known.asked_at is not None:
        return None
    return _with(book, node, known.model_copy(update={"asked_at": at}))


def answer(book: GangBook | None, node: str) -> GangBook | None:
    """The book with ``node``'s answer that it is there; None where nobody asks."""
    known = None if book is None else book.members.get(node)
    if book is None or known is None or known.phase == "ended" or known.asked_at is None:
        return None
    return _with(book, node, known.model_copy(update={"asked_at": None}))


def lose(book: GangBook | None, node: str, by: str, message: str, at: str) -> GangBook | None:
    """The book with ``node``'s part given up as lost; None where it answered, has ended, or never began."""
    known = None if book is None else book.members.get(node)
    if book is None or known is None or known.phase == "ended" or known.asked_at is None:
        return None
    lost = known.model_copy(update={"phase": "ended", "outcome": "lost", "message": message, "finished_at": at})
    return _closed(_with(book, node, lost), by)


def rendezvous(book: GangBook) -> Rendezvous | None:
    """Where the members meet, once all have been ready; a short one may have ended since.

    Raises:
        ValueError: they cannot reach each other by the addresses they gave.
    """
    members = [book.members.get(node) for node in book.nodes]
    ready = [m for m in members if m is not None and m.address is not None]
    if len(ready) < len(book.nodes) or ready[0].master_port is None:
        return None
    addresses = tuple(str(member.address) for member in ready)
    inner = [node for node, address in zip(book.nodes, addresses, strict=True) if address.startswith(_LOOPBACK)]
    if inner and len(inner) < len(addresses):
        raise ValueError(
            f"node {', '.join(inner)} gives an address that only itself can reach: set OARLOCK_NODE_ADDRESS there"
        )
    return Rendezvous(addresses, tuple(tuple(member.ports) for member in ready), ready[0].master_port)


def failed_elsewhere(book: GangBook, node: str) -> str | None:
    """Why ``node``'s part must stop: what became of another; None where nothing has failed."""
    for name in book.nodes:
        member = book.members.get(name)
        if name != node and member is not None and member.phase == "ended" and member.outcome not in ("ok", "stopped"):
            return f"the part on {name} ended: {member.outcome}"
    mine = book.members.get(node)
    return (mine.message or "closed by another member") if mine is not None and mine.phase == "ended" else None


def whole(book: GangBook, run: Run) -> Run:
    """The end of the task as one run's: the worst outcome of its members, in the words of the first that had it."""
    ended = [(node, book.members[node]) for node in book.nodes]
    outcome = next((o for o in _WORST_FIRST if any(m.outcome == o for _, m in ended)), "lost")
    node, worst = next(((n, m) for n, m in ended if m.outcome == outcome), ended[0])
    message = worst.message if outcome == "ok" or worst.message is None else f"on {node}: {worst.message}"
    peaks = [m.peak_process_bytes for _, m in ended if m.peak_process_bytes is not None]
    ending = Ending(
        exit_code=worst.exit_code,
        ended_at_seconds=run.ending.ended_at_seconds if run.ending else None,
        peak_process_bytes=max(peaks, default=None),
        log_tail=tuple(worst.log_tail),
    )
    return replace(run, outcome=outcome, message=message, ending=ending)


def environment(run: Run, *, one_process: bool) -> dict[str, str]:
    """What the members need to find each other; empty where the run is no part of a gang.

    ``one_process``: the script itself is started and is the one process of this node. Where a framework's own launcher
    is started in its place, that numbers the processes; Paddle's takes a PADDLE_TRAINER_ID for its node's rank
    (paddle/distributed/launch/context/args_envs.py, 3.3), so it must find none.

    Names as PyTorch's ``env://`` (torch/distributed/rendezvous.py) and PaddlePaddle's ``init_parallel_env``
    (paddle/distributed/parallel.py) read them.
    """
    gang, met = run.gang, run.rendezvous
    if gang is None or met is None:
        return {}
    rank = sum(gang.counts[: gang.node_rank])
    out = {
        "MASTER_ADDR": met.addresses[0],
        "MASTER_PORT": str(met.master_port),
        "WORLD_SIZE": str(sum(gang.counts)),
        "NODE_RANK": str(gang.node_rank),
        "LOCAL_WORLD_SIZE": str(gang.counts[gang.node_rank]),
    }
    if not one_process:
        return out
    endpoints = [
        f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        for address, ports in zip(met.addresses, met.ports, strict=True)
        for port in ports
    ]
    return out | {
        "RANK": str(rank),
        "LOCAL_RANK": "0",
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": str(len(endpoints)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
    }


RESERVED = frozenset(
    (
        "MASTER_ADDR",
        "MASTER_PORT",
        "WORLD_SIZE",
        "NODE_RANK",
        "RANK",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "PADDLE_TRAINER_ID",
        "PADDLE_TRAINERS_NUM",
        "PADDLE_TRAINER_ENDPOINTS",
        "PADDLE_CURRENT_ENDPOINT",
    )
)
"""Variables that a gang's task may not set itself: they would send its members to different places."""


def _gang(run: Run) -> Gang:
    if run.gang is None:
        raise ValueError(f"run {run.key} is no part of a gang")
    return run.gang


def _new(run: Run) -> GangBook:
    return GangBook(task_id=run.task_id, attempt=run.attempt, nodes=list(_gang(run).nodes))


def _with(book: GangBook, node: str, member: GangMember) -> GangBook:
    return book.model_copy(update={"members": {**book.members, node: member}})


def _closed(book: GangBook, by: str) -> GangBook:
    over = all(node in book.members and book.members[node].phase == "ended" for node in book.nodes)
    return book.model_copy(update={"closed_by": by}) if over and book.closed_by is None else book


def _uids(run: Run) -> list[str]:
    return [device.uid for device in run.devices]


def _tail(lines: tuple[str, ...], limit_bytes: int) -> list[str]:
    """The last lines that fit, shortened like those of ``tasks.finished``."""
    out: list[str] = []
    for line in reversed(lines[-50:]):
        limit_bytes -= 4 * min(len(line), 1000)
        if limit_bytes < 0:
            break
        out.append(line[:1000])
    return out[::-1]
