"""Pictures are measured, not trusted: no text of a picture reaches into another or out
of the picture, and none is smaller than people can read.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from discreet.reports import charts
from discreet.reports.arms import MOST_SHOWN, arms_shown, left_out_words, short_names
from discreet.reports.charts.lines import Level, Line, Lines, draw_lines
from discreet.reports.charts.style import TYPE, WIDTH, any_letters, new_figure
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
    shown = tuple(arms_shown(run.means[-1], run.evidence[-1] >= 1, [arms - 1]))
    people = run.samples.astype(np.int64)
    if means:
        about = (arms - 1, "private mean (more is better)", (0.0, 1.0), shown)
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
        charts.Curve("bet-se", name, LEVELS, middle, low, high, (0,) * 4)
        for name in short_names(names(count))
    ]
    bound = tuple((level, 5 / level) for level in LEVELS)
    return charts.draw_samples_by_epsilon(
        charts.EpsilonData("title " * 12, "mean", tuple(curves), bound, 0.02)
    )


def draw_levels(count: int) -> Any:
    lines = [
        Line("bet-se", name, LEVELS, tuple(9 / e for e in LEVELS), (0,) * 4, look)
        for look, name in enumerate(short_names(names(count)))
    ]
    return draw_lines(Lines("t", "β", "people", tuple(lines), (Level("lower bound", 2.0),), True))


def draw_done(count: int) -> Any:
    done = tuple(np.geomspace(10, 1e6, 9) for _ in range(count))
    return charts.draw_distribution(charts.Distribution(names(count), done, (9,) * count), "t")


def draw_bars(count: int) -> Any:
    rows = [
        charts.PeopleRow(f"ε = {0.01 * k:g}, adap-tt-star", 1e3 * k, 1234e3 * k, 1e8, 9e2)
        for k in range(1, count + 1)
    ]
    return charts.draw_people(rows, limit=1e8)


MANY: dict[str, Callable[[int], Any]] = {
    "draw_means": lambda arms: draw_trial(arms, True),
    "draw_evidence": lambda arms: draw_trial(arms, False),
    "draw_path": lambda arms: charts.draw_path(path(arms)),
    "draw_allocation": draw_shares,
    "draw_enrolment": draw_sites,
}
"""Pictures of arms or sites, of which there may be many."""
FEW: dict[str, Callable[[int], Any]] = {
    "draw_samples_by_epsilon": draw_strategies,
    "draw_lines": draw_levels,
    "draw_distribution": draw_done,
    "draw_people": draw_bars,
}
"""Pictures of strategies or levels of privacy."""


def faults(figure: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What is wrong with the texts that are really drawn."""
    from matplotlib.text import Text

    drawn = list[Text]()
    draw = Text.draw

    def note(text: Text, *args: Any, **kwargs: Any) -> Any:
        if text.get_text().strip() and text.get_visible():
            drawn.append(text)
        return draw(text, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Text, "draw", note)
        with any_letters():
            figure.draw_without_rendering()
    assert len(drawn) > 1
    whole = figure.bbox
    boxes = [text.get_window_extent().padded(-0.5) for text in drawn]
    for text, box in zip(drawn, boxes, strict=True):
        if float(text.get_fontsize()) < TYPE:
            yield f"{text.get_text()!r} is small"
        if box.x0 < whole.x0 or box.x1 > whole.x1 or box.y0 < whole.y0 or box.y1 > whole.y1:
            yield f"{text.get_text()!r} leaves the picture"
    for (one, first), (other, second) in combinations(zip(drawn, boxes, strict=True), 2):
        if first.overlaps(second):
            yield f"{one.get_text()!r} and {other.get_text()!r} overlap"


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        *((kind, count) for kind in MANY for count in (2, 5, 13, 100)),
        *(("draw_means", count) for count in (12, 30)),  # all go by one rule
        *((kind, count) for kind in FEW for count in (2, 12)),
    ],
)
def test_texts_have_room(kind: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = {**MANY, **FEW}[kind](count)
    assert list(faults(figure, monkeypatch)) == []
    assert figure.get_size_inches()[0] == WIDTH
    said = [text.get_text().replace("\n", " ") for text in figure.findobj(match=has_words)]
    missing = left_out_words(MOST_SHOWN, count, "sites" if kind == "draw_enrolment" else "arms")
    if kind in MANY and count > MOST_SHOWN:
        assert any(missing in words for words in said)


def has_words(artist: Any) -> bool:
    return hasattr(artist, "get_text")


def test_every_chart_is_measured() -> None:
    assert {name for name in charts.__all__ if name.startswith("draw_")} <= MANY.keys() | FEW.keys()


def test_texts_that_have_no_room_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = new_figure(2.0)
    figure.text(0.1, 0.5, "one name", fontsize=TYPE)
    figure.text(0.2, 0.52, "another", fontsize=TYPE)
    figure.text(0.9, 0.1, "a longer one", fontsize=TYPE)
    figure.text(0.1, 0.9, "small print", fontsize=TYPE - 1)
    assert list(faults(figure, monkeypatch)) == [
        "'a longer one' leaves the picture",
        "'small print' is small",
        "'one name' and 'another' overlap",
    ]


def test_which_arms_matter() -> None:
    means = np.r_[np.linspace(0, 1, 20), 5.0, np.nan]
    out = np.arange(22) == 20  # an arm that is out, whose last mean was mostly noise
    assert arms_shown(means, out, [0, None]) == [0, *range(9, 20)]
    assert arms_shown([0.3, 0.2]) == [0, 1]
    assert left_out_words(12, 100) == "12 of 100 arms; 88 are left out"


def test_names_that_are_cut_stay_apart() -> None:
    found = short_names([ODD[0], ODD[1], "tea"])
    assert found == ["1: Amoxicillin… rmacist", "2: Amoxicillin… rmacist", "tea"]
