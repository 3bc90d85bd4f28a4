"""Whatever is handed to any public function: it works, or says why not in one line that
repeats no outcome, and then nothing has changed.

Every public name, and every method of one that takes something, is in `support.calls`
with arguments that it takes; here one or more of these are replaced by what nobody
should hand in. These mistakes were planted to see the tests fail: `_between` without
its check of the type (a TypeError), `Scale.convert_to_reward` with the outcome in its message, and
with the outcome in an error behind the one that is raised, `Trial.tell` that has the
audit trail note a call before it refuses.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet import InvalidInputError, Response, Sampled, Trial, respond, suggest_range
from discreet.validation import quote
from tests.support.calls import ARMS, BETS, OWN, Call, lives, makers, public_calls, works
from tests.support.fuzz import LIVE, check
from tests.support.nasty import NASTY, SECRET, Broken, Mute, check_said


def test_nothing_public_is_left_out(tmp_path: Path) -> None:
    known = {*makers(), *works(tmp_path), *lives(f"sqlite:///{tmp_path}/t.db")}
    assert public_calls() == {name.partition(":")[0] for name in known}


@pytest.mark.parametrize("name", makers())
def test_makers(name: str) -> None:
    check(name, *makers()[name], lambda: None)


NAMES = [
    *("simulate", "simulate: days", "plan", "plan_ranges", "check_reach", "bounds"),
    *("CharacteristicTime.scaled", "Study", "Study: days", "Study.from_dict", "Study.from_toml"),
    *("run_study", "audit_correctness", "audit_privacy", "Rehearsal", "Results.error_interval"),
    *("Results.save", "Results.load", "Sampled.read"),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Call]:
    return works(tmp_path_factory.mktemp("work"))


@pytest.mark.parametrize("name", NAMES)
def test_works(
    name: str, work: dict[str, Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for files that are called by nasty names
    check(name, *work[name], lambda: None)


def test_these_are_all(work: dict[str, Call]) -> None:
    assert {*NAMES, "make_hard_instances"} == set(work)


# --- live trials ----------------------------------------------------------------------


class Live:
    """A database of trials, and all that stands in it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "trial.db"
        self.calls = lives(f"sqlite:///{self.file}")
        tell: Any = self.calls["Trial.tell"][0]
        self.trial: Trial = tell.__self__
        self.id: str = self.calls["Trial.tell"][1]["id"]
        self.calls["Trial.tell_many: one"] = (self.tell_one, {"outcome": 1})

    def tell_one(self, outcome: Any) -> object:
        """One of many."""
        return self.trial.tell_many({self.id: outcome})

    def seen(self) -> str:
        """Every row of every table."""
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            return "\n".join(connection.iterdump())


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    made = Live(tmp_path_factory.mktemp("live"))
    yield made
    made.calls["Trial.close"][0]()


ALL = [*(f"Trial.{name}" for name in (*LIVE, "record"))]
BESIDE = ["list_trials", "backup_trials", "restore_trials", "verify_transcript", "trial_page"]
BESIDE += ["transcript_frame", "respond", "Response", "Response.parse"]
WITHOUT = {f"Trial.{name}" for name in ("list_codes", "expire", "status", "transcript", "close")}
"""Take nothing."""


@pytest.mark.parametrize("name", [*ALL, *BESIDE])
def test_live(name: str, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(name, *live.calls[name], live.seen)
    assert Trial.open(f"sqlite:///{live.file}", "t").verify().intact


def test_these_are_all_of_a_trial(live: Live) -> None:
    assert {*ALL, *BESIDE} | WITHOUT == set(live.calls)


# --- what was found, and is mended ----------------------------------------------------

FOUND: dict[str, Callable[[], object]] = {
    "an argument that cannot be shown": lambda: discreet.bet_se(0.1, trust=Mute()),  # type: ignore[arg-type]
    "too many digits": lambda: discreet.ttucb(10**5000),
    "too large for a float": lambda: discreet.dp_se(10**400, 0.1),
    "an array for a word": lambda: discreet.bet_se(0.1, trust=NASTY["numpy array"]()),
    "an array in the message": lambda: discreet.ttucb(NASTY["numpy array"]()),
    "no range": lambda: respond(1, 1.0, range=None),  # type: ignore[arg-type]
    "names that are no list": lambda: discreet.Bernoulli([0.1, 0.2], 3),  # type: ignore[arg-type]
    "a description that is none": lambda: discreet.Instance.from_dict(3),  # type: ignore[arg-type]
    "a delay that is none": lambda: discreet.Delay.from_dict(3),  # type: ignore[arg-type]
    "a gap of text": lambda: discreet.make_gap_scenarios(3, "0.1", 0.5),  # type: ignore[arg-type]
    "arms without end": lambda: discreet.make_gap_scenarios(10**400, 0.1, 0.5),
    "no instance": lambda: discreet.bounds(None),  # type: ignore[arg-type]
    "no strategy": lambda: discreet.audit_correctness(None, delta=0.1),  # type: ignore[arg-type]
    "progress that cannot be called": lambda: discreet.simulate(ARMS, OWN, 1, progress=3),  # type: ignore[arg-type]
    "an infinite cap": lambda: discreet.Study({"a": ARMS}, [BETS], max_samples=float("inf")),  # type: ignore[arg-type]
    "a path that is none": lambda: discreet.Results.load(3),  # type: ignore[arg-type]
    "a path with NUL": lambda: discreet.Study.from_toml("a\0b"),
    "the name of a file with lines": lambda: discreet.verify_transcript("a\nb"),
    "the smallest number": lambda: suggest_range([1e308, -1e308]),
    "the mechanism is a list": lambda: Response(["rr"], 1.0, None, 1, respond(1, 1.0).scale),  # type: ignore[arg-type]
    "past outcomes outside the range": lambda: Sampled([[float(SECRET)], [0.1]]),
    "past outcomes that are text": lambda: suggest_range([f"0.{SECRET} mg"]),
    "an outcome that raises": lambda: respond(Broken(), 1.0),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        FOUND[name]()
    check_said(refused.value)


LIVE_FOUND: dict[str, Callable[[Any, str], object]] = {
    "the outcome in place of the id": lambda t, id: t.tell(f"0.{SECRET}", 1),
    "the outcome in place of the id, amended": lambda t, id: t.amend(f"0.{SECRET}", 1),
    "a site that is a list": lambda t, id: t.ask(site=["x"]),
    "a site that is huge": lambda t, id: t.open_assignments(10**400),
    "an action that cannot be shown": lambda t, id: t.manage(Mute(), "rest"),
    "an arm that is an array": lambda t, id: t.manage("drop-arm", "rest", NASTY["numpy array"]()),
    "a clock beyond all numbers": lambda t, id: t.manage("set-clock", "rest", 10**5000),
    "seen is an array": lambda t, id: t.manage("pause", "rest", seen=NASTY["numpy array"]()),
    "progress that cannot be called": lambda t, id: t.verify(progress=3),
    "an address that cannot be shown": lambda t, id: Trial.open(Mute(), "t"),  # type: ignore[arg-type]
    "an outcome that raises": lambda t, id: t.tell(id, Broken()),
}


@pytest.mark.parametrize("name", LIVE_FOUND)
def test_what_was_found_in_trials(name: str, tmp_path: Path) -> None:
    live = Live(tmp_path)
    before = live.seen()
    with pytest.raises(InvalidInputError) as refused:
        LIVE_FOUND[name](live.trial, live.id)
    check_said(refused.value)
    assert live.seen() == before
    live.trial.close()


def test_what_an_error_repeats_is_one_short_line() -> None:
    assert quote("a") == "'a'"
    assert quote(Mute()) == "Mute that cannot be shown"
    assert quote("x" * 300) == "'" + "x" * 199 + " …"
    assert "\n" not in quote(NASTY["numpy array"]())
