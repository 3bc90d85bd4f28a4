"""Whatever is typed: every command ends with 0, 1 or 2, a refusal is one line that
repeats no outcome, and the trials that were there are as they were.

Every command of the tree is in `COMMANDS` with words that it takes; here some of these
are replaced, by what nobody should type. The work itself (simulations, audits, the
story of the demo) is refused, so that only what comes before it takes time. These
mistakes were planted to see the tests fail: `read_number` without its refusal (a
traceback), an unknown option and an id that is none repeated (an outcome on stderr),
`_say` and `named` without their check of the letters (two lines), `trial miss` that has
the audit trail note a call before it refuses, and one that deletes the database.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import InvalidInputError, Trial, bet_se
from discreet.cli import main
from discreet.trials.store.database import Database
from discreet.trials.store.tokens import TokenTable
from tests.support.nasty import SECRET
from tests.support.tree import commands

OUTCOME = f"0.{SECRET}"
DONE = "not done here"
"""What is said where the work would begin."""
ID = "ID"
"""Stands for an id of the trial."""
WORDS = ["", "  ", "0", "-1", "0.5", "1e999", "nan", "-inf", "1" * 400, "9" * 5000, "7d", "1e400d"]
WORDS += ["a,b", "0,1", ",", "\udcff\udcfe", "a\nb\rc", "\u202eabc\u2066", "x" * 5000, "é" * 300]
WORDS += ["--help", "-", "--", "/", ".", "no/such/folder/x", "{0} %s {x!r}", "dose", "bad.csv"]
WORDS += ["past.csv", "study.toml", "dose.json", "/dev/null", "a\0b", "\ud800", "local", "bet-se"]
WORDS += ["sqlite:///dose.json", "sqlite:///:memory:", "mysql://x", "sqlite:////", "://"]
ARMS = {"--means": "0.9,0.1"}
COMMANDS: dict[str, tuple[list[str], dict[str, str | None]]] = {
    "bounds": ([], {"--data": "past.csv", "--arm": "arm", "--outcome": "y", "--epsilon": "1"}),
    "simulate": ([], {**ARMS, "--strategy": "ttucb", "--runs": "1"}),
    "plan": ([], {**ARMS, "--epsilon": "1", "--runs": "1", "--accrual": "2"}),
    "audit correctness": ([], {"--strategy": "ttucb", "--runs": "1"}),
    "audit privacy": ([], {"--strategy": "bet-se", "--epsilon": "1", "--runs": "40"}),
    "sweep": (["study.toml"], {"--out": "sweep"}),
    "reproduce": ([], {"--out": "paper", "--runs": "2", "--quick": None}),
    "demo": ([], {"--out": "demo.html"}),
    "trial create": (
        ["new"],
        {"--arms": "a,b", "--max-participants": "100", "--strategy": "bet-se", "--trust": "none"},
    ),
    "trial ask": (["dose"], {"--site": "x", "--participant": "q"}),
    "trial manage": (["dose", "pause"], {"--reason": "rest", "--yes": None, "--key": "r"}),
    "trial expire": (["dose"], {}),
    "trial open": (["dose"], {"--site": "x"}),
    "trial reissue": (["dose", ID], {"--key": "r"}),
    "trial unblind": (["dose", ID], {"--reason": "a fever"}),
    "trial codes": (["dose"], {}),
    "trial audit-trail": (["dose"], {}),
    "trial backup": (["kept.db"], {}),
    "trial restore": (["past.csv"], {"--head": "1:aa", "--reason": "lost"}),
    "trial grants": ([], {"--manager": "someone", "--service": "serves"}),
    "trial tell": (["dose", ID, OUTCOME], {}),
    "trial amend": (["dose", ID, OUTCOME], {}),
    "trial miss": (["dose", ID], {}),
    "trial list": ([], {}),
    "trial status": (["dose"], {}),
    "trial verify": (["dose"], {}),
    "trial transcript": (["dose"], {"--out": "other.json"}),
    "trial export": (["dose"], {"--out": "other.csv"}),
    "trial report": (["dose"], {"--out": "other.html"}),
    "serve": ([], {"--port": "0"}),
    "token create": (["nurse"], {"--role": "site", "--trial": "dose", "--site": "x"}),
    "token list": ([], {}),
    "token revoke": (["1"], {}),
    "respond": ([], {"--epsilon": "1", "--outcome": OUTCOME}),
    "verify": (["dose.json"], {}),
    "report": (["dose.json"], {"--out": "page.html"}),
}
TREE = {name: one for name, one in commands(main).items() if not isinstance(one, click.Group)}
STDIN = [b"\xff\xfe\n", b'"open,1\n', b"\0,1\n", b"", f"{OUTCOME},77\n".encode(), b"x\n"]
BAD = [*STDIN, f"{OUTCOME},3\n{OUTCOME}\n".encode(), f"1-{'a' * 16},{SECRET}\n".encode()]


class ServerConfig:
    """A folder with a trial in it."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "discreet-trials.db"
        rules: dict[str, Any] = {"sites": ["x"], "returning": "same-arm"}
        place = f"sqlite:///{self.database}"
        trial = Trial.create(place, "dose", ["a", "b"], bet_se(0.1, trust="none"), 10**6, **rules)
        self.id = trial.ask(site="x", participant="p").assignments[0].id
        (folder / "dose.json").write_text(json.dumps(trial.transcript()))
        (folder / "past.csv").write_text("arm,y\na,1\nb,0\na,1\nb,1\n")
        (folder / "bad.csv").write_bytes(b"\xff\xfe,1\n")
        study = 'instances = ["mu4"]\n[[strategies]]\npreset = "ttucb"\ndelta = 0.1\n'
        (folder / "study.toml").write_text(study)
        trial.close()
        with contextlib.closing(Database(place)) as store:
            TokenTable(store)

    def seen(self) -> str:
        """Every row of every table."""
        assert self.database.exists(), "the database is gone"
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return "\n".join(connection.iterdump())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerConfig:
    monkeypatch.chdir(tmp_path)
    for name in ("DISCREET_URL", "DISCREET_URL_FILE"):
        monkeypatch.delenv(name, raising=False)
    return ServerConfig(tmp_path)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that takes long is done."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise InvalidInputError(DONE)

    for work in (
        "discreet.simulation.engine._simulate",
        "discreet.audits.privacy._sample",
        "discreet.audits.correctness._audit_field",
        "discreet.cli.demo.tell_story",
        "discreet.studies.run.connect_dask",
        "discreet.planning.power._play_trials",
        "discreet.service.server.serve",
    ):
        monkeypatch.setattr(work, refuse)
    monkeypatch.setattr("discreet.planning.power.check_reach", lambda *_: None)


def run(place: ServerConfig, words: list[str], given: bytes | None = None) -> Result:
    """Run a command; what must hold of every one holds."""
    before = place.seen()
    result = CliRunner().invoke(main, words, input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1, 2)
    check_shown(result.stderr, result.exit_code)
    assert SECRET not in result.stdout
    if result.exit_code:
        assert place.seen() == before, "something was changed"
    return result


def check_shown(stderr: str, code: int) -> None:
    """A refusal is one line, no traceback, and repeats no outcome."""
    assert "Traceback" not in stderr
    assert SECRET not in stderr
    if code == 2 and DONE not in stderr:
        (line,) = [one for one in stderr.splitlines() if "a password on a command" not in one]
        assert line.startswith("discreet: ")
        assert len(line) < 2500


def test_every_command_is_here() -> None:
    assert set(COMMANDS) == set(TREE)


def spoilt(name: str) -> st.SearchStrategy[list[str]]:
    """The words of a command, one or two of them replaced, or added."""
    arguments, options = COMMANDS[name]
    flags = {part.opts[0] for part in TREE[name].params if getattr(part, "is_flag", False)}
    known = {part.opts[0] for part in TREE[name].params if isinstance(part, click.Option)}
    places = [*range(sum(isinstance(part, click.Argument) for part in TREE[name].params))]
    changes = st.dictionaries(
        st.sampled_from([*places, *sorted(known)]), st.sampled_from(WORDS), min_size=1, max_size=2
    )

    def said(changed: dict[Any, str]) -> list[str]:
        words = [changed.get(place, word) for place, word in enumerate(arguments)]
        words += [changed[place] for place in places[len(arguments) :] if place in changed]
        chosen = options | {key: changed[key] for key in changed if isinstance(key, str)}
        for key, value in chosen.items():
            words += [key] if key in flags or value is None else [key, value]
        return [*name.split(), *words]

    return changes.map(said)


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("name", COMMANDS)
def test_any_words(name: str, place: ServerConfig) -> None:
    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(spoilt(name))
    def tried(words: list[str]) -> None:
        run(place, [place.id if word == ID else word for word in words])

    tried()


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("name", COMMANDS)
def test_more_words(name: str, place: ServerConfig) -> None:
    """Words too many, outcomes that ran into an option, and options there are not."""
    arguments, options = COMMANDS[name]
    good = [place.id if word == ID else word for word in arguments]
    good += [word for pair in options.items() for word in pair if word is not None]
    for more in ([OUTCOME, OUTCOME], [f"--outcome{OUTCOME}"], [f"-x{OUTCOME}"], ["--a\nb"]):
        result = run(place, [*name.split(), *good, *more])
        assert result.exit_code == 2


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_any_file(data: bytes, place: ServerConfig) -> None:
    Path("any").write_bytes(data)
    for words in (["trial", "tell", "dose", "--csv"], ["respond", "--epsilon", "1", "--outcome"]):
        run(place, [*words, "-"], data)
        run(place, [*words, "any"])
    people = data.replace(SECRET.encode(), b"somebody")  # of whom ask tells the arms
    run(place, ["trial", "ask", "dose", "--site", "x", "--participants", "-"], people)
    run(place, ["verify", "any"])
    run(place, ["report", "any", "--out", "page.html"])
    run(place, ["sweep", "any", "--out", "folder"])
    run(place, ["bounds", "--data", "any", "--arm", "a", "--outcome", "b"])


FOUND: dict[str, list[str]] = {
    "outcome and id change places": ["trial", "tell", "dose", OUTCOME, ID],
    "the same of amend": ["trial", "amend", "dose", OUTCOME, ID],
    "an outcome for an id": ["trial", "tell", "dose", OUTCOME, "1"],
    "no such command": [OUTCOME],
    "no such command of trials": ["trial", OUTCOME],
    "lines in a word": ["trial", "a\nb"],
    "an option before the command": ["--a\nb", "bounds"],
    "the outcome ran into the option": ["respond", "--epsilon", "1", f"--outcome{OUTCOME}"],
    "a name that is too long for a file": ["trial", "transcript", "dose", "--out", "x" * 5000],
    "a path that nothing can hold": ["sweep", "a\0b", "--out", "folder"],
    "the name of a file with lines": ["trial", "tell", "dose", "--csv", "a\nb"],
    "a file without a head": ["bounds", "--data", "any", "--arm", "a", "--outcome", "b"],
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str, place: ServerConfig) -> None:
    Path("any").write_text(f"{OUTCOME},1\n{OUTCOME},0\n")
    words = [place.id if word == ID else word for word in FOUND[name]]
    assert run(place, words).exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["trial", "status", b"\xff\xfe"],
        ["trial", "tell", "dose", b"\xff\xfe", OUTCOME],
        ["verify", b"\xff\xfe"],
        ["trial", "list", "--url", b"sqlite:///\xff\xfe.db"],
        ["trial", "tell", "dose", "--csv", "-"],
        ["respond", "--epsilon", "1", "--outcome", "-"],
    ],
    ids=str,
)
def test_bytes_that_are_no_text(words: list[str | bytes], place: ServerConfig) -> None:
    """As a shell hands them over."""
    before = place.seen()
    done = subprocess.run(
        [os.fsencode(one) for one in (sys.executable, "-m", "discreet", *words)],
        input=b"\xff" + OUTCOME.encode() + b"\n",
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 2, done.stderr
    check_shown(done.stderr.decode(), done.returncode)
    assert place.seen() == before
