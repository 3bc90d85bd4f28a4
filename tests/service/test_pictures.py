"""Pictures without styles, and what is computed once."""

import re
import threading
import time

import pytest

from discreet.reports import charts
from discreet.service.cache import OnceCache
from discreet.service.pages.base import without_styles

PEOPLE = [
    charts.ParticipantsRow("no privacy", 10, 20, 30, 15),
    charts.ParticipantsRow("ε", 20, 40, 60, 30),
]


def test_a_picture_keeps_its_look_without_styles() -> None:
    drawn = charts.render(charts.draw_participants(PEOPLE, limit=50)).decode()
    bare = without_styles(drawn)
    assert "style" in drawn
    assert "style" not in bare
    for name in ("stroke-width", "font-size", "font-family", "text-anchor"):
        assert f" {name}=" in bare
    colours = set(re.findall(r"stroke: (#\w+)", drawn))
    assert colours == set(re.findall(r'stroke="(#\w+)"', bare))


def test_words_in_a_picture_are_left_alone() -> None:
    words = ' style="fill: red" &lt;style&gt;'
    bare = without_styles(f'<svg><text style="fill: #ffffff; x: 1">{words}</text></svg>')
    assert words in bare
    assert '<text fill="none">' in bare


def test_what_many_want_is_computed_once() -> None:
    kept, made = OnceCache[int](2), []

    def make() -> int:
        time.sleep(0.05)
        made.append(1)
        return len(made)

    threads = [threading.Thread(target=kept.get, args=("a", make)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert kept.known("a")
    for key in ("b", "c"):
        kept.get(key, make)
    assert not kept.known("a")
    assert kept.get("a", make) == 4


def test_what_failed_is_tried_again_and_what_is_old_too() -> None:
    kept = OnceCache[int](2, seconds=-1.0)

    def fail() -> int:
        raise RuntimeError("not now")

    with pytest.raises(RuntimeError, match="not now"):
        kept.get("a", fail)
    assert kept.get("a", lambda: 1) == 1
    assert kept.get("a", lambda: 2) == 2
