"""Numbers and phrases for people."""

import math

import pytest

from discreet import bet_se, wording
from discreet.reports.trial_text import explain_privacy, quotes
from discreet.scale import Scale


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1234567, "1.23M"), (999.6, "1k"), (12, "12"), (3.2e10, "32G"), (math.nan, "–")],
)
def test_short(number: float, shown: str) -> None:
    assert wording.format_short(number) == shown


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
    assert wording.format_participants(count) == sentence
    assert wording.format_participants_short(count) == picture
    assert wording.format_participants_full(count) == full


def test_what_is_unknown() -> None:
    assert wording.format_participants(None) == "no end"
    assert wording.format_known(None, "g") == wording.format_cost_of_privacy(None) == "–"
    assert wording.format_epsilon(None) == "none"
    assert wording.format_strategy_name("mine") == "mine"


def test_what_is_long() -> None:
    assert wording.shorten("a" * 24) == "a" * 24
    assert wording.shorten("a" * 20 + "b" * 9) == "a" * 15 + "… " + "b" * 7
    assert wording.join_first(["a", "b"], 2) == "a, b"
    assert wording.join_first(["a", "b", "c"], 2) == "a, b …"
    assert [wording.format_ratio(value) for value in (1.254, 1234.5)] == ["× 1.25", "× 1,234"]


LIKELY = "whatever one participant's outcome was, the probability of everything that is published "


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (
            epsilon,
            f"{LIKELY}would have been at most {times} times (e^ε) as large or as small with "
            f"another outcome (ε = {epsilon:g}). ",
        )
        for epsilon, times in ((0.1, "1.11"), (0.5, "1.65"), (1.0, "2.72"), (8.0, "about 2,980"))
    ]
    + [
        (
            20.0,
            "whatever one participant's outcome was, what is published may have been more than a "
            "million times as likely or as unlikely with another outcome, so that hardly anything "
            "is protected (ε = 20). ",
        ),
    ],
)
def test_privacy_is_said_truly_at_every_level(epsilon: float, said: str) -> None:
    """The factor e^ε is given at every level, and no bound is "at most
    more than".
    """
    assert explain_privacy(epsilon, "1-global DP: x").startswith(f"{said}In technical terms: ")


@pytest.mark.parametrize(
    ("epsilon", "times"),
    [
        (0.001, "1.01"),
        (0.2, "1.23"),
        (0.5, "1.65"),
        (4.0, "54.6"),
        (6.9, "993"),
        (6.9075, "about 1,000"),
        (7.0, "about 1,100"),
        (13.0, "about 442,000"),
        (13.9, ""),
        (1e9, ""),
    ],
)
def test_how_many_times_as_likely(epsilon: float, times: str) -> None:
    assert wording.format_likelihood_ratio(epsilon) == times


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (0.5, "no result would have been more than 1.65 times as likely, or as unlikely."),
        (8.0, "no result would have been more than about 2,980 times as likely, or as unlikely."),
        (
            20.0,
            "a result may have been more than a million times as likely or as unlikely, so "
            "that hardly anything is protected.",
        ),
    ],
)
def test_a_quote_says_privacy_truly_at_every_level(epsilon: float, said: str) -> None:
    protocol = {"strategy": bet_se(0.1, epsilon).to_dict(), "release": "complete"}
    quoted = dict(quotes({"status": {"stopped": False, "actions": []}, "protocol": protocol}))
    assert f": had that outcome been another one, {said}" in " ".join(quoted.values())


def test_an_error_rate_is_about_outcomes_where_their_range_is_known() -> None:
    said, near = bet_se(0.05, 1.0).correctness, bet_se(0.05, 1.0, indifference_zone=0.1).correctness
    for same in (None, Scale()):
        assert wording.describe_correctness(said, same) == said
    scale = Scale(0, 400, "min")
    assert "for outcomes in the range 0 to 400 and" in wording.describe_correctness(said, scale)
    assert wording.describe_correctness(near, scale).endswith("0 to 1 for the range 0 to 400)")
