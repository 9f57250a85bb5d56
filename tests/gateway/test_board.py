"""The board follows the buckets, and a page that opens late sees the same as one that was there."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock_gateway.core.board import Board
from oarlock_schemas import DeviceState, LeaseBook, StateChange, TaskRecord

AT = "2026-01-01T00:00:00+00:00"


def record(task_id: str, state: str = "running") -> TaskRecord:
    history = [StateChange.model_validate({"state": "submitted", "at": AT, "by": "t"})]
    return TaskRecord.model_validate({"task_id": task_id, "state": state, "history": history})


def device(uid: str) -> DeviceState:
    return DeviceState(uid=uid, site="s", node="n", kind="RTX 3090", vendor="nvidia", memory_bytes=1, seen_at=AT)


def follow(page: dict[str, Any], patch: dict[str, Any]) -> None:
    """What app.js does with a patch."""
    table = page[{"task": "tasks", "device": "devices", "lease": "leases"}[patch["kind"]]]
    if patch["value"] is None:
        table.pop(patch["key"], None)
    else:
        table[patch["key"]] = patch["value"]


_KEYS = st.sampled_from(["a", "b", "c"])
_CHANGES = st.tuples(st.sampled_from(["task", "device", "lease"]), _KEYS, st.booleans())


@settings(deadline=None)
@given(st.lists(_CHANGES, max_size=30), st.integers(0, 30))
def test_a_page_that_follows_patches_sees_the_snapshot(changes: list[tuple[str, str, bool]], opened: int) -> None:
    board, page = Board(), Board().snapshot()
    for number, (kind, key, present) in enumerate(changes):
        if number == opened:
            page = board.snapshot()
        if kind == "task":
            patch = board.task(key, record(key) if present else None)
        elif kind == "device":
            patch = board.device(key, device(key) if present else None)
        else:
            patch = board.lease(key, LeaseBook(device_uid=key))
        follow(page, patch)
    assert page == board.snapshot()


def test_ended_tasks_are_bounded_and_open_ones_are_not() -> None:
    board = Board()
    for number in range(500):
        board.task(f"e{number}", record(f"e{number}", "succeeded"))
        board.task(f"o{number}", record(f"o{number}", "queued"))
    shown = board.snapshot()["tasks"]
    assert sum(view["state"] == "queued" for view in shown.values()) == 500
    assert sum(view["state"] == "succeeded" for view in shown.values()) == 200
