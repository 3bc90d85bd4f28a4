"""A trial's report as an audit trail prints it: differences, flow of people, sentences to
quote, dates. Nothing in it is made of anything but the public record.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import InvalidInputError, Trial, adap_tt, bet_se, trial_page, ttucb
from discreet.cli import main
from discreet.reports.trial import _p_value, find_audit_dates
from discreet.reports.trial_data import Course, compare
from discreet.reports.trial_text import state_conclusion, write_error_quote, write_privacy_quote
from discreet.service.pages.trial_text import known_words
from discreet.strategies.betting.run import BettingRun
from discreet.trials.protocol import Protocol
from discreet.trials.record import AuditEntry
from discreet.trials.transcript import check_parsed_transcript
from tests.support.keys import seeded_keys

ARMS = ["placebo", "new drug"]


def played(folder: Path, people: int = 400, told: int | None = None, **settings: Any) -> Trial:
    """A trial of two arms, one of which always helps; of each batch only so many
    outcomes are told.
    """
    chosen: dict[str, Any] = {"arms": ARMS, "strategy": bet_se(0.05, epsilon=2.0)}
    chosen |= {"max_participants": people, **settings}
    trial = Trial.create(f"sqlite:///{folder}/t.db", "drug", **chosen)
    sites = settings.get("sites") or [None]
    for turn in range(people):
        batch = trial.ask(5 if settings.get("sites") else 20, site=sites[turn % len(sites)])
        if not batch.assignments:
            break
        for one in batch.assignments[:told]:
            trial.tell(one.id, float(one.arm == ARMS[1]))
    return trial


def section(page: str, title: str) -> str:
    return page.split(f">{title}</h2>")[1].split("</section>", maxsplit=1)[0]


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


# --- differences ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("drug")
    return played(folder, sites=["Leeds", "Lyon"], deadline=604800).transcript()


def test_differences_from_the_best_and_from_a_control(said: dict[str, Any]) -> None:
    assert said["status"]["conclusive"]
    best = text(section(trial_page(said), "Differences between the arms"))
    assert "compared with new drug, which was found to be the best" in best
    control = text(section(trial_page(said, "placebo"), "Differences between the arms"))
    assert "compared with placebo, as chosen by those who made this page" in control
    course = Course(said)
    check_parsed_transcript(said, watch=course.watch)
    for name, reference, page in (("placebo", None, best), ("new drug", "placebo", control)):
        compared = compare(course, reference)
        assert compared is not None
        (row,) = compared.rows
        low, high = row.interval
        ends = f"{100 * low:.0f} to {100 * high:.0f}"
        assert f"{name} {100 * row.difference:+.0f} {ends} {_p_value(row.p_value)}" in page
    with pytest.raises(InvalidInputError, match="one of placebo, new drug; got 'aspirin'"):
        trial_page(said, "aspirin")


def test_pictures_of_the_result_stand_side_by_side(said: dict[str, Any]) -> None:
    """Where there is room: on paper they would fill a page each."""
    (group,) = re.findall(r'<div class="figures">(.*?)</div>', trial_page(said), re.DOTALL)
    assert group.count("<figure>") == 3


@pytest.mark.parametrize(("span", "sign"), [((0.0, 100.0), 100), ((-1.0, 1.0), 2)])
def test_differences_are_in_the_units_of_outcomes(
    tmp_path: Path, span: tuple[float, float], sign: int
) -> None:
    """Of outcomes of which less is better, the arm that does better is below 0."""
    chosen: dict[str, Any] = {"strategy": ttucb(0.1), "range": span, "direction": "min"}
    arms = ["slow", "fast"]
    trial = Trial.create(f"sqlite:///{tmp_path}/t.db", "ms", arms, max_participants=80, **chosen)
    while batch := trial.ask(10).assignments:
        trial.tell_many({one.id: span[int(one.arm == "slow")] for one in batch})
    said = trial.transcript()
    course = Course(said)
    assert check_parsed_transcript(said, watch=course.watch).intact
    compared = compare(course, "slow")
    assert compared is not None
    (row,) = compared.rows
    assert row.difference == pytest.approx(-sign)
    assert -sign <= row.interval[0] < row.interval[1] < 0
    assert row.p_value < 0.1


def test_all_pairs_and_arms_that_were_added_are_paid_for(tmp_path: Path) -> None:
    """Three arms share one δ in three pairs; an arm that is added has its own."""
    url, strategy = f"sqlite:///{tmp_path}/t.db", bet_se(4e-20, epsilon=4.0)
    trial = Trial.create(url, "dose", ["a", "b", "c"], strategy, max_participants=4000)
    for added in (False, True):
        if added:
            trial.manage("add-arm", "a new dose", "d")
        while not all(arm.count for arm in trial.status().arms):
            batch = trial.ask(40).assignments
            trial.tell_many({one.id: float(one.arm in "bd") for one in batch})
        said = trial.transcript()
        course = Course(said)
        assert check_parsed_transcript(said, watch=course.watch).intact
        compared = compare(course, "a")
        assert compared is not None
        assert course.replay is not None
        run = course.replay.state.run
        assert compared.level == pytest.approx(1 - 4e-20 * (1 + added))
        for row in compared.rows:
            pair = run.compare(row.arm, 0)
            assert pair is not None
            assert row.interval == pytest.approx(pair.interval(4e-20 / 3))
            assert row.p_value == pytest.approx(min((1 + added) * 3 * pair.p_value(), 1))
        assert [row.arm for row in compared.rows] == [1, 2, 3][: 2 + added]


@pytest.mark.parametrize(
    ("value", "words"),
    [(1e-99, "< 0.001"), (0.001, "0.001"), (0.0121, "0.013"), (0.2, "0.20"), (1.0, "> 0.99")],
)
def test_p_values_are_never_rounded_down(value: float, words: str) -> None:
    assert _p_value(value) == words


# --- an end without a conclusion ------------------------------------------------------


def test_an_inconclusive_end_has_no_winner_and_no_guarantee(tmp_path: Path) -> None:
    said = played(tmp_path, 16, strategy=bet_se(1e-4, epsilon=2.0)).transcript()
    assert not said["status"]["conclusive"]
    page = trial_page(said)
    assert "← best" not in page
    assert "found to be the best." not in section(page, "Result").replace("was not found", "")
    rests = text(section(page, "Guarantees and assumptions"))
    assert "Error probability" not in rests
    quoted = text(section(page, "Sentences to quote"))
    assert "The trial ended without a conclusion. No arm was found to be the best" in quoted
    assert "at most 0.01 %" not in quoted


def test_a_conclusive_end_has_both(said: dict[str, Any]) -> None:
    page = trial_page(said)
    assert "← best" in page
    quoted = text(section(page, "Sentences to quote"))
    assert "the probability of eliminating it is at most 5 %, at all interim analyses" in quoted
    assert "that was not recorded within 7 days of the assignment counted as the worst" in quoted
    assert "2-differentially private (ε = 2)" in quoted
    assert "more than 7.39 times as likely" in quoted


# --- flow of people -------------------------------------------------------------------


def test_the_flow_is_that_of_the_record(said: dict[str, Any]) -> None:
    page = trial_page(said, assessed=1000)
    flow = text(section(page, "Participant flow"))
    people = said["status"]["participants"]
    stated = "1000 participants, as stated by those who publish this; not in the record"
    assert f"{stated} not randomised: {1000 - people}" in flow
    sites = {"Leeds": [0, 0], "Lyon": [0, 0]}
    for event in said["events"]:
        for arm in event.get("arms", ()):
            sites[event["site"]][arm] += 1
    for arm, name in enumerate(ARMS):
        counts = [sites[site][arm] for site in ("Leeds", "Lyon")]
        assert f"{name} {counts[0]} {counts[1]} {sum(counts)} {sum(counts)}" in flow
    assert "by the record" not in page.lower()
    with pytest.raises(InvalidInputError, match="assessed"):
        trial_page(said, assessed=people - 1)


def test_how_many_are_missing_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trials that differ in whose outcomes were told have the same flow: until the
    deadline is over, and whatever was missing then.
    """
    pages = []
    for told in (0, 7):
        folder = tmp_path / str(told)
        folder.mkdir()
        seeded_keys(monkeypatch)
        trial = played(folder, 40, told)
        flow = section(trial_page(trial.transcript()), "Participant flow")
        pages.append(flow)
        assert "How many outcomes are missing is not public" in flow
        assert "not analysed yet: " in text(flow)
    assert pages[0] == pages[1]


# --- words ----------------------------------------------------------------------------


def about(strategy: Any, **settings: Any) -> dict[str, Any]:
    randomisation = strategy.spec.randomisations[0]
    protocol = Protocol(
        "a", ("a", "b"), strategy, randomisation=randomisation, max_participants=90, **settings
    )
    status = {"stopped": True, "conclusive": True, "recommendation": "b", "smallest_delta": None}
    status |= {"error_rate": strategy.delta if strategy.is_proved else None, "actions": []}
    status["guarantee"] = protocol.describe_guarantee()
    return {"protocol": protocol.to_dict(), "status": status}


def test_quotes_say_what_holds_and_nothing_else() -> None:
    assert write_privacy_quote(about(ttucb(0.1))).startswith("No privacy is promised")
    local = write_privacy_quote(about(bet_se(0.1, epsilon=1.0, trust="local")))
    assert "randomised before it was sent" in local
    assert "at which an outcome was recorded" not in local
    assert "at which an outcome was recorded" in write_privacy_quote(
        about(bet_se(0.1, epsilon=1.0))
    )
    clock = write_privacy_quote(about(bet_se(0.1, epsilon=1.0), release="scheduled", deadline=60.0))
    assert "at which an outcome was recorded" not in clock
    rare = write_privacy_quote(about(bet_se(0.1, epsilon=1.0, gamma=1e-6)))
    assert "(1, 1e-06)-differentially private" in rare
    assert "apart from a probability of 1e-06" in rare
    assert "zero-concentrated" in write_privacy_quote(about(bet_se(0.1, rho=0.5)))
    empirical = adap_tt(epsilon=1.0, delta=0.1, threshold="empirical")
    assert "No error probability is claimed: no guarantee" in write_error_quote(about(empirical))
    near = write_error_quote(about(bet_se(0.1, epsilon=1.0, indifference_zone=0.05)))
    assert "If one arm is at least as good as every other for the participants of each" in near
    assert "less than 0.05 worse than it for the participants of at least one round" in near
    assert "as long as allocation is concealed" in near
    pace = write_error_quote(about(bet_se(0.1, epsilon=1.0), enrolment="continuous", deadline=60.0))
    assert "sizes of rounds did not depend on the assignments or outcomes" in pace
    goes_on = about(ttucb(0.1))
    goes_on["status"]["stopped"] = False
    assert "nothing can be said" in write_error_quote(goes_on)


def test_a_conclusion_is_stated_once_with_its_condition(tmp_path: Path) -> None:
    trial = played(tmp_path)
    status = trial.status().to_dict()
    words = state_conclusion(status)
    assert words == (
        "new drug was identified as the best arm by a prespecified procedure whose error "
        "probability is at most 5 %. If one arm is at least as good as every other for the "
        "participants of each round, the probability of eliminating it is at most 5 %, at all "
        "interim analyses together."
    )
    page = text(trial_page(trial.transcript()))
    assert page.count(words) == 2, "the result and the sentence to quote"
    assert page.count("unique best arm") == 0, "no second condition"
    assert words in known_words(status, blind=False)


def test_after_a_drop_all_claims_are_about_the_remaining_arms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An arm that was best and dropped leaves no claim about itself, and each drop costs
    a δ.
    """

    def play(name: str, turns: int, epsilon: float) -> Trial:
        strategy = bet_se(0.05, epsilon=epsilon)
        url = f"sqlite:///{tmp_path}/{name}.db"
        trial = Trial.create(url, "dose", ["a", "b", "c"], strategy, max_participants=2000)
        for turn in range(99):
            if turn == 2:
                trial.manage("drop-arm", "It is toxic.", "c")
            if turn == turns or not (batch := trial.ask(20)).assignments:
                break
            trial.tell_many({one.id: float(one.arm != "a") for one in batch.assignments})
        if not trial.status().stopped:
            trial.manage("stop", "Nobody comes any more.")
        return trial

    ended = play("long", 99, 2.0)
    status = ended.status().to_dict()
    words = state_conclusion(status)
    assert words.startswith("b was identified as the best of the remaining arms by a prespecified")
    assert "error probability is at most 10 %" in words
    assert status["error_rate"] == 0.1
    assert "among the remaining arms" in status["guarantee"]
    assert "10 %" in status["guarantee"]
    assert "δ" not in status["guarantee"]
    assert " 5 %" not in status["guarantee"]
    monkeypatch.setattr(BettingRun, "find_smallest_delta", lambda _: 0.1)
    said = play("short", 5, 0.2).transcript()
    course = Course(said)
    check_parsed_transcript(said, watch=course.watch)
    assert course.replay is not None
    assert said["status"]["smallest_delta"] >= 2 * 0.1
    assert "another remaining arm is the best is 0.2" in write_error_quote(said)
    compared = compare(course)
    assert compared is not None
    assert [*filter(None, compared.best)] == pytest.approx(
        [min(2 * value, 1) for value in course.replay.state.run.compute_p_values() if value]
    )


# --- dates ----------------------------------------------------------------------------


def test_dates_of_a_journal_tell_no_days_of_outcomes() -> None:
    day = 86_400
    calls = [("create", 0), ("ask", 1), ("tell", 2), ("ask", 3), ("tell", 9), ("backup", 12)]
    entries = [
        AuditEntry(n, at * day, "ann", None, call, 1) for n, (call, at) in enumerate(calls, 1)
    ]
    assert find_audit_dates(entries[::-1], True) == {
        "Created": "1970-01-01",
        "First participant assigned": "1970-01-02",
        "Last participant assigned": "1970-01-04",
        "Ended, at the latest": "1970-01-10",
    }
    assert "1970-01-10" not in find_audit_dates(entries, False).values()
    assert find_audit_dates([], True) == {}


def test_dates_and_control_from_the_command_line(tmp_path: Path) -> None:
    trial = played(tmp_path, 100)
    url, out = f"sqlite:///{tmp_path}/t.db", tmp_path / "page.html"
    more = ["--control", "placebo", "--assessed", "500", "--dates"]
    call = ["trial", "report", "drug", "--url", url, "--out", str(out)]
    done = CliRunner().invoke(main, [*call, *more])
    assert done.exit_code == 0, done.output
    page = out.read_text()
    assert "Stated by those who publish this page" in section(page, "Dates")
    assert re.search(r"<dt>Created</dt><dd>\d{4}-\d\d-\d\d</dd>", page)
    assert "from additions by those who publish it" in page
    assert "compared with placebo" in page
    plain = trial_page(trial.transcript())
    assert ">Dates</h2>" not in plain
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(trial.transcript()))
    done = CliRunner().invoke(main, ["report", str(file), "--out", str(out), "--control", "none"])
    assert done.exit_code == 2
    assert "control must be an arm" in done.output


def test_dates_of_a_record_by_the_clock(tmp_path: Path) -> None:
    trial = played(tmp_path, 40, release="scheduled", deadline=3600)
    dates = section(trial_page(trial.transcript()), "Dates")
    assert "By the record" in dates
    assert re.search(r"<dt>First participant assigned</dt><dd>\d{4}-\d\d-\d\d</dd>", dates)
