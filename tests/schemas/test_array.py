"""Arrays as Slurm writes them."""

from __future__ import annotations

import pytest

from oarlock_schemas import InvalidMessage, TaskSubmitted, array_end, array_spec, read


@pytest.mark.parametrize(
    ("text", "indices", "at_once"),
    [
        ("0-3", (0, 1, 2, 3), None),
        ("0-9%2", tuple(range(10)), 2),
        ("7", (7,), None),
        ("5-7, 1,3", (1, 3, 5, 6, 7), None),
        ("0-15:4%3", (0, 4, 8, 12), 3),
        ("3,3,1-3", (1, 2, 3), None),
    ],
)
def test_what_it_says(text: str, indices: tuple[int, ...], at_once: int | None) -> None:
    spec = array_spec(text)
    assert (spec.indices, spec.at_once) == (indices, at_once)


@pytest.mark.parametrize(
    "text", ["", "a", "3-1", "0-3%0", "0-3%", "0-3%x", "0-9999", "0-600,1000-1600", "0-4:0", "-1", "1;2", "0-3%2%3"]
)
def test_what_it_cannot_say(text: str) -> None:
    with pytest.raises(InvalidMessage):
        read(TaskSubmitted, {"array": text})


def test_the_id_of_an_array_leaves_room_for_its_tasks() -> None:
    with pytest.raises(InvalidMessage, match="at most 120"):
        read(TaskSubmitted, {"task_id": "x" * 121, "array": "0-1"})
    assert read(TaskSubmitted, {"task_id": "x" * 121})[0].task_id is not None


def test_a_task_of_an_array_is_told_which_it_is() -> None:
    task = TaskSubmitted(environment={"LR": "0.1"}, array_member=array_spec("2-8:3%2").member("sweep", 5))
    assert task.run_variables == {
        "LR": "0.1",
        "OARLOCK_ARRAY_INDEX": "5",
        "OARLOCK_ARRAY_ID": "sweep",
        "OARLOCK_ARRAY_SIZE": "3",
    }


@pytest.mark.parametrize(
    ("states", "end"),
    [
        (["succeeded", "running"], None),
        (["succeeded", "succeeded"], ("succeeded", "2 succeeded")),
        (["succeeded", "rejected", "succeeded"], ("failed", "2 succeeded, 1 rejected")),
        (["cancelled", "succeeded"], ("cancelled", "1 cancelled, 1 succeeded")),
    ],
)
def test_an_array_ends_as_its_tasks_did(states: list[str], end: tuple[str, str] | None) -> None:
    assert array_end(states) == end
