"""How the arms of a trial differ: from the best one, or from a control. The docs page
"Differences between arms" says what is proved.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.errors import InvalidInputError
from discreet.reports.course import Course
from discreet.strategies.pairs import LEAST, Pair
from discreet.trials.record import Public
from discreet.trials.responses import payable_delta
from discreet.validate import quoted

CONTROL, BEST, AHEAD = "control", "best", "ahead"
"""Why an arm is compared with."""


@dataclass(frozen=True)
class Comparison:
    """An arm against the one it is compared with, in the experimenter's units."""

    arm: int
    difference: float
    interval: tuple[float, float]
    """For all pairs of arms at once."""
    p_value: float
    """Of no difference, times the number of comparisons."""


@dataclass(frozen=True)
class Compared:
    """All arms against one of them."""

    reference: int
    why: str
    level: float
    """With this probability all intervals hold at all looks."""
    rows: tuple[Comparison, ...]
    """Those of which something was released."""
    best: tuple[float | None, ...]
    """[arm]: the p-value of being the best, where the strategy has one."""


def compare(course: Course, control: str | None = None) -> Compared | None:
    """The differences from a control, or from the arm that did best; None if there is
    nothing to compare yet.
    """
    if course.replay is None:
        return None
    now = course.replay.now
    reference, why = _reference(now, control)
    if reference is None:
        return None
    rows = tuple(
        _comparison(arm, now, pair, _pairs(max(arm, reference), now))
        for arm in range(len(now.conduct.arms))
        if arm != reference and (pair := _pair(arm, reference, course, now)) is not None
    )
    best = tuple(now.run.p_values())
    return Compared(reference, why, _level(now), rows, best) if rows else None


def check_control(control: str | None, arms: Sequence[str]) -> None:
    """Refuse a control that is no arm of the trial."""
    if control is not None and control not in arms:
        raise InvalidInputError(
            f"control must be an arm of the trial, one of {', '.join(arms)}; got {quoted(control)}"
        )


def _reference(now: Public, control: str | None) -> tuple[int | None, str]:
    if control is not None:
        return now.conduct.arms.index(control), CONTROL
    return now.run.recommendation, BEST if now.conclusive else AHEAD


def _pair(arm: int, reference: int, course: Course, now: Public) -> Pair | None:
    between = [one for one in course.margins if {one.one, one.other} == {arm, reference}]
    turned = [one if one.one == arm else one.turned() for one in between]
    return now.run.pair(arm, reference, turned)


def _pairs(latest: int, now: Public) -> int:
    """With how many others a pair shares one δ: those of the arms of the start, or
    those of an arm that was added with the arms before it.
    """
    first = len(now.protocol.arms)
    return first * (first - 1) // 2 if latest < first else latest


def _level(now: Public) -> float:
    return 1 - min((1 + now.conduct.added) * now.protocol.strategy.delta, 1.0)


def _comparison(arm: int, now: Public, pair: Pair, pairs: int) -> Comparison:
    strategy, scale = now.protocol.strategy, now.protocol.scale
    # The other pairs, and what discrete noise costs beyond continuous noise.
    price = pairs * strategy.delta / payable_delta(strategy)
    unit = scale.shown(1.0) - scale.shown(0.0)
    low, high = sorted(unit * end for end in pair.interval(strategy.delta / price))
    p_value = min((1 + now.conduct.added) * price * max(pair.p_value(), LEAST), 1.0)
    return Comparison(arm, unit * pair.difference, (low, high), p_value)
