"""The page of a trial in the field, and what a terminal shows of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import Trial, bet_se, ctb_tt, respond, trial_page, ttucb
from discreet.reports.terminal import render
from discreet.reports.trial import build_status
from discreet.reports.trial_data import Course
from discreet.reports.trial_text import (
    describe_arm_changes,
    describe_enrolment,
    explain_error_rate,
    explain_intervals,
    format_duration,
    list_site_rows,
    note_arm_changes,
)
from discreet.strategies.estimators import SHUFFLED, SIMPLE
from discreet.trials.settings import (
    COMPLETE,
    RANDOMISATION,
    RELEASE,
    SCHEDULED,
)
from discreet.trials.transcript import check_parsed_transcript
from discreet.wording import format_to_precision

EVIL = "<b>Ly&on</b>"
Start = Callable[..., Trial]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def make(**settings: Any) -> Trial:
        chosen = {
            "arms": ["5 mg", "10 mg", "20 mg"],
            "strategy": ttucb(0.1),
            "max_participants": 60,
        }
        return Trial.create(f"sqlite:///{tmp_path}/t.db", "dose", **{**chosen, **settings})

    return make


def enrol(trial: Trial, people: int, site: str | None = None) -> None:
    for one in trial.ask(people, site=site).assignments:
        trial.tell(one.id, float(one.arm == "10 mg"))


def act(action: str, about: Any = None) -> dict[str, Any]:
    return {"action": action, "about": about, "reason": "why", "means": "so"}


# --- words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (604800, "7 days"),
        (86400, "1 day"),
        (43200, "12 hours"),
        (5400, "90 minutes"),
        (60, "1 minute"),
        (1, "1 second"),
        (100.5, "100.5 seconds"),
    ],
)
def test_times_as_people_say_them(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_people_without_a_site_are_counted() -> None:
    sites = [{"name": "Leeds", "participants": 4, "closed": True}]
    assert list_site_rows({"participants": 6, "sites": sites}) == [
        ["Leeds", "4", "closed"],
        ["(not said)", "2", "–"],
    ]
    assert list_site_rows({"participants": 4, "sites": sites}) == [["Leeds", "4", "closed"]]


def test_arms_that_came_and_went() -> None:
    status = {"actions": [act("add-arm", "d"), act("drop-arm", "a"), act("pause")]}
    assert note_arm_changes(status) == {"d": "added later", "a": "dropped by a manager"}
    assert describe_arm_changes(status).startswith(
        "d was added later. a was dropped by a manager: the answer"
    )
    status["actions"].append(act("drop-arm", "d"))
    assert note_arm_changes(status)["d"] == "added later, dropped by a manager"
    assert "d, a were dropped by a manager" in describe_arm_changes(status)


def test_by_the_clock_it_is_said_when_and_not_who() -> None:
    flow: dict[str, Any] = {"participants": 9, "max_participants": 20, "pending": 9, "waiting": 6}
    flow["past_deadline"] = None
    status = {**flow, "stopped": False, "release": RELEASE[SCHEDULED], "next_release": 86_400}
    assert describe_enrolment(status) == (
        "9 of at most 20 participants; 9 outcomes, recorded or not, have not been analysed yet; 6 "
        "of them are analysed after 1970-01-02 00:00:00 UTC."
    )
    assert describe_enrolment({**status, "next_release": None}).endswith(
        "have not been analysed yet."
    )
    complete = {**status, "release": RELEASE[COMPLETE], "next_release": None}
    assert describe_enrolment(complete).endswith(
        "9 outcomes are not recorded; the next interim analysis waits for 6."
    )
    assert describe_enrolment({**complete, "pending": 0}).endswith("; all outcomes are recorded.")
    late = describe_enrolment({**complete, "pending": 0, "past_deadline": 2})
    assert (
        "; all outcomes are recorded or missing. The deadline of 2 participants has passed" in late
    )
    assert describe_enrolment({**complete, "participants": 0}).startswith(
        "Nobody has been enrolled yet"
    )
    assert describe_enrolment({**status, "stopped": True}).endswith(
        "were not analysed, and will not be."
    )


def test_each_arm_dropped_or_added_costs_a_delta() -> None:
    acts = [act("add-arm", "d"), act("drop-arm", "a"), act("pause")]
    status = {"actions": acts, "delta": 0.05, "error_rate": 0.15}
    assert explain_error_rate(status).endswith("at most 0.15, which takes the place of 0.05")
    assert explain_error_rate({**status, "error_rate": None}) == "", "where there is no proof"
    assert explain_error_rate({**status, "actions": acts[2:], "error_rate": 0.05}) == ""


@pytest.mark.parametrize(("kind", "drifts"), [(SIMPLE, True), (SHUFFLED, False)])
def test_which_mean_an_interval_covers(kind: str, drifts: bool) -> None:
    bare: dict[str, Any] = {"arms": [], "recommendation": None}
    bare["randomisation"] = RANDOMISATION[kind]
    words = explain_intervals(bare, "95 %")
    assert words.startswith("With a probability of at least 95 %, the confidence")
    assert "the same for all participants and does not change over time" in words
    assert ("the error probability holds, but the confidence sequences do not" in words) == drifts
    arms = [{"name": "10 mg", "interval": [0.25, 0.68]}, {"name": "20 mg", "interval": [0.65, 1]}]
    said = {**bare, "arms": arms, "recommendation": "20 mg"}
    assert "Confidence sequences may overlap" in explain_intervals(said, "0.95")
    arms[0]["interval"] = [0.25, 0.6]
    assert "Confidence sequences may overlap" not in explain_intervals(said, "0.95")


@pytest.mark.parametrize(
    ("value", "ends", "shown"),
    [
        (0.4625, (0.2546, 0.6771), "0.46"),
        (0.4625, (0.4525, 0.4725), "0.463"),
        (412.3, (381.2, 444.0), "412"),
        (-0.001, (-0.2, 0.2), "0.00"),
        (0.4625, None, "0.4625"),
    ],
)
def test_a_noisy_number_has_the_digits_that_its_interval_supports(
    value: float, ends: tuple[float, float] | None, shown: str
) -> None:
    assert format_to_precision(value, ends) == shown


# --- pages ----------------------------------------------------------------------------


def section(page: str, title: str) -> str:
    """The text of a section, tags and all."""
    return page.split(f">{title}</h2>")[1].split("</section>", maxsplit=1)[0]


def test_the_page_of_a_trial_in_the_field(start: Start) -> None:
    trial = start(sites=["Leeds", EVIL], deadline=604800)
    enrol(trial, 5, "Leeds")
    trial.manage("pause", "a <i>holiday</i> & more")
    page = trial_page(trial.transcript())
    assert "NOT VERIFIED" not in page
    assert "The trial is paused: nobody is assigned" in section(page, "Result")
    trial.manage("resume", "it is over")
    trial.manage("close-site", "no staff", EVIL)
    trial.manage("lower-maximum", "money", 20)
    trial.manage("stop", "enough")
    page = trial_page(trial.transcript())
    assert "NOT VERIFIED" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "The trial was stopped by a manager without a conclusion." in section(page, "Result")
    sites = section(page, "Participant flow")
    assert "<td>Leeds</td><td>5</td><td>ended</td>" in sites
    assert "<td>&lt;b&gt;Ly&amp;on&lt;/b&gt;</td><td>0</td><td>closed</td>" in sites
    acts = section(page, "Protocol changes")
    assert "a &lt;i&gt;holiday&lt;/i&gt; &amp; more" in acts
    names = ("Pause", "Resume", "Close a site", "Stop for good")
    assert all(f"<td>{name}</td>" in acts for name in names)
    assert "<td>20</td><td>5 participants, 5 interim analyses</td>" in acts
    assert "a maximum only says when the last look is" in acts
    promised = section(page, "Guarantees and assumptions")
    assert "Error probability" not in promised, "it was stopped by a manager"
    assert "Error rate" not in promised
    assert "Deadline: an outcome counts if it is recorded within 7 days" in promised
    protocol = section(page, "Prespecified design")
    for name, value in {
        "Allocation": "in the order that the strategy gives",
        "Sites": "Leeds, &lt;b&gt;Ly&amp;on&lt;/b&gt;",
        "Deadline of an outcome": "7 days from assignment",
        "Interim analyses": "after every outcome, in the order of assignment",
        "Maximum": "60 participants",
    }.items():
        assert f"<dt>{name}</dt><dd>{value}</dd>" in protocol


def test_an_end_at_the_maximum_is_no_end_by_hand(start: Start) -> None:
    trial = start(max_participants=6)
    enrol(trial, 6)
    page = trial_page(trial.transcript())
    assert "The trial ended at its maximum without a conclusion." in page
    assert "None: the record contains no management action." in page
    assert "and whether they are open now" not in page
    assert "<dt>Sites</dt><dd>anywhere</dd>" in page


def play(trial: Trial, people: int) -> None:
    """Enrol that many people, and tell what they did."""
    while people > 0 and (batch := trial.ask(min(people, 40))).assignments:
        trial.tell_many({one.id: float(one.arm == "10 mg") for one in batch.assignments})
        people -= len(batch.assignments)


def test_arms_that_come_and_go(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    """bet-se by coins: an arm is added, with no means before, and one is dropped."""
    trial = start(strategy=bet_se(1e-90, epsilon=5.0), max_participants=600)
    play(trial, 100)
    trial.manage("add-arm", "a new dose", "40 mg")
    play(trial, 100)
    trial.manage("drop-arm", "side effects", "5 mg")
    play(trial, 600)
    said = trial.transcript()
    course = Course(said)
    assert check_parsed_transcript(said, watch=course.watch).intact
    made = course.path()
    assert made.names == ("5 mg", "10 mg", "20 mg", "40 mg")
    assert made.means.shape == (len(made.people), 4)
    assert np.isnan(made.means[0, 3])
    assert not np.isnan(made.means[-1]).any()
    page = trial_page(said)
    assert "NOT VERIFIED" not in page
    result = section(page, "Result")
    assert "40 mg was added later." in result
    assert "5 mg was dropped by a manager: the answer is about the arms that were left." in result
    assert "<td>added later</td>" in result
    assert "<td>dropped by a manager</td>" in result
    assert "If sites differ or outcomes drift, the error probability holds" in result
    assert "not analysed, as the arm was dropped" in section(page, "Participant flow")
    assert "so far was 10 mg. It was not found to be the best." in result
    compared = section(page, "Differences between the arms")
    assert "which did best so far and was not found to be the best" in compared
    assert "With a probability of at least 100 %" in compared
    render(build_status(trial.status()))
    words = " ".join(capsys.readouterr().out.split())
    assert "40 mg was added later. 5 mg was dropped by a manager: the answer" in words
    assert "If sites differ or outcomes drift, the error probability holds" in words
    assert "…" not in words


# --- terminal -------------------------------------------------------------------------


def test_a_terminal_shows_sites_and_operators(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = start(strategy=ctb_tt(epsilon=1.0, delta=0.1), deadline=3600)
    for one in trial.ask(4, site="[red]Leeds").assignments:
        trial.answer(one.id, respond(1.0, 1.0))
    trial.manage("raise-maximum", "more [bold]money", 80)
    trial.manage("pause", "a holiday")
    render(build_status(trial.status()))
    words = " ".join(capsys.readouterr().out.split())
    assert "is paused: nobody is assigned until a manager resumes it." in words
    assert "[red]Leeds 4 open" in words
    assert "raise-maximum 80 more [bold]money the error rate holds" in words
    assert "pause – a holiday nobody is assigned during the pause" in words
    assert "4 of at most 80 participants" in words
    assert "Error probability: if the outcomes of each arm are independent" in words
    assert "within 1 hour of" in words
    trial.manage("stop", "enough")
    render(build_status(trial.status()))
    assert "was stopped by a manager without a conclusion" in capsys.readouterr().out
