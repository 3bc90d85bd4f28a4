"""Outcomes outside the range of a protocol: refused, or counted as the nearer end
without a trace of it.
"""

import json
import logging
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import InvalidInputError, Trial, bet_se, respond, trial_page, verify_transcript
from discreet.cli import main
from discreet.trials.inputs import outcome_units
from discreet.trials.protocol import Protocol
from tests.support.keys import seeded_keys

PLAIN = bet_se(0.1, trust="none")

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.RoundedWarning")


def make(folder: Path, out_of_range: str = "clip", name: str = "t", **options: Any) -> Trial:
    url = f"sqlite:///{folder / 'trials.db'}"
    chosen: dict[str, Any] = {
        "strategy": PLAIN,
        "max_participants": 400,
        "range": (10, 20),
        **options,
    }
    return Trial.create(url, name, ["a", "b"], out_of_range=out_of_range, **chosen)


def play(trial: Trial, good: float, bad: float) -> None:
    """Everybody on a has the good outcome, the others the bad one."""
    while assignments := trial.ask(100).assignments:
        trial.tell_many({one.id: good if one.arm == "a" else bad for one in assignments})


def test_refused_unless_the_protocol_says_otherwise(tmp_path: Path) -> None:
    trial = make(tmp_path, out_of_range="refuse")
    usual = Protocol("t", ("a", "b"), PLAIN, max_participants=400, range=(10, 20))
    assert trial.protocol == usual
    (one,) = trial.ask(1).assignments
    for outcome in (20.0001, 9.9, math.inf):
        with pytest.raises(InvalidInputError, match="a number from 10 to 20, the range"):
            trial.tell(one.id, outcome)
    trial.tell(one.id, 20)


def test_the_nearer_end(tmp_path: Path) -> None:
    trial = make(tmp_path)
    for outcome, units in ((20, 1), (25, 1), (math.inf, 1), (1e300, 1), (10, 0), (-7, 0)):
        assert {outcome_units(outcome, trial.protocol) for _ in range(20)} == {units}
    less = make(tmp_path, name="less", direction="min")
    assert {outcome_units(25, less.protocol) for _ in range(20)} == {0}
    play(trial, 1e6, -1e6)
    status = trial.status()
    assert (status.conclusive, status.recommendation) == (True, "a")
    assert [arm.mean for arm in status.arms] == [20, 10]


@pytest.mark.parametrize("bad", [math.nan, "15", None, [15]])
def test_what_is_no_number_is_refused_in_any_case(tmp_path: Path, bad: Any) -> None:
    trial = make(tmp_path)
    (one,) = trial.ask(1).assignments
    with pytest.raises(InvalidInputError, match=r"must be a number$"):
        trial.tell(one.id, bad)
    with pytest.raises(InvalidInputError, match=r"must be a number$"):
        respond(bad, 1.0, out_of_range="clip")


def kept(path: Path) -> list[Any]:
    """The columns of each table, and how many rows it has."""
    with sqlite3.connect(path) as base:
        tables = base.execute("select name, sql from sqlite_master where type = 'table'").fetchall()
        return [(*one, *base.execute(f"select count(*) from {one[0]}")) for one in tables]


def test_nothing_tells_a_clipped_outcome_from_an_end(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same replies, status, events and tables, if the coins are the same; none of
    them has a word or a count of it.
    """
    found = []
    for name, good, bad in (("ends", 20.0, 10.0), ("beyond", 12345.6, -98765.4)):
        folder = tmp_path / name
        folder.mkdir()
        seeded_keys(monkeypatch)
        with caplog.at_level(logging.DEBUG):
            trial = make(folder)
            people = trial.ask(4).assignments
            for one in people:
                trial.tell(one.id, good if one.arm == "a" else bad)
            trial.amend(people[0].id, good if people[0].arm == "a" else bad)
            play(trial, good, bad)
        transcript = trial.transcript()
        text = json.dumps(transcript) + caplog.text + "".join(capfd.readouterr())
        assert not any(number in text for number in ("12345", "98765"))
        found.append((transcript, kept(folder / "trials.db"), caplog.text))
        caplog.clear()
    assert found[0] == found[1]


def test_it_is_part_of_the_protocol(tmp_path: Path) -> None:
    clip, refuse = make(tmp_path), make(tmp_path, "refuse", "other")
    assert '"out_of_range":"clip"' in clip.protocol.text
    assert clip.protocol.to_dict() != {**refuse.protocol.to_dict(), "name": "t"}
    with pytest.raises(InvalidInputError, match="out_of_range is 'clip', not 'refuse'"):
        make(tmp_path, "refuse")
    with pytest.raises(InvalidInputError, match="out_of_range must be one of refuse, clip"):
        make(tmp_path, "drop", "third")


def test_a_protocol_that_lacks_a_name_is_refused() -> None:
    whole = Protocol("t", ("a", "b"), PLAIN, max_participants=400).to_dict()
    for name in whole:
        less = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(InvalidInputError, match=rf"another version .* knows {name}$"):
            Protocol.from_dict(less)
    with pytest.raises(InvalidInputError, match=r"another version .* knows colour$"):
        Protocol.from_dict({**whole, "colour": "red"})


def test_whoever_reads_is_told(tmp_path: Path) -> None:
    words = "an outcome outside the range counts as the nearer end of it"
    trial = make(tmp_path)
    transcript = trial.transcript()
    assert trial.status().out_of_range == words
    assert words in trial_page(transcript)
    assert verify_transcript(transcript).intact
    transcript["status"]["out_of_range"] = ""
    assert not verify_transcript(transcript).intact
    del transcript["status"]["out_of_range"]
    assert not verify_transcript(transcript).intact
    refuse = make(tmp_path, "refuse", "other").transcript()
    assert refuse["status"]["out_of_range"] == ""
    assert "nearer end" not in trial_page(refuse)
    del refuse["status"]["out_of_range"]
    assert not verify_transcript(refuse).intact


def test_a_response_is_clipped_where_the_person_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="a number from 10 to 20"):
        respond(25, 50.0, range=(10, 20))
    high = respond(25, 50.0, range=(10, 20), out_of_range="clip")
    assert high == respond(20, 50.0, range=(10, 20))
    assert str(high) == "rr/50.0/1@10.0:20.0:max"
    with pytest.raises(InvalidInputError, match="out_of_range must be one of"):
        respond(15, 50.0, range=(10, 20), out_of_range="drop")
    local = make(tmp_path, strategy=bet_se(0.1, 50, trust="local"))
    assert local.protocol.respond_options.endswith("--out-of-range clip")
    local.answer(local.ask(1).assignments[0].id, high)


def run(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_commands(tmp_path: Path) -> None:
    url = ["--url", f"sqlite:///{tmp_path / 't.db'}"]
    arms = ["--arms", "a,b", "--strategy", "bet-se", "--epsilon", "1", "--max-participants", "50"]
    made = run("trial", "create", "t", *arms, "--range", "0,9", "--out-of-range", "clip", *url)
    words = "an outcome outside the range counts as the nearer end of it."
    assert f"Outside the range: {words}" in made
    assert f"An{words[2:]}" in run("trial", "status", "t", *url)
    (one,) = json.loads(run("trial", "ask", "t", "--json", *url))["assignments"]
    assert run("trial", "tell", "t", one["id"], "1000", *url) == "Accepted: 1."
    options = ["--epsilon", "50", "--range", "0,9", "--out-of-range", "clip"]
    assert run("respond", *options, "--outcome", "12") == "rr/50.0/1@0.0:9.0:max"
    assert "nearer end" not in run("trial", "create", "u", *arms, "--range", "0,9", *url)
