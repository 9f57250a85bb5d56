"""Runs over several nodes as values: all members or none, one end, and how they find each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock_launcher.adapters.devices import described
from oarlock_launcher.adapters.plan import CodeFolders, ContainerPolicy, plan_container
from oarlock_launcher.core import effects as do
from oarlock_launcher.core import events as on
from oarlock_launcher.core.command import Program, command_line
from oarlock_launcher.core.decide import decide
from oarlock_launcher.core.gang import (
    JOIN_PATIENCE_SECONDS,
    answer,
    ask,
    end,
    environment,
    failed_elsewhere,
    join,
    lose,
    rendezvous,
    whole,
)
from oarlock_launcher.core.run import DeviceGrant, Ending, Gang, Run, SiteState
from oarlock_launcher.ports import CannotStart
from oarlock_schemas import GangBook, PlacedDevice, Portrait, TaskPlaced, TaskSubmitted

AT = "2026-01-01T00:00:00Z"
NODES = ("a", "b", "c")


def member(node: str, counts: tuple[int, ...] = (1, 1, 1), **changes: object) -> Run:
    """A node's part of a run."""
    uids = tuple(f"GPU-{name}{i}" for name, count in zip(NODES, counts, strict=False) for i in range(count))
    gang = Gang(node, NODES[: len(counts)], counts, uids)
    devices = tuple(DeviceGrant(uid, "A100", "nvidia", node, 5) for uid in uids if uid.startswith(f"GPU-{node}"))
    made = Run("t", 1, devices, exclusive=True, accepted_at_seconds=0.0, gang=gang)
    return replace(made, **changes)  # type: ignore[arg-type]


def joined(*nodes: str, counts: tuple[int, ...] = (1, 1, 1)) -> GangBook:
    """The book once these are ready."""
    book: GangBook | None = None
    for number, node in enumerate(nodes, start=1):
        run = member(node, counts)
        ports = tuple(number * 100 + i for i in range(len(run.devices)))
        book = join(book, run, f"10.0.0.{number}", ports, number * 100 + 99) or book
    assert book is not None
    return book


def ended(book: GangBook | None, node: str, outcome: str, **ending: object) -> GangBook:
    run = member(node, phase="ended", outcome=outcome, message=f"{outcome} there", ending=Ending(**ending))  # type: ignore[arg-type]
    new = end(book, run, AT, AT)
    assert new is not None
    return new


def kinds(effects: list[do.Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def test_members_begin_when_all_are_ready() -> None:
    state, effects = decide(SiteState(), on.Placed(member("a")), 1.0)
    assert kinds(effects) == ["Save", "Join"]
    state, effects = decide(state, on.GangSeen(("t", 1), joined("a", "c")), 2.0)
    assert effects == [] and state.runs["t", 1].phase == "accepted"
    state, effects = decide(state, on.GangSeen(("t", 1), joined("a", "b", "c")), 3.0)
    assert kinds(effects) == ["Save", "Start"]
    # The book as it stands comes again with every change of it.
    assert decide(state, on.GangSeen(("t", 1), joined("a", "b", "c")), 4.0)[1] == []
    # A launcher that comes back joins again, or starts what had met.
    waiting, met = member("a"), state.runs["t", 1]
    assert kinds(decide(SiteState(), on.Recovered(waiting, present=False), 5.0)[1]) == ["Join"]
    assert kinds(decide(SiteState(), on.Recovered(met, present=False), 5.0)[1]) == ["Start"]


def test_a_failure_stops_the_others_and_keeps_out_who_has_not_come() -> None:
    book = ended(joined("a", "b"), "b", "oom")
    assert book.members["c"].outcome == "stopped" and book.closed_by is None
    assert join(book, member("c"), "10.0.0.3", (1,), 2) is None
    state, _ = decide(SiteState(), on.Placed(member("a")), 1.0)
    state, effects = decide(state, on.GangSeen(("t", 1), book), 2.0)
    # It had not begun, so nothing need be stopped.
    assert kinds(effects) == ["Save", "TellFinished"] and state.runs["t", 1].outcome == "stopped"
    running = member("a", phase="running", started_at_seconds=1.0, rendezvous=rendezvous(joined("a", "b", "c")))
    state, effects = decide(SiteState().with_run(running), on.GangSeen(("t", 1), book), 2.0)
    assert kinds(effects) == ["Save", "Stop"]
    state, _ = decide(state, on.Exited(("t", 1), Ending(signal=15)), 3.0)
    book = end(book, state.runs["t", 1], AT, AT) or book
    assert book.closed_by == "a"
    told = whole(book, state.runs["t", 1])
    assert (told.outcome, told.message) == ("oom", "on b: oom there")
    assert told.all_device_uids == ["GPU-a0", "GPU-b0", "GPU-c0"]
    # Late, the one that was kept out hears of the placement: it starts nothing, and ends without a word.
    state, _ = decide(SiteState(), on.Placed(member("c")), 4.0)
    state, effects = decide(state, on.GangSeen(("t", 1), book), 5.0)
    assert kinds(effects) == ["Save", "TellFinished"]
    assert end(book, state.runs["t", 1], AT, AT) is None


def test_one_that_is_done_early_stops_nobody() -> None:
    book = ended(joined("a", "b", "c"), "a", "ok", exit_code=0, peak_process_bytes=7)
    assert failed_elsewhere(book, "b") is None
    book = ended(ended(book, "c", "ok", exit_code=0, peak_process_bytes=9), "b", "ok", exit_code=0)
    assert book.closed_by == "b"
    told = whole(book, member("b", phase="ended"))
    assert told.outcome == "ok" and told.ending is not None
    assert (told.ending.exit_code, told.ending.peak_process_bytes) == (0, 9)


def test_what_was_asked_for_goes_before_what_followed() -> None:
    for first, then in (("cancelled", "error"), ("timeout", "error"), ("oom", "error"), ("lost", "error")):
        book = ended(ended(ended(joined("a", "b", "c"), "a", then), "b", first), "c", "stopped")
        assert whole(book, member("c")).outcome == first


def test_a_node_that_does_not_come_is_waited_for_in_vain() -> None:
    state, _ = decide(SiteState(), on.Placed(member("a")), 0.0)
    assert decide(state, on.Tick(), JOIN_PATIENCE_SECONDS - 1)[1] == []
    state, effects = decide(state, on.Tick(), JOIN_PATIENCE_SECONDS)
    assert kinds(effects) == ["Save", "TellFinished"] and state.runs["t", 1].outcome == "refused"


def test_cancel_and_preemption_of_one_that_waits_end_it_at_once() -> None:
    for cancel, outcome in ((on.Cancel("t", "ann"), "cancelled"), (on.Cancel("t", "m", None, 1), "preempted")):
        state, _ = decide(SiteState(), on.Placed(member("a")), 0.0)
        state, effects = decide(state, cancel, 1.0)
        assert kinds(effects)[-2:] == ["Save", "TellFinished"] and state.runs["t", 1].outcome == outcome


def test_a_lost_node_is_given_up_and_the_giver_tells() -> None:
    book = ended(joined("a", "b"), "a", "stopped")
    assert lose(book, "c", "a", "gone", AT) is None, "it never began"
    book = joined("a", "b", "c")
    book = ended(ended(book, "a", "error"), "b", "stopped")
    assert lose(book, "a", "b", "gone", AT) is None, "its end is known"
    assert ask(book, "a", AT) is None and lose(book, "c", "a", "gone", AT) is None, "nobody has asked it"
    book = ask(book, "c", AT) or book
    assert lose(answer(book, "c"), "c", "a", "gone", AT) is None, "it is there"
    given_up = lose(book, "c", "a", "gone", AT)
    assert given_up is not None and given_up.closed_by == "a"
    reported = member("a", phase="reported", outcome="error")
    state = SiteState().with_run(reported)
    assert kinds(decide(state, on.GangSeen(("t", 1), given_up), 9.0)[1]) == ["TellFinished"]
    told = given_up.model_copy(update={"told": True})
    assert decide(state, on.GangSeen(("t", 1), told), 9.0)[1] == []
    assert whole(given_up, reported).outcome == "lost"
    # And the node comes back with its part still running.
    running = member("c", phase="running", started_at_seconds=1.0, rendezvous=rendezvous(joined("a", "b", "c")))
    assert kinds(decide(SiteState().with_run(running), on.GangSeen(("t", 1), told), 9.0)[1]) == ["Save", "Stop"]


def test_a_book_that_was_put_away_is_not_begun_anew() -> None:
    met = rendezvous(joined("a", "b", "c"))
    assert end(None, member("a", phase="ended", outcome="lost", rendezvous=met), AT, AT) is None
    # One that is refused before anybody else has written begins it.
    assert ended(None, "a", "refused").closed_by == "a"


def test_environment_of_each_process() -> None:
    book = joined("a", "b", counts=(1, 1))
    met = rendezvous(book)
    assert environment(member("b", (1, 1), rendezvous=met), one_process=True) == {
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "199",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": "1",
        "PADDLE_TRAINER_ID": "1",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:100,10.0.0.2:200",
        "PADDLE_CURRENT_ENDPOINT": "10.0.0.2:200",
    }
    assert environment(replace(member("a"), gang=None), one_process=True) == {}


def test_start_lines_of_frameworks_launchers() -> None:
    met = rendezvous(joined("a", "b", counts=(2, 1)))
    # The node with one device must join the others' launcher too.
    run = member("b", (2, 1), rendezvous=met)
    program = Program("pytorch", "train.py", device_count=1, gang=run.gang, rendezvous=met)
    assert " ".join(command_line(program, "python", torchrun=("torchrun",))) == (
        "torchrun --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 --master-port 199 --nproc-per-node 1 train.py"
    )
    paddle = replace(program, framework="paddlepaddle")
    assert " ".join(command_line(paddle, "python")) == (
        "python -u -m paddle.distributed.launch --nnodes 2 --rank 1 --master 10.0.0.1:100 --host 10.0.0.2"
        " --devices 0 train.py"
    )
    several = environment(run, one_process=not program.numbered_by_others)
    assert (several["WORLD_SIZE"], several["NODE_RANK"], several["LOCAL_WORLD_SIZE"]) == ("3", "1", "1")
    assert "PADDLE_TRAINER_ID" not in several and "RANK" not in several
    single = Program("pytorch", "train.py", device_count=1, gang=member("a", (1, 1)).gang, rendezvous=met)
    assert command_line(single, "python") == ("python", "-u", "train.py")


def test_containers_of_a_gang_need_a_network_between_the_nodes() -> None:
    run = member("b", (1, 1), rendezvous=rendezvous(joined("a", "b", counts=(1, 1))))
    task = TaskSubmitted.model_validate({"image": "i", "command": ["true"], "environment": {"RANK": "9", "MINE": "1"}})
    devices = [
        PlacedDevice(uid=uid, kind="A100", vendor="nvidia", node=uid[4], reserved_bytes=1, fence=5)
        for uid in run.all_device_uids
    ]
    placed = TaskPlaced(
        task_id="t",
        task=task,
        portrait=Portrait(framework="pytorch", method="declared", confidence=1),
        attempt=1,
        site="s",
        devices=devices,
        algorithm="rule_based",
        at=AT,
    )
    folders = CodeFolders(Path("/code"), Path("/code"), Path("/output"))
    here = described(run.devices)
    with pytest.raises(CannotStart, match="OARLOCK_DOCKER_GANG_NETWORK"):
        plan_container(run, placed, here, ContainerPolicy("s"), folders)
    container = plan_container(run, placed, here, ContainerPolicy("s", gang_network="between"), folders)
    assert container.confinement.network == "between" and container.name == "oarlock-s-t-1-b"
    assert (container.environment["RANK"], container.environment["MINE"]) == ("1", "1")
    # Others of the site keep their own network.
    alone = replace(run, gang=None, rendezvous=None)
    assert plan_container(alone, placed, here, ContainerPolicy("s"), folders).confinement.network is None


def test_addresses_that_only_one_node_can_reach_are_said() -> None:
    book = join(join(None, member("a", (1, 1)), "127.0.0.1", (1,), 2), member("b", (1, 1)), "10.0.0.2", (1,), 2)
    assert book is not None
    with pytest.raises(ValueError, match=r"node a gives an address .* OARLOCK_NODE_ADDRESS"):
        rendezvous(book)
    state, _ = decide(SiteState(), on.Placed(member("a", (1, 1))), 0.0)
    state, effects = decide(state, on.GangSeen(("t", 1), book), 1.0)
    assert kinds(effects) == ["Save", "TellFinished"] and state.runs["t", 1].outcome == "error"


STEPS = st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 7)), min_size=1, max_size=60)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_in_any_order_all_or_none_and_one_end(steps: list[tuple[str, int]]) -> None:
    """Three launchers, each hearing of the book when it does, dying and coming back between any two steps."""
    book: GangBook | None = None
    sites = dict.fromkeys(NODES, SiteState())
    told: list[str] = []
    begun: set[str] = set()

    def happen(node: str, event: on.Event) -> None:
        nonlocal book
        sites[node], effects = decide(sites[node], event, 1.0)
        for effect in effects:
            match effect:
                case do.Join(run):
                    book = join(book, run, "10.0.0.1", (1,), 2) or book
                    happen(node, on.GangSeen(run.key, book))  # type: ignore[arg-type]
                case do.Start():
                    assert book is not None and set(book.members) == set(NODES)
                    begun.add(node)
                case do.TellFinished(run):
                    book = end(book, run, None, AT) or book
                    if book is not None and book.closed_by == node and not book.told:
                        told.append(whole(book, run).outcome or "")
                        book = book.model_copy(update={"told": True})
                    happen(node, on.Reported(run.key))

    def step(node: str, number: int) -> None:
        run = sites[node].runs.get(("t", 1))
        key = ("t", 1)
        if number == 0:
            happen(node, on.Placed(member(node)))
        elif number == 1 and book is not None:
            happen(node, on.GangSeen(key, book))
        elif number == 2 and node in begun:
            happen(node, on.Started(key, "id", 7, (), ""))
        elif number in (3, 4) and node in begun:
            happen(node, on.Exited(key, Ending(exit_code=0 if number == 3 else 1)))
        elif number == 5:
            happen(node, on.Cancel("t", "ann"))
        elif number == 6 and run is not None:
            sites[node] = SiteState(cancelled=sites[node].cancelled)
            happen(node, on.Recovered(run, present=node in begun))
        elif number == 7 and run is not None and run.phase == "stopping":
            happen(node, on.Exited(key, Ending(signal=15)))

    for node, number in steps:
        step(node, number)
        assert len(told) <= 1
        if told:
            assert book is not None and all(m.phase == "ended" for m in book.members.values())
    # Whatever happened, once everybody hears everything and what runs ends, the end is told, once.
    for _ in range(4):
        for node in NODES:
            for number in (0, 1, 2, 1, 3, 7, 1):
                step(node, number)
    assert len(told) == 1
    if told == ["ok"]:
        assert begun == set(NODES)
