"""Slices whose place is not known and whose length is."""

from __future__ import annotations

import pytest

from .bench import run

START = "import random\nn, items = 32, list(range(1000))\ni = random.randint(0, 100)\n"


@pytest.mark.parametrize(
    "ends",
    ["i:i + n", "i + 1:i + 1 + n", "i + 1:i + n + 1", "i * n:(i + 1) * n", "n * i + 3:3 + n * (i + 1)", "i - n:i"],
)
def test_ends_that_differ_by_a_known_number(ends: str) -> None:
    ran = run(f"{START}taken = len(items[{ends}])")
    assert ran["taken"] == 32
    assert not ran.machine.internal_errors


def test_an_end_computed_beforehand() -> None:
    ran = run(f"{START}end = i + n\ntaken = len(items[i:end])\nshort = len(items[i + 4:end])")
    assert (ran["taken"], ran["short"]) == (32, 28)


@pytest.mark.parametrize("ends", ["i:i * n", "i:random.randint(200, 300)", "i:2 * i + n"])
def test_ends_that_differ_by_what_is_not_known(ends: str) -> None:
    ran = run(f"{START}taken = len(items[{ends}])")
    assert not isinstance(ran["taken"], int) or ran["taken"] != 32


def test_known_ends_are_taken_as_they_are() -> None:
    ran = run("items, i, n = list(range(10)), 4, 3\ntaken = items[i:i + n]")
    assert ran["taken"] == [4, 5, 6]


@pytest.mark.parametrize(("ends", "count"), [("1:27", 26), (":3", 3), ("2:10:2", 4), ("-4:-1", 3)])
def test_fields_of_a_row_of_unknown_length(ends: str, count: int) -> None:
    ran = run(f"row = open('data.txt').readline().split(' ')\ntaken = [int(v) for v in row[{ends}]]")
    assert len(ran["taken"]) == count


def test_a_limit_on_a_list_of_unknown_length_is_no_count() -> None:
    ran = run("import os\ntaken = len(os.listdir('pictures')[:5000])")
    assert not isinstance(ran["taken"], int)
