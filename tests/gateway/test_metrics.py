"""The fleet and the queue in Prometheus' terms."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from oarlock_gateway.adapters.metrics import BoardCollector
from oarlock_gateway.core.board import Board
from oarlock_schemas import DeviceState, EstimatorRecalibrated, Lease, LeaseBook, StateChange, TaskRecord

NOON = 1767268800.0
AT = "2026-01-01T12:00:00+00:00"
DEVICE = {"site": "s", "node": "n", "uid": "GPU-a", "kind": "RTX 3090", "vendor": "nvidia", "simulated": "true"}


def record(task_id: str, *steps: tuple[str, str]) -> TaskRecord:
    history = [StateChange.model_validate({"state": state, "at": at, "by": "t"}) for state, at in steps]
    return TaskRecord(task_id=task_id, state=history[-1].state, history=history)


@pytest.fixture
def board() -> Board:
    return Board()


def value(board: Board, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(BoardCollector(board, lambda: NOON + 60))
    return registry.get_sample_value(name, labels)


def test_every_state_is_counted_even_when_empty(board: Board) -> None:
    board.task("a", record("a", ("submitted", AT), ("profiled", AT), ("queued", AT)))
    board.task("b", record("b", ("submitted", AT), ("rejected", AT)))
    assert value(board, "oarlock_tasks", state="queued") == 1
    assert value(board, "oarlock_tasks", state="rejected") == 1
    assert value(board, "oarlock_tasks", state="running") == 0


def test_a_wait_begins_anew_with_another_attempt(board: Board) -> None:
    assert value(board, "oarlock_queue_oldest_wait_seconds") == 0
    earlier, later = "2026-01-01T10:00:00Z", "2026-01-01T12:00:50Z"
    again = record("a", ("submitted", earlier), ("placed", earlier), ("running", earlier), ("queued", later))
    board.task("a", again)
    assert value(board, "oarlock_queue_oldest_wait_seconds") == 10
    board.task("b", record("b", ("submitted", AT), ("profiled", AT)))
    assert value(board, "oarlock_queue_oldest_wait_seconds") == 60


def test_a_device_shows_what_is_booked_on_it_until_it_is_gone(board: Board) -> None:
    state = DeviceState(
        uid="GPU-a", site="s", node="n", kind="RTX 3090", vendor="nvidia", memory_bytes=24, simulated=True, seen_at=AT
    )
    board.device("s.n.GPU-a", state)
    assert value(board, "oarlock_fleet_booked_bytes", **DEVICE) == 0
    leases = [Lease(task_id=t, attempt=1, bytes=b, since=AT) for t, b in (("t", 7), ("u", 8))]
    board.lease("GPU-a", LeaseBook(device_uid="GPU-a", leases=leases))
    assert value(board, "oarlock_fleet_booked_bytes", **DEVICE) == 15
    assert value(board, "oarlock_fleet_memory_bytes", **DEVICE) == 24
    assert value(board, "oarlock_fleet_healthy", **DEVICE) == 1
    board.device("s.n.GPU-a", None)
    assert value(board, "oarlock_fleet_memory_bytes", **DEVICE) is None


def test_a_cell_shows_what_it_last_learned(board: Board) -> None:
    cell: dict[str, str | None] = {
        "framework": "pytorch",
        "family": "cnn",
        "precision": None,
        "device_kind": "RTX 3090",
    }
    for runs, factor in ((1, 1.2), (2, 1.1)):
        event = EstimatorRecalibrated(
            cell=cell, factor_before=1, factor_after=factor, observations=runs, task_id="t", at=AT
        )
        board.recalibrated(event)
    labels = {name: text or "" for name, text in cell.items()}
    assert value(board, "oarlock_calibration_factor", **labels) == 1.1
    assert value(board, "oarlock_calibration_runs", **labels) == 2
