"""Unknowns stay unknown with a reason, spread no further than they must, and branches on them keep the larger need."""

from __future__ import annotations

import pytest

from oarlock_profiler.core.findings import Findings
from oarlock_profiler.core.interpreter.values import Native, Unknown
from oarlock_profiler.core.overlays import registry

from .bench import StillEngine, run


def test_an_unknown_names_its_cause() -> None:
    ran = run("import pickle\nx = pickle.load(open('a.pkl', 'rb'))\ny = x['k'][0].z + 1\n")
    value = ran["y"]
    assert isinstance(value, Unknown)
    assert "only running the script" in value.why
    assert value.where is not None
    assert value.where.line == 2


def test_it_spreads_no_further_than_it_must() -> None:
    ran = run(
        "u = input()\nd = {'a': u, 'b': 2}\nl = [u, 3]\nr = d['b'] + l[1], len(l), u is None, isinstance(u, str), [u] == [1, 2]"
    )
    assert ran["r"] == (5, 2, False, True, False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("r = u and False", False),
        ("r = u or True", True),
        ("r = random.random() < 2", True),
        ("r = random.randint(3, 5) > 5", False),
        ("r = random.randint(4, 4)", 4),
        ("r = [1 for x in [1, 2] if u]", [1, 1]),
        ("r = 1 if u else 8", 8),
        ("r = None if u else 5", 5),
        ("if u:\n raise ValueError\nr = 1", 1),
        ("r = 0\nif u:\n r = 5", 5),
        ("def f():\n if u: return 1\n return 2\nr = f()", 2),
        ("r = 0\nfor i in range(5):\n if u: continue\n if u: break\n r += 1", 5),
        ("r = 0\nwhile True:\n r += 1\n if u: break", 3),
        ("r = 0\nwhile u:\n r += 1", 1),
        ("r = []\nfor x in u: r.append(1)", [1]),
        ("def f():\n if u: b = 4\n else: b = 16\n return b\nr = f()", 16),
        ("if u:\n import sys; sys.exit(1)\nelse:\n r = 3", 3),
        ("assert u\nr = 1", 1),
        ("r = (u.a.b(3)[4], 7)[1]", 7),
    ],
)
def test_rules(source: str, expected: object) -> None:
    ran = run("import random\nu = input()\n" + source)
    assert ran.machine.internal_errors == []
    assert ran["r"] == expected


def test_a_choice_is_recorded_with_what_was_assumed() -> None:
    ran = run("u = input()\nif u:\n x = len('a')\n y = len('b')\nelse:\n x = 0\n")
    (gap,) = [g for g in ran.machine.findings.gaps.values() if g.what.startswith("branch")]
    assert gap.assumed == "the branch is taken"
    assert gap.where is not None
    assert gap.where.line == 2


def test_a_failing_operation_that_nobody_catches_is_an_unknown() -> None:
    ran = run("x = {}['a']\ny = 5\n")
    assert isinstance(ran["x"], Unknown)
    assert ran["y"] == 5
    assert ran.stopped is None


def test_a_handler_that_only_raises_again_does_not_catch() -> None:
    ran = run("try:\n x = {}['a']\n y = 1\nexcept KeyError as e:\n raise RuntimeError('no') from e\nz = 2")
    assert (ran["y"], ran["z"]) == (1, 2)


def test_an_explicit_raise_stops_the_script_and_says_where() -> None:
    ran = run("x = 1\nif x == 1:\n raise ValueError('bad x')\ny = 2")
    assert ran.stopped == "the script raises ValueError: bad x"
    assert [g.where.line for g in ran.machine.findings.gaps.values() if g.where] == [3]


class Trains(StillEngine):
    """Steady after two steps."""

    @property
    def steady(self) -> bool:  # type: ignore[override]
        return self.trace.steps >= 2


def _training(source: str) -> tuple[int, list[tuple[int | None, int | None]]]:
    registry.register("loops_test.step", Native("step", lambda m: m.trace.step_end()))
    engine = Trains()
    ran = run("from loops_test import step\n" + source, engine=engine)
    assert ran.stopped is None
    return engine.trace.steps, [(where.line if where else None, count) for where, count in ran.machine.training_loops]


@pytest.mark.parametrize(
    ("source", "steps", "loops"),
    [
        ("for e in range(90):\n for b in range(1000):\n  step()", 2, [(3, 1000), (2, 90)]),
        ("i = 0\nwhile True:\n step()\n i += 1", 2, [(3, None)]),
        ("i = 0\nwhile i < 10**9:\n step()\n i += 1", 2, [(3, None)]),
        ("for b in range(1): step()", 1, [(2, 1)]),
        ("def g():\n while True: yield 1\nfor b in g(): step()", 2, [(4, None)]),
        ("u = input()\nwhile not u:\n step()", 2, [(3, None)]),
        ("u = input()\nwhile True:\n step()\n if u: break", 2, [(3, None)]),
    ],
)
def test_loops_that_train_stop_when_steady(source: str, steps: int, loops: list[tuple[int | None, int | None]]) -> None:
    assert _training(source) == (steps, loops)


def test_what_was_absent_is_told_with_what_the_script_raises() -> None:
    ran = run("import yaml\nconf = yaml.safe_load(open('conf/base.yaml'))\nraise RuntimeError('no such model')\n")
    assert ran.stopped == (
        "the script raises RuntimeError: no such model (before that: the file conf/base.yaml is not in the bundle)"
    )


def test_of_a_flood_of_gaps_the_first_and_the_last_are_kept() -> None:
    findings = Findings(limit=10, latest=3)
    for number in range(1000):
        findings.gap(f"gap {number}", None, "a flood")
        findings.gap(f"gap {number}", None, "a flood")
    assert [gap.what for gap in findings.gaps.values()] == [f"gap {n}" for n in (*range(7), 997, 998, 999)]


@pytest.mark.parametrize("cut", ["ids[:50]", "ids[0:50]", "ids[-50:]"])
def test_an_open_list_of_numbers_is_as_long_as_the_cut(cut: str) -> None:
    ran = run(
        f"ids = [int(w) for w in open('ids.txt').read().split()]\nkept = {cut}\nfull = kept + [0] * (50 - len(kept))\n"
    )
    assert len(ran["full"]) == 50


def test_a_slice_of_an_open_list_of_texts_stays_open() -> None:
    ran = run(
        "files = []\nfor line in open('list.txt'):\n    files.append('a/' + 'b')\nsome = files[:1000]\nn = len(some)\n"
    )
    assert len(ran["some"]) == 1
    assert isinstance(ran["n"], Unknown)


def test_a_list_repeated_as_often_as_an_open_one_is_long_is_open_in_another() -> None:
    ran = run(
        "ids = [int(w) for w in open('ids.txt').read().split()]\nmask = []\nmask.extend([True] * len(ids))\nn = len(mask)\n"
    )
    assert ran["mask"] == [True]
    assert isinstance(ran["n"], Unknown)
