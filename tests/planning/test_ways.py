"""Plans with a calendar: waiting beside continuous enrolment, people and days."""

import math
import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import Bernoulli, Delay, InvalidInputError, bet_se, plan, simulate
from discreet.cli import main
from discreet.cli.options import Arms, Rate
from discreet.cli.plan import _read_gap
from discreet.planning.rows import compute_end_day
from discreet.reports.plan import (
    build_plan,
    build_plan_sections,
    explain_low_cost,
    explain_slower,
    qualify_cost,
    warn_of_few_correct,
)
from discreet.reports.terminal import render
from discreet.service.pages.new_trial import plan_words
from discreet.wording import format_day

ARMS = Bernoulli((0.2, 0.7))
DAYS: dict[str, Any] = {"accrual": 2, "delay": Delay.exponential(10), "deadline": 30}


def test_both_ways() -> None:
    found = plan(ARMS, 1.0, 0.1, runs=20, **DAYS)
    ways = [(way.epsilon, way.enrolment) for way in found.enrolments]
    both = ("waiting", "continuous")
    assert ways == [(None, way) for way in both] + [(1.0, way) for way in both]
    for way in found.enrolments:
        strategy = bet_se(0.1, way.epsilon, "none" if way.epsilon is None else "global")
        alone = simulate(ARMS, strategy, 20, 0, enrolment=way.enrolment, **DAYS)
        assert alone.days is not None
        assert alone.pipeline is not None
        assert way.days.mean == pytest.approx(alone.days.mean())
        assert way.participants.mean == pytest.approx(alone.samples.mean())
        assert way.pipeline == pytest.approx(alone.pipeline.mean())
    row = found.per_epsilon[0]
    assert row.participants == found.enrolments[2].participants
    described = found.to_dict()
    assert described["calendar"]["delay"]["kind"] == "exponential"
    assert described["enrolments"][3]["enrolment"] == "continuous"


def test_rows_follow_the_enrolment() -> None:
    found = plan(ARMS, 1.0, 0.1, runs=20, enrolment="continuous", **DAYS)
    assert found.per_epsilon[0].participants == found.enrolments[3].participants


def test_one_way_where_there_is_one() -> None:
    """Without a deadline nobody can be assigned ahead; dp-se waits in any case."""
    found = plan(ARMS, 1.0, 0.1, runs=10, strategies=["bet-se", "dp-se"], accrual=2, delay=10)
    assert {way.enrolment for way in found.enrolments} == {"waiting"}
    assert [way.strategy for way in found.enrolments] == ["bet-se", "bet-se", "dp-se"]
    assert found.per_epsilon[1].privacy_cost is not None
    with pytest.raises(InvalidInputError, match="for bet-se only"):
        plan(ARMS, 1.0, 0.1, runs=10, strategies=["dp-se"], **DAYS)
    with pytest.raises(InvalidInputError, match="learns from every answer"):
        plan(ARMS, 1.0, 0.1, runs=10, strategies=["ttucb"], accrual=2)


@pytest.mark.parametrize(
    ("accrual", "a_day"), [("2", 2), ("2/day", 2), ("14/week", 2), ("60.875/month", 2)]
)
def test_people_of_a_day_a_week_or_a_month(accrual: str, a_day: float) -> None:
    assert Rate().convert(accrual, None, None) == pytest.approx(a_day)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--accrual", "2/year"], "is not a rate"),
        (["--accrual", "x/week"], "is not a rate"),
        (["--start", "tomorrow"], "is not a day"),
        (["--start", "2027-03-01"], "say also accrual"),
    ],
)
def test_what_is_no_calendar(options: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["plan", "--means", "0.2,0.7", *options])
    assert result.exit_code == 2
    assert words in result.stderr
    with pytest.raises(InvalidInputError, match="start must be a day"):
        plan(ARMS, 1.0, 0.1, accrual=2, start=datetime(2027, 3, 1))


def test_arms_with_a_gap_may_have_names() -> None:
    known = {"means": None, "benchmark": None, "names": ("10 mg", "20 mg")}
    shapes = _read_gap(2, 0.1, 0.5, Arms(known, None, {})).shapes
    assert {shape.names for shape in shapes.values()} == {("10 mg", "20 mg")}
    with pytest.raises(InvalidInputError, match="either --means"):
        _read_gap(2, 0.1, 0.5, Arms({**known, "means": (0.1, 0.2)}, None, {}))


def test_an_end_beyond_the_calendar_is_unknown() -> None:
    assert compute_end_day(date(2027, 3, 1), 1e8) is None
    assert compute_end_day(date(2027, 3, 1), None) is None
    assert compute_end_day(date(2027, 3, 1), 0.5) == date(2027, 3, 2)


def test_nothing_without_accrual() -> None:
    found = plan(ARMS, 1.0, 0.1, runs=10)
    assert not found.enrolments
    assert "calendar" not in found.to_dict()
    assert "enrolments" not in found.to_dict()


def test_what_a_reader_would_stumble_over_is_said() -> None:
    found = plan(ARMS, 1.0, 0.1, runs=10, **DAYS)
    bare, row = found.enrolments[0], found.per_epsilon[0]
    slow = replace(bare, days=replace(bare.days, mean=9999.0), releases=67.0)
    words = explain_slower(replace(found, enrolments=(slow, *found.enrolments[1:])))
    assert "takes longer here" in words
    assert "67 interim analyses" in words
    quick = replace(bare, days=replace(bare.days, mean=1.0))
    assert not explain_slower(replace(found, enrolments=(quick, *found.enrolments[1:])))
    none = replace(row, correct=0.0, unstopped=10)
    short = replace(found, max_participants=9, per_epsilon=(none,))
    assert warn_of_few_correct(short, none).startswith("none of the simulated trials")
    assert "cut short" in qualify_cost(short)
    assert not warn_of_few_correct(found, row)
    assert not qualify_cost(found)


def test_shown(capsys: pytest.CaptureFixture[str]) -> None:
    render(build_plan(plan([ARMS, Bernoulli((0.1, 0.9))], 1.0, 0.1, runs=10, **DAYS)))
    text = capsys.readouterr().out
    assert "Participants and days\n" in text
    assert (
        re.findall(r"(?m)^  (0\..*?)  .*\bcontinuous\b", text)
        == ["0.2, 0.7"] * 2 + ["0.1, 0.9"] * 2
    )
    assert "2 participants come a day" in text
    found = plan(ARMS, 1.0, 0.1, runs=10, **DAYS)
    titles = [section.title for section in build_plan_sections(found)]
    assert titles == [
        "The answer",
        "Participants and privacy",
        "Participants and days",
        "How to read this",
    ]
    dated = plan(ARMS, 1.0, 0.1, runs=10, start=date(2027, 3, 1), **DAYS)
    (_, _, days, _) = build_plan_sections(dated)
    kinds = [type(part).__name__ for part in days.parts]
    assert kinds == ["Paragraph", "Figure", "Table", "Note", "Table"]
    render(build_plan(dated))
    text = capsys.readouterr().out
    assert "Enrolment begins on 1 Mar 2027" in text
    way, end = dated.enrolments[3], dated.enrolments[3].end
    assert end is not None
    assert way.days.q90 is not None
    assert end["q90"] == date(2027, 3, 1) + timedelta(math.ceil(way.days.q90))
    assert format_day(end["mean"]) in text
    assert dated.to_dict()["enrolments"][3]["end"]["q90"] == f"{end['q90']}"
    assert dated.to_frame()["end_q90"].drop_nulls().to_list()[3] == f"{end['q90']}"
    answer = str(build_plan_sections(dated)[0].parts[0])
    assert f"until {format_day(end['mean'])}" in answer
    assert "without privacy, waiting enrolment: " in answer
    plain = plan(ARMS, 1.0, 0.1, runs=10, accrual=2, delay=3)
    assert any("An example" in section.title for section in build_plan_sections(plain))


def test_a_price_below_1_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Other rounds and bets, another strategy, or chance may save more participants
    than hardly any noise costs.
    """
    both = ["bet-se", "dp-se"]
    found = plan(Bernoulli((0.95, 0.05)), 50.0, 0.05, runs=100, seed=1, strategies=both)
    bets, other = sorted(found.per_epsilon, key=lambda row: row.strategy.name)
    assert (bets.privacy_cost or 9) < 0.9995, "is shown as less than 1"
    other = replace(other, privacy_cost=0.5)
    not_saved = "A cost below 1 does not mean that privacy saves participants."
    rounds = "bet-se has other rounds and other bets with noise than without"
    another = "is compared with another strategy, ttucb"
    for rows, said, unsaid in (
        ((bets,), rounds, another),
        ((other,), another, rounds),
        ((bets, other), rounds, "nothing"),
        ((bets, other), another, "nothing"),
    ):
        shown = replace(found, per_epsilon=rows)
        words = explain_low_cost(rows)
        assert words.startswith(not_saved)
        assert said in words
        assert unsaid not in words
        page = str([section.parts for section in build_plan_sections(shown)])
        assert words in page
        render(build_plan(shown))
        assert words in " ".join(capsys.readouterr().out.split())
        assert words in plan_words(shown)
    for price in (None, 1.0, 0.9999, 2.0):
        assert not explain_low_cost([replace(bets, privacy_cost=price)])
