"""Numbers and phrases for people."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet import bet_se, wording
from discreet.reports.plan import plan_page, show_plan
from discreet.reports.trial import trial_page
from discreet.reports.trial_text import act_rows, privacy_sentence, quotes
from discreet.scale import Scale
from discreet.service.pages.audit_trail import grouped
from discreet.service.pages.trial_text import event_words, known_words
from discreet.trials.operations import RECORDED, UNBLIND
from discreet.trials.record import Event
from discreet.trials.status import AuditEntry


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1234567, "1.23M"), (999.6, "1k"), (12, "12"), (3.2e10, "32G"), (math.nan, "–")],
)
def test_short(number: float, shown: str) -> None:
    assert wording.short(number) == shown


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
    assert wording.people(count) == sentence
    assert wording.short_people(count) == picture
    assert wording.full_people(count) == full


def test_one_is_not_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert wording.counted(1, "look") == "1 look"
    assert wording.counted(0, "look") == "0 looks"
    assert wording.counted("1", "person", "people") == "1 person"
    assert wording.counted("1,000", "person", "people") == "1,000 people"
    arms = discreet.Bernoulli([0.9, 0.1])
    days: dict[str, Any] = {"accrual": 1.0, "delay": 1.0, "deadline": 1.0}
    plan = discreet.plan(arms, 1.0, 0.1, runs=1, max_participants=400, **days)
    show_plan(plan)
    url = f"sqlite:///{tmp_path}/trials.db"
    settings: dict[str, Any] = {"max_participants": 50, "sites": ["Leeds"], "deadline": 86_400.0}
    trial = discreet.Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), **settings)
    trial.ask(1, site="Leeds")
    before = known_words(trial.status().to_dict(), False)
    trial.manage("stop", "Nobody comes.")
    said, record = trial.transcript(), trial.record(99)
    trial.close()
    status = said["status"]
    shown = [capsys.readouterr().out, plan_page(plan), trial_page(said)]
    shown += [*before, *known_words(status, False), plan.calendar.words if plan.calendar else ""]
    shown += [event_words(event, ["a", "b"]) for event in record]
    told = re.sub(r"<[^>]*>", "\n", "\n".join(shown))
    for one in ("1 person comes a day", "1 outcome is not in", "after 1 person.", "1 simulated"):
        assert one in told
    many = "people|persons|outcomes|looks|days|runs|trials|simulated trials|numbers|sites|events"
    assert re.findall(rf"(?<![\d.,:–-])1 (?:{many})\b", told) == []


def test_what_is_unknown() -> None:
    assert wording.people(None) == "no end"
    assert wording.known(None, "g") == wording.price(None) == "–"
    assert wording.level(None) == "none"
    assert wording.shown_name("mine") == "mine"


def test_what_is_long() -> None:
    assert wording.cut("a" * 24) == "a" * 24
    assert wording.cut("a" * 20 + "b" * 9) == "a" * 15 + "… " + "b" * 7
    assert wording.listed(["a", "b"], 2) == "a, b"
    assert wording.listed(["a", "b", "c"], 2) == "a, b …"
    assert [wording.ratio(value) for value in (1.254, 1234.5)] == ["× 1.25", "× 1,234"]


def test_promises_in_plain_words_first() -> None:
    """Programs keep the phrases they know; people read sentences."""
    reason = discreet.recommended(1.0).reason
    assert wording.PROVED in reason
    said = wording.reason_words(reason)
    assert wording.PROVED not in said
    assert said.endswith(
        ". It is proved that it keeps its error rate, and that it stops if one arm is best"
    )
    shown = [
        wording.privacy_words(one.privacy) for one in (bet_se(0.05, 1), bet_se(0.05, trust="none"))
    ]
    assert shown == [
        "noise is added to every release (1-global DP)",
        "none, decisions are made from raw outcomes",
    ]


LIKELY = "whatever one person's outcome was, everything that is shown would have been "


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (
            0.1,
            f"{LIKELY}almost as likely with another outcome: the probability changes by a factor "
            "of at most 1.11 (ε = 0.1). ",
        ),
        (
            0.5,
            f"{LIKELY}at most 1.65 times as likely or as unlikely with another outcome (ε = 0.5). ",
        ),
        (
            4.0,
            f"{LIKELY}at most 54.6 times as likely or as unlikely with another outcome (ε = 4). ",
        ),
        (
            8.0,
            f"{LIKELY}at most about 2,980 times as likely or as unlikely with another outcome "
            "(ε = 8). ",
        ),
        (
            20.0,
            "whatever one person's outcome was, what is shown may have been more than a million "
            "times as likely or as unlikely with another outcome, so that hardly anything is "
            "protected (ε = 20). ",
        ),
    ],
)
def test_privacy_is_said_truly_at_every_level(epsilon: float, said: str) -> None:
    """What differs by a large factor is not almost as likely, and no bound is "at most
    more than".
    """
    assert privacy_sentence(epsilon, "1-global DP: x").startswith(f"{said}In technical terms: ")


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
    assert wording.times_as_likely(epsilon) == times


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
    quoted = dict(quotes({"status": {"stopped": False, "acts": []}, "protocol": protocol}))
    assert f": had that outcome been another one, {said}" in " ".join(quoted.values())


def test_an_error_rate_is_about_outcomes_where_their_range_is_known() -> None:
    said, near = bet_se(0.05, 1.0).correctness, bet_se(0.05, 1.0, indifference_zone=0.1).correctness
    for same in (None, Scale()):
        assert wording.correctness_words(said, same) == said
    scale = Scale(0, 400, "min")
    assert "for outcomes in the range 0 to 400 and" in wording.correctness_words(said, scale)
    assert wording.correctness_words(near, scale).endswith("0 to 1 for the range 0 to 400)")


def test_what_operators_do_is_said_in_plain_words_on_pages() -> None:
    """Records, programs and commands keep the words of commands."""
    for action in RECORDED:
        says = {"action": action, "about": "Lyon", "reason": "Nobody comes."}
        act = {"action": action, "about": "Lyon", "reason": "why", "means": "so"}
        line = event_words(Event(0, "manager", json.dumps(says), ""), ["a"])
        (row,) = act_rows({"acts": [act], "smallest_delta": None})
        (call,) = grouped([AuditEntry(1, 0.0, "Ada", None, f"manage {action}", 0)], 9)
        plain = row[0]
        assert plain[:1].isupper()
        assert "-" not in plain
        who = "Staff" if action == UNBLIND else "Manager"
        assert line == f"{who}: {plain[:1].lower()}{plain[1:]} (Lyon). Reason: Nobody comes."
        assert call.call == f"manage: {plain[:1].lower()}{plain[1:]}"
    assert (
        act_rows({"acts": [{**act, "action": "of-another-version"}]})[0][0] == "of-another-version"
    )
