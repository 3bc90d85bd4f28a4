"""Numbers and phrases for people."""

import math

import pytest

import discreet
from discreet import bet_se, words
from discreet.scale import Scale
from discreet.trials.aloud import SAID, plainly
from discreet.trials.conduct import MEANS


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1234567, "1.23M"), (999.6, "1k"), (12, "12"), (3.2e10, "32G"), (math.nan, "–")],
)
def test_short(number: float, shown: str) -> None:
    assert words.short(number) == shown


@pytest.mark.parametrize(
    ("count", "sentence", "picture", "full"),
    [
        (514.2, "515", "515", "515"),
        (999_999.0, "999,999", "999,999", "999,999"),
        (999_999.5, "1 M", "1,000,000", "1,000,000"),
        (1_234_567.0, "1.23 M", "1.23M", "1,234,567"),
        (3.2e9, "3.2 G", "3.2G", "3,200,000,000"),
        (1.5e12, "1.5 T", "1.5e+03G", "1.500e+12"),
    ],
)
def test_people(count: float, sentence: str, picture: str, full: str) -> None:
    assert words.people(count) == sentence
    assert words.short_people(count) == picture
    assert words.full_people(count) == full


def test_what_is_unknown() -> None:
    assert words.people(None) == "no end"
    assert words.known(None, "g") == words.price(None) == "–"
    assert words.level(None) == "none"
    assert words.shown_name("mine") == "mine"


def test_what_is_long() -> None:
    assert words.cut("a" * 24) == "a" * 24
    assert words.cut("a" * 20 + "b" * 9) == "a" * 15 + "… " + "b" * 7
    assert words.listed(["a", "b"], 2) == "a, b"
    assert words.listed(["a", "b", "c"], 2) == "a, b …"
    assert [words.ratio(value) for value in (1.254, 1234.5)] == ["× 1.25", "× 1,234"]


def test_promises_in_plain_words_first() -> None:
    """Programs keep the phrases they know; people read sentences."""
    reason = discreet.recommended(1.0).reason
    assert words.PROVED in reason
    said = words.reason_words(reason)
    assert words.PROVED not in said
    assert said.endswith(
        ". It is proved that it keeps its error rate, and that it stops if one arm is best"
    )
    shown = [
        words.privacy_words(one.privacy) for one in (bet_se(0.05, 1), bet_se(0.05, trust="none"))
    ]
    assert shown == [
        "noise is added to every release (1-global DP)",
        "none, decisions are made from raw outcomes",
    ]


def test_what_records_keep_is_shown_in_plain_words() -> None:
    """Stored sentences stay as they are, and none of them is what is shown."""
    assert set(MEANS.values()) <= set(SAID)
    assert not set(SAID) & set(SAID.values())
    assert [plainly(words) for words in SAID] == list(SAID.values())
    assert plainly("anything else") == "anything else"


def test_an_error_rate_is_about_outcomes_where_their_range_is_known() -> None:
    said, near = bet_se(0.05, 1.0).correctness, bet_se(0.05, 1.0, zeta=0.1).correctness
    for same in (None, Scale()):
        assert words.correctness_words(said, same) == said
    scale = Scale(0, 400, "min")
    assert "for outcomes in the range 0 to 400 and" in words.correctness_words(said, scale)
    assert words.correctness_words(near, scale).endswith("0 to 1 for the range 0 to 400)")
