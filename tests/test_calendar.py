"""calendar.py: what delays and calendars say, and what is refused with advice."""

import math
from typing import Any

import pytest

from discreet import Delay, InvalidInputError
from discreet.accrual import Calendar, make_calendar

DELAYS = [
    Delay.fixed(7),
    Delay.fixed(0, never=0.2),
    Delay.exponential(7),
    Delay.exponential(7, never=0.05, failures=14),
]


@pytest.mark.parametrize("delay", DELAYS)
def test_described_and_made_again(delay: Delay) -> None:
    assert Delay.from_dict(delay.to_dict()) == delay
    assert Delay.read(delay.to_dict()) == Delay.read(delay) == delay
    last = 30.0 if delay.never else None
    calendar = make_calendar(2, delay, last)
    assert calendar is not None
    assert make_calendar(**calendar.to_dict()) == calendar


@pytest.mark.parametrize(
    ("delay", "lost"),
    [
        (Delay.fixed(5), 0.0),
        (Delay.fixed(30, never=0.2, failures=5), 1.0),
        (Delay.fixed(5, never=0.2), 0.2),
        (Delay.exponential(10, never=0.5), 0.5 + 0.5 * math.exp(-2)),
    ],
)
def test_what_is_late_is_lost(delay: Delay, lost: float) -> None:
    calendar = make_calendar(1, delay, 20)
    assert calendar is not None
    assert calendar.lost == pytest.approx(lost, abs=1e-15)


def test_read() -> None:
    assert Delay.read("7") == Delay.read(7) == Delay.read(7.0) == Delay.fixed(7)
    assert Delay.read("exponential:2.5", 0.1) == Delay.exponential(2.5, 0.1)
    assert Delay.read("fixed:3") == Delay.fixed(3)


def test_nothing_without_accrual() -> None:
    assert make_calendar(None) is None


def test_simple() -> None:
    """Every round waits for the same time, and every outcome counts."""

    def made(*parts: Any) -> Calendar:
        calendar = make_calendar(*parts)
        assert calendar is not None
        return calendar

    assert made(2).is_simple
    assert made(2, 7).wait == 7
    assert made(2, 7, 30).wait == 7
    assert made(2, 7, 30, None, "scheduled").wait == 30
    assert made(2, 7).deadline == math.inf
    for delay in (*DELAYS[1:], Delay.fixed(7, failures=8)):
        assert not made(2, delay, 30).is_simple
    assert not made(2, 7, 30, "continuous").is_simple
    assert made(2, 7, 30, "continuous").with_enrolment("waiting") == made(2, 7, 30)


def test_words() -> None:
    calendar = make_calendar(2, Delay.exponential(7, 0.05), 30, "continuous")
    assert calendar is not None
    assert calendar.describe == (
        "2 participants a day, outcomes after 7 days on average, at random (exponential), "
        "5.0% never, "
        "deadline 30 days, continuous enrolment, released when complete"
    )


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((None, 7), "also give accrual"),
        ((None, None, 3), "also give accrual"),
        ((0,), "accrual must be a positive number of participants a day"),
        ((math.nan,), "accrual must be"),
        ((True,), "accrual must be"),
        ((1, -1), "number of days from 0"),
        ((1, math.nan), "number of days from 0"),
        ((1, "soon"), "give a delay as 7"),
        ((1, "gamma:7"), "unknown delay 'gamma'"),
        ((1, {"kind": "fixed"}), "give a delay as 7"),
        ((1, {"kind": "fixed", "days": 1, "more": 2}), "give a delay as 7"),
        ((1, 7, 0), "deadline must be a positive number of days"),
        ((1, 7, 5), "choose a longer deadline"),
        ((1, Delay.fixed(7, never=0.1)), "never answers needs a deadline"),
        ((1, 7, None, "continuous"), "continuous enrolment needs a deadline"),
        ((1, 7, None, None, "scheduled"), "release on the clock needs a deadline"),
        ((1, 7, 9, "rolling"), "enrolment must be waiting or continuous"),
        ((1, 7, 9, None, "soon"), "release must be complete or scheduled"),
    ],
)
def test_refused(parts: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make_calendar(*parts)


def test_never_is_a_share() -> None:
    for never in (-0.1, 1, True, "some"):
        with pytest.raises(InvalidInputError, match="never, the share"):
            Delay.fixed(7, never=never)  # type: ignore[arg-type]
