"""Pictures are measured, not trusted: no text of a picture reaches into another or out
of the picture, and none is smaller than people can read.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from discreet.reports import charts
from discreet.reports.charts.style import (
    MOST_SHOWN,
    TYPE,
    WIDTH,
    allow_any_letters,
    choose_arms,
    describe_left_out,
    make_figure,
    shorten_names,
)
from discreet.wording import MAX_NAME_CHARACTERS
from tests.support.pictures import FEW, MANY, ODD


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
        with allow_any_letters():
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
    missing = describe_left_out(MOST_SHOWN, count, "sites" if kind == "draw_enrolment" else "arms")
    if kind in MANY and count > MOST_SHOWN:
        assert any(missing in words for words in said)


def has_words(artist: Any) -> bool:
    return hasattr(artist, "get_text")


def test_every_chart_is_measured() -> None:
    assert {name for name in charts.__all__ if name.startswith("draw_")} <= MANY.keys() | FEW.keys()


def test_texts_that_have_no_room_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = make_figure(2.0)
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
    assert choose_arms(means, out, [0, None]) == [0, *range(9, 20)]
    assert choose_arms([0.3, 0.2]) == [0, 1]
    assert describe_left_out(12, 100) == "12 of 100 arms; 88 are left out"


def test_names_that_are_cut_stay_apart() -> None:
    """By the part in which they differ; by a number only if that is not enough."""
    sessions = [f"Cognitive therapy, {count} sessions at the clinic" for count in (8, 16)]
    found = shorten_names([*sessions, "tea", ODD[0], ODD[1]])
    assert found[:3] == ["Cogniti… 8 sessions at …", "Cogniti… 16 sessions at…", "tea"]
    assert len(set(found)) == 5
    assert all(len(name) <= MAX_NAME_CHARACTERS for name in found)
    twins = ["a very long name of an arm, the one"] * 2
    assert shorten_names(twins) == ["1: a very long… the one", "2: a very long… the one"]
    within = "x" * 40
    assert len(set(shorten_names([f"{within}{n}{within}" for n in range(3)]))) == 3
    number = [f"1: {twins[0]}"[:24], *twins]
    assert len(set(shorten_names(number))) == 3
