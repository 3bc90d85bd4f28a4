"""Pictures of every kind, with names that are long, wide, foreign and strange."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any
from unittest.mock import patch

import numpy as np

from discreet.reports import charts
from discreet.reports.charts.lines import Level, Line, LineChart, draw_lines
from discreet.reports.charts.style import MOST_SHOWN, choose_arms, shorten_names
from discreet.simulation.paths import RunPath

ODD = (
    "Amoxicillin 500 mg three times a day for 5 days, then a review by the ward's pharmacist",
    "Amoxicillin 500 mg three times a day for 7 days, then a review by the ward's pharmacist",
    "תרופה 2",
    "أموكسيسيلين ٥٠٠",
    "<b>A & B</b> $x_1$",
    "W" * 60,
    "候補の薬剤その一",
    "tea",
)
LEVELS = (0.01, 0.1, 1.0, 10.0)
ROWS = 7


@contextmanager
def undrawn() -> Iterator[None]:
    """Pictures are composed and their files written, each of them with an empty one.
    For what is about other things than pictures: to draw one as PDF takes most of a
    second.
    """
    empty = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    with patch.object(charts, "render", lambda _figure, _kind="svg": empty):
        yield


def names(arms: int) -> tuple[str, ...]:
    """Long, wide, foreign and strange ones, no two the same."""
    return tuple(ODD[arm] if arm < len(ODD) else f"{ODD[0]} {arm}" for arm in range(arms))


def path(arms: int, spread: float = 0.0) -> RunPath:
    """A run whose means end at nearly one place."""
    samples = np.round(np.geomspace(20 * arms, 3000 * arms, ROWS))
    means = 0.5 + np.outer(np.linspace(1, 0.1, ROWS), np.linspace(-0.4, 0.4 + spread, arms))
    half = np.linspace(0.4, 0.1, ROWS)[:, None]
    share = np.outer(np.linspace(0.1, 1, ROWS), np.linspace(1.4, 0.6, arms))
    share[:, -1] = np.nan
    ends = np.clip(means - half, 0, 1), np.clip(means + half, 0, 1)
    seen, words = np.ones(means.shape, np.bool_), ("what intervals are " * 4, "evidence " * 9)
    said = ("bet-se", "proved", names(arms), samples)
    return RunPath(*said, means, *ends, share, seen, True, arms - 1, *words, False)


def draw_trial(arms: int, means: bool) -> Any:
    run = path(arms)
    shown = tuple(choose_arms(run.means[-1], run.evidence[-1] >= 1, [arms - 1]))
    people = run.samples.astype(np.int64)
    if means:
        about = (arms - 1, "estimate (more is better)", (0.0, 1.0), shown)
        return charts.draw_means(charts.TrialMeans(run.names, people, run.means, *about))
    return charts.draw_evidence(charts.TrialEvidence(run.names, people, run.evidence, shown))


def draw_sites(sites: int) -> Any:
    came = [charts.Arrival(1.7e9 + 7200 * i, names(sites)[i % sites], 3) for i in range(2 * sites)]
    found = charts.enrolment(came)
    assert found is not None
    return charts.draw_enrolment(found)


def draw_shares(arms: int) -> Any:
    share = np.linspace(1, 2, arms) / np.linspace(1, 2, arms).sum()
    numbers = (np.linspace(0.1, 0.9, arms).round(4), share, 0.7 * share, 1.2 * share, share)
    return charts.draw_allocation(charts.Allocation(names(arms), *map(tuple, numbers)), "t " * 60)


def draw_strategies(count: int) -> Any:
    middle, low, high = (tuple(k / level for level in LEVELS) for k in (9, 8, 10))
    curves = [
        charts.EpsilonCurve("bet-se", name, LEVELS, middle, low, high, (0,) * 4)
        for name in shorten_names(names(count))
    ]
    bound = tuple((level, 5 / level) for level in LEVELS)
    return charts.draw_samples_by_epsilon(
        charts.EpsilonData("title " * 12, "mean", tuple(curves), bound, 0.02)
    )


def draw_levels(count: int) -> Any:
    lines = [
        Line("bet-se", name, LEVELS, tuple(9 / e for e in LEVELS), (0,) * 4, look)
        for look, name in enumerate(shorten_names(names(count)))
    ]
    return draw_lines(
        LineChart("t", "β", "people", tuple(lines), (Level("lower bound", 2.0),), True)
    )


def draw_done(count: int) -> Any:
    done = tuple(np.geomspace(10, 1e6, 9) for _ in range(count))
    return charts.draw_distribution(charts.Distribution(names(count), done, (9,) * count), "t")


def draw_bars(count: int) -> Any:
    rows = [
        charts.ParticipantsRow(f"ε = {0.01 * k:g}, adap-tt-star", 1e3 * k, 1234e3 * k, 1e8, 9e2)
        for k in range(1, count + 1)
    ]
    return charts.draw_participants(rows, limit=1e8)


def draw_chances(count: int) -> Any:
    share, low = (0.1, 0.6, 0.9, 1.0), (0.05, 0.5, 0.8, 0.95)
    lines = [charts.PowerLine(name, LEVELS, share, low, share, share) for name in names(count)]
    return charts.draw_power(lines, 9.0)


def draw_days(count: int, start: date | None = date(2027, 3, 1)) -> Any:
    rows = [
        charts.EndRow(f"{name}, continuous", 30.0 * k, 45.0 * k, 90.0 * k, k % 2 == 0)
        for k, name in enumerate(shorten_names(names(count)), 1)
    ]
    return charts.draw_ends(rows, start)


def draw_rows(arms: int) -> Any:
    """Differences, of which as many are drawn as there is room for."""
    rows = tuple(
        charts.ForestRow(name, 0.1 * place - 0.4, (0.1 * place - 0.7, 0.1 * place), place == 1)
        for place, name in enumerate(names(arms)[:MOST_SHOWN])
    )
    about = ("difference from", (-1.0, 1.0), arms, False, rows[-1].name)
    return charts.draw_forest(charts.Forest(rows, *about))


MANY: dict[str, Callable[[int], Any]] = {
    "draw_means": lambda arms: draw_trial(arms, True),
    "draw_evidence": lambda arms: draw_trial(arms, False),
    "draw_path": lambda arms: charts.draw_path(path(arms)),
    "draw_allocation": draw_shares,
    "draw_enrolment": draw_sites,
    "draw_forest": draw_rows,
}
"""Pictures of arms or sites, of which there may be many."""
FEW: dict[str, Callable[[int], Any]] = {
    "draw_samples_by_epsilon": draw_strategies,
    "draw_lines": draw_levels,
    "draw_distribution": draw_done,
    "draw_participants": draw_bars,
    "draw_power": draw_chances,
    "draw_ends": draw_days,
    "draw_ends in months": lambda count: draw_days(count, None),
}
"""Pictures of strategies or levels of privacy."""
