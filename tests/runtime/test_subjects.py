"""Ids come from outside; none may change the shape of a subject."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock_runtime import ANY, InvalidName, Subjects, escape_token, token, unescape_token
from oarlock_runtime.topology import stream_of

SUBJECTS = Subjects("oarlock")


@pytest.mark.parametrize(
    "hostile",
    ["", ".", "a.b", "*", ">", "a b", "a\tb", "a\r\nPUB x 0", "x.>", "ü", "a" * 129, "a\n", "$JS", "a/b", "\x00"],
)
def test_hostile_ids_are_refused_everywhere(hostile: str) -> None:
    for make in (
        SUBJECTS.submitted,
        SUBJECTS.profiled,
        SUBJECTS.placed,
        SUBJECTS.logs,
        SUBJECTS.dead,
        SUBJECTS.metrics,
    ):
        with pytest.raises(InvalidName, match="cannot be part of a subject"):
            make(hostile)
    with pytest.raises(InvalidName):
        SUBJECTS.placed("site", hostile)


@pytest.mark.parametrize("prefix", ["", "a.b", "*", "x" * 33, "a b", "oar\n"])
def test_hostile_prefixes_are_refused(prefix: str) -> None:
    with pytest.raises(InvalidName):
        Subjects(prefix)


@given(st.text())
def test_a_token_never_holds_what_splits_or_widens_a_subject(text: str) -> None:
    try:
        checked = token(text)
    except InvalidName:
        return
    assert checked == text
    assert not set(checked) & set(".*> \t\r\n\x00")
    assert SUBJECTS.placed("site", text).count(".") == 4


@given(st.text(min_size=1, max_size=10))
def test_escaping_is_reversible_and_gives_a_token(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    escaped = escape_token(text)
    assert token(escaped) == escaped
    assert unescape_token(escaped) == text


def test_escape_keeps_plain_names_readable() -> None:
    assert escape_token("node1.example.com") == "node1=2Eexample=2Ecom"
    with pytest.raises(InvalidName, match="not UTF-8"):
        unescape_token("=FF")


def test_the_subjects_of_the_design() -> None:
    assert SUBJECTS.submit() == "oarlock.submit"
    assert SUBJECTS.all_submitted() == ["oarlock.tasks.submitted", "oarlock.tasks.submitted.*"]
    assert SUBJECTS.placed("lab", "t1") == "oarlock.tasks.placed.lab.t1"
    assert SUBJECTS.placed("lab") == "oarlock.tasks.placed.lab.*"
    assert SUBJECTS.completed(ANY) == "oarlock.runs.completed.*"
    assert SUBJECTS.event_type("oarlock.tasks.placed.lab.t1") == "oarlock.tasks.placed"
    assert SUBJECTS.event_type("oarlock.logs.t1") == "oarlock.logs"


def test_each_stored_subject_has_one_stream_and_the_others_none() -> None:
    assert stream_of(SUBJECTS, SUBJECTS.placed("lab", "t1")) == "oarlock_TASKS"
    assert stream_of(SUBJECTS, SUBJECTS.policy_updated()) == "oarlock_RUNS"
    assert stream_of(SUBJECTS, SUBJECTS.logs()) == "oarlock_LOGS"
    assert stream_of(SUBJECTS, SUBJECTS.dead("matcher")) == "oarlock_DEAD"
    assert stream_of(SUBJECTS, SUBJECTS.submit()) is None
    assert stream_of(SUBJECTS, SUBJECTS.metrics("lab", "n1")) is None
    assert stream_of(SUBJECTS, "oarlockx.tasks.submitted") is None
