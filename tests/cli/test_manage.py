"""Trials in the field, by command: sites, deadlines, managers, clocks."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet.cli import main
from discreet.cli.trial_admin import DONE
from discreet.cli.trial_create import TAKE_BET_SE, TAKE_CLOCK
from discreet.trials.operations import MEANINGS, REFUSED_ACTIONS

CREATE = ["create", "dose", "--arms", "a,b,c", "--strategy", "ttucb", "--max-participants", "40"]
BETS = ["create", "dose", "--arms", "a,b,c", "--strategy", "bet-se", "--epsilon", "5"]
BETS += ["--max-participants", "2000", "--delta", "0.1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("discreet.trials.store.tables.time.time", lambda: now[0])
    return now


def trial(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["trial", *words])
    assert result.exit_code == code, result.output
    if code:
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
    return result


def read(*words: str) -> Any:
    return json.loads(trial(*words, "--json").stdout)


def protocol() -> Any:
    return json.loads(trial("transcript", "dose").stdout)["protocol"]


# --- create ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("12h", 43200), ("7d", 604800), ("1.5 H", 5400), ("2w", 1209600)],
)
def test_a_deadline_is_a_time(text: str, seconds: float) -> None:
    trial(*CREATE, "--deadline", text)
    assert protocol()["deadline"] == seconds


@pytest.mark.parametrize("text", ["", "30", "7 days", "d", "1e", "1..2", "-3", "0", "nan", "inf"])
def test_what_is_no_time_is_refused(text: str, folder: Path) -> None:
    said = trial(*CREATE, "--deadline", text, code=2).stderr
    assert "such as 90s, 30m, 12h or 7d" in said or "positive number of seconds" in said
    assert not list(folder.iterdir())


def test_every_setting_gets_into_the_protocol() -> None:
    trial(*CREATE, "--sites", "Leeds, Lyon", "--deadline", "7d", "--randomisation", "fixed")
    kept = protocol()
    assert (kept["sites"], kept["randomisation"]) == (["Leeds", "Lyon"], "fixed")
    assert (kept["release"], kept["enrolment"]) == ("complete", "waiting")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--randomisation", "simple"], "ttucb has randomisation fixed"),
        (["--randomisation", ""], "is not one of 'simple', 'shuffled', 'fixed'"),
        (["--release", "scheduled"], "needs a deadline"),
        (["--release", "scheduled", "--deadline", "7d"], "releases every outcome"),
        (["--release", "never"], "is not one of 'complete', 'scheduled'"),
        (["--enrolment", "continuous", "--deadline", "7d"], "randomisation='simple'"),
        (["--enrolment", "always"], "is not one of 'waiting', 'continuous'"),
        (["--sites", "Leeds,Leeds"], "different names"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(words: list[str], message: str, folder: Path) -> None:
    assert message in trial(*CREATE, "--max-participants", "90", *words, code=2).stderr
    assert not list(folder.iterdir())


def test_a_new_trial_says_what_it_covers() -> None:
    options = ("--sites", "Leeds,Lyon", "--deadline", "12h")
    made, words = read(*CREATE, *options), trial(*CREATE, *options).stdout
    for phrase in (
        "Sites: Leeds, Lyon. Give --site with each ask.",
        "within 12 hours of",
        "discreet trial expire dose",
        TAKE_BET_SE,
        "Next: discreet trial ask dose --site SITE",
        made["assignment"],
        made["guarantee"],
    ):
        assert phrase in words
    assert "--release scheduled" not in words
    assert (made["advice"], made["randomisation"]) == (TAKE_BET_SE, "fixed")
    assert made["timing"] == made["enrolment"] == ""


def test_arms_of_bet_se_are_drawn_at_random() -> None:
    made, words = read(*BETS), trial(*BETS).stdout
    assert (made["randomisation"], made["advice"], made["enrolment"]) == ("simple", None, "")
    assert made["assignment"] in words
    assert TAKE_CLOCK in words
    assert TAKE_BET_SE not in words


def test_scheduled_release_and_continuous_enrolment_are_explained() -> None:
    options = ("--deadline", "7d", "--release", "scheduled", "--enrolment", "continuous")
    words = trial(*BETS, *options).stdout
    assert "Use --release" not in words
    made = read(*BETS, *options)
    assert made["timing"] in words
    assert made["enrolment"] in words


# --- ask ------------------------------------------------------------------------------


def test_people_come_from_sites() -> None:
    trial(*CREATE, "--sites", "Leeds,Lyon")
    for words in ([], ["--site", "Rome"]):
        assert "one of Leeds, Lyon" in trial("ask", "dose", *words, code=2).stderr
    assert len(read("ask", "dose", "-n", "3", "--site", "Lyon")["assignments"]) == 3
    sites = [(one["name"], one["participants"]) for one in read("status", "dose")["sites"]]
    assert sites == [("Leeds", 0), ("Lyon", 3)]


def test_a_paused_trial_says_so() -> None:
    trial(*CREATE)
    assert read("ask", "dose")["paused"] is False
    trial("manage", "dose", "pause", "--reason", "a holiday")
    found = read("ask", "dose")
    assert (found["assignments"], found["paused"], found["stopped"]) == ([], True, False)
    words = trial("ask", "dose").stdout
    assert words.startswith("The trial is paused: nobody is assigned until a manager resumes it")
    assert "discreet trial manage dose resume" in words
    assert "is paused: nobody is assigned" in trial("status", "dose").stdout
    trial("manage", "dose", "resume", "--reason", "it is over")
    assert len(read("ask", "dose")["assignments"]) == 1


def test_what_to_do_while_a_round_waits(clock: list[float]) -> None:
    """By the clock: nobody sees how many have answered."""
    trial(*BETS, "--deadline", "1h", "--release", "scheduled")
    people = read("ask", "dose", "-n", "500")["assignments"]
    assert 0 < len(people) < 500
    words = trial("ask", "dose").stdout
    assert words.startswith(
        f"The round is full. Its {len(people)} outcomes are released on schedule"
    )
    assert words.endswith("discreet trial expire dose\n")
    for one in people:
        trial("tell", "dose", one["id"], "1")
    assert trial("ask", "dose").stdout == words
    assert read("expire", "dose") == {"released": 0, "stopped": False}
    clock[0] += 3602
    assert read("expire", "dose") == {"released": 3, "stopped": False}
    assert len(read("ask", "dose")["assignments"]) == 1


def test_continuous_enrolment_waits_for_nobody() -> None:
    said = trial(*BETS, "--deadline", "1h", "--enrolment", "continuous").stdout
    assert "the public record itself shows how fast outcomes came" in said
    *first, words = trial("ask", "dose", "-n", "60").stdout.splitlines()
    assert words == "The round is full: ask again for the others, who will be in the next one."
    assert len(trial("ask", "dose").stdout.splitlines()) == 1
    dealt = len(first) + 1
    most = read("status", "dose")["max_participants"]
    while people := read("ask", "dose", "-n", "500")["assignments"]:
        dealt += len(people)
    assert dealt == most
    words = trial("ask", "dose").stdout
    assert words.startswith("The trial has its maximum number of participants, and waits for ")


# --- manage --------------------------------------------------------------------------


def test_every_action_has_words() -> None:
    assert list(DONE) == list(MEANINGS)


def test_an_action_says_what_happened_and_what_it_means() -> None:
    trial(*CREATE)
    read("ask", "dose", "-n", "3")
    words = trial("manage", "dose", "lower-maximum", "30", "--reason", "money", "--yes").stdout
    assert words.startswith(DONE["lower-maximum"].format(about="30") + "\n")
    assert f"What it means: {MEANINGS['lower-maximum']}." in words
    assert "The public record now says so" in words
    assert "over" not in words
    assert read("status", "dose")["max_participants"] == 30
    closed = read("manage", "dose", "close-site", "Lyon", "--reason", "no staff")
    assert set(closed) == {"action", "about", "reason", "means", "stopped", "head"}
    assert (closed["about"], closed["means"]) == ("Lyon", MEANINGS["close-site"])
    assert closed["head"] == read("status", "dose")["head"]
    trial("ask", "dose", "--site", "Lyon", code=2)
    words = trial("manage", "dose", "open-site", "Lyon", "--reason", "staff").stdout
    assert DONE["open-site"].format(about="Lyon") in words
    trial("ask", "dose", "--site", "Lyon")
    events = json.loads(trial("transcript", "dose").stdout)["events"]
    done = [event for event in events if event["kind"] == "managed"]
    assert [(event["action"], event.get("about"), event["reason"]) for event in done] == [
        ("lower-maximum", 30, "money"),
        ("close-site", "Lyon", "no staff"),
        ("open-site", "Lyon", "staff"),
    ]


def test_a_trial_is_stopped_by_hand() -> None:
    trial(*CREATE)
    words = trial("manage", "dose", "stop", "--reason", "enough", "--yes").stdout
    assert words.startswith("The trial was stopped by a manager.\n")
    assert words.endswith("The trial is over: discreet trial status dose\n")
    assert "was stopped by a manager without a conclusion" in trial("status", "dose").stdout
    assert "the trial is over" in trial("manage", "dose", "pause", "--reason", "x", code=2).stderr


def test_a_maximum_that_is_reached_ends_the_trial() -> None:
    trial(*CREATE)
    one = read("ask", "dose")["assignments"][0]
    trial("tell", "dose", one["id"], "1")
    asked = trial("manage", "dose", "lower-maximum", "1", "--reason", "money", code=2).stderr
    assert "lower-maximum 1 can end the trial, which cannot be undone: add --yes" in asked
    words = trial("manage", "dose", "lower-maximum", "1", "--reason", "money", "--yes").stdout
    assert words.endswith("The trial is over: discreet trial status dose\n")
    assert "ended at its maximum without a conclusion" in trial("status", "dose").stdout


def test_arms_are_dropped_and_added() -> None:
    trial(*BETS)
    added = trial("manage", "dose", "add-arm", "d e", "--reason", "new", "--yes").stdout
    assert added.startswith(DONE["add-arm"].format(about="d e") + "\n")
    dropped = trial("manage", "dose", "drop-arm", "a", "--reason", "harm", "--yes").stdout
    assert dropped.startswith(DONE["drop-arm"].format(about="a") + "\n")
    assert MEANINGS["drop-arm"] in dropped
    assert {one["arm"] for one in read("ask", "dose", "-n", "9")["assignments"]} <= {
        "b",
        "c",
        "d e",
    }
    events = json.loads(trial("transcript", "dose").stdout)["events"]
    (opened,) = [event for event in events if event["kind"] == "opened"]
    assert [arm for arm, _ in opened["odds"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *([[action, "3"], words[:40]] for action, words in REFUSED_ACTIONS.items()),
        (["fly", "--reason", "x"], "a manager may do one of raise-maximum"),
        (["pause"], "give a reason"),
        (["pause", "now", "--reason", "x"], "takes a reason and nothing else"),
        (["resume", "--reason", "x"], "not paused"),
        (["raise-maximum", "--reason", "x"], "must be a whole number"),
        (["raise-maximum", "ten", "--reason", "x"], "must be a whole number"),
        (["raise-maximum", "0", "--reason", "x"], "must be a whole number"),
        (["drop-arm", "a", "--reason", "x", "--yes"], "no arm can be dropped"),
        (["add-arm", "d", "--reason", "x", "--yes"], "no arm can be added"),
    ],
    ids=str,
)
def test_what_an_operator_may_not_do(words: list[str], message: str) -> None:
    trial(*CREATE)
    head = read("status", "dose")["head"]
    assert message in trial("manage", "dose", *words, code=2).stderr
    assert read("status", "dose")["head"] == head


# --- expire ---------------------------------------------------------------------------


def test_what_is_late_counts_as_the_worst(clock: list[float]) -> None:
    trial(*CREATE, "--deadline", "1h")
    read("ask", "dose", "-n", "3")
    assert (
        trial("expire", "dose").stdout == "Late outcomes count as the worst. Numbers released: 0.\n"
    )
    clock[0] += 3601
    assert (
        trial("expire", "dose").stdout == "Late outcomes count as the worst. Numbers released: 3.\n"
    )
    assert read("expire", "dose") == {"released": 0, "stopped": False}
    assert read("status", "dose")["pending"] == 0


def test_the_last_deadlines_end_the_trial(clock: list[float]) -> None:
    trial(*CREATE[:-1], "3", "--deadline", "1h")
    read("ask", "dose", "-n", "3")
    clock[0] += 3601
    words = trial("expire", "dose").stdout
    assert words.endswith("The trial is over: discreet trial status dose\n")


def test_without_a_deadline_nothing_is_late() -> None:
    trial(*CREATE)
    assert "This trial has no deadline" in trial("expire", "dose").stdout
    assert read("expire", "dose") == {"released": 0, "stopped": False}
