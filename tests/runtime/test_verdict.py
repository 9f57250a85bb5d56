"""What becomes of a message: the error policy as plain values."""

from __future__ import annotations

import pytest

from oarlock_runtime import BusUnavailable, InvalidPayload, PermanentError, TemporaryError
from oarlock_runtime.verdict import Ack, Bury, GiveBack, judge, kills_its_handler


def decide(error: BaseException | None, failures: int) -> object:
    return judge(error, failures, max_deliver=3, backoff_seconds=(1.0, 5.0))


def test_returning_acknowledges() -> None:
    assert decide(None, 1) == Ack()


@pytest.mark.parametrize("error", [PermanentError("no"), InvalidPayload("no")])
def test_permanent_errors_are_buried_at_once(error: PermanentError) -> None:
    assert decide(error, 1) == Bury("permanent")


@pytest.mark.parametrize("failures", [1, 3, 500])
def test_temporary_errors_never_exhaust(failures: int) -> None:
    assert decide(TemporaryError("later", 7.0), failures) == GiveBack(7.0, on_purpose=True)
    assert isinstance(decide(BusUnavailable("gone"), failures), GiveBack)


def test_other_errors_back_off_and_then_are_buried() -> None:
    error = ValueError("bug")
    assert [decide(error, n) for n in (1, 2, 3)] == [
        GiveBack(1.0, on_purpose=False),
        GiveBack(5.0, on_purpose=False),
        Bury("exhausted"),
    ]


def test_the_last_pause_repeats_and_none_is_zero() -> None:
    assert judge(ValueError(), 9, max_deliver=10, backoff_seconds=(1.0, 5.0)) == GiveBack(5.0, on_purpose=False)
    assert judge(ValueError(), 1, max_deliver=10, backoff_seconds=()) == GiveBack(0.0, on_purpose=False)


def test_a_message_that_never_yields_a_result_is_told_from_an_unlucky_one() -> None:
    assert not kills_its_handler(3, 3)
    assert not kills_its_handler(9, 3)
    assert kills_its_handler(10, 3)


@pytest.mark.parametrize("delay", [-1.0, 1e9, float("nan")])
def test_delays_are_bounded(delay: float) -> None:
    with pytest.raises(ValueError, match="delay_seconds"):
        TemporaryError("later", delay)
