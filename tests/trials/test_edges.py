"""Whatever callers hand in: one clear sentence, and nothing changed."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet import InvalidInputError, Response, Trial, bet_se, respond, verify_transcript
from discreet.trials.protocol import canonical, digest
from discreet.trials.record import first_event

BETS = bet_se(0.1, trust="none")
HUGE = 10**400


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trial.db"


@pytest.fixture
def trial(url: str) -> Trial:
    return Trial.create(url, "t", ["a", "b"], BETS, 100)


Call = Callable[[Any, str, str], object]
EDGES: dict[str, Call] = {
    "port": lambda t, url, id: Trial.open("postgresql://h:abc/x", "t"),
    "bytes in the address": lambda t, url, id: Trial.open("sqlite:///\udcff.db", "t"),
    "bytes in the name": lambda t, url, id: Trial.open(url, "\udcff"),
    "no name": lambda t, url, id: Trial.open(url, None),
    "bytes as head": lambda t, url, id: Trial.open(url, "t", head=b"1:a"),  # type: ignore[arg-type]
    "huge outcome": lambda t, url, id: t.tell(id, HUGE),
    "huge count": lambda t, url, id: t.ask(HUGE),
    "huge maximum": lambda t, url, id: Trial.create(url, "u", ["a", "b"], BETS, HUGE),
    "participants is a number": lambda t, url, id: t.ask(participants=3),
    "participants is a text": lambda t, url, id: t.ask(participants="abc"),
    "unhashable id, tell": lambda t, url, id: t.tell([id], 1),
    "unhashable id, amend": lambda t, url, id: t.amend([id], 1),
    "unhashable id, miss": lambda t, url, id: t.miss({}),
    "no mapping": lambda t, url, id: t.tell_many([id]),
    "nothing": lambda t, url, id: t.tell_many(None),
    "numbers as ids": lambda t, url, id: t.tell_many({3: 1}),
    "no response": lambda t, url, id: Response.parse(None),  # type: ignore[arg-type]
    "a response of bytes": lambda t, url, id: Response.parse(b"rr/1/1"),  # type: ignore[arg-type]
    "huge response": lambda t, url, id: respond(HUGE, epsilon=1),
    "no transcript": lambda t, url, id: verify_transcript(None),  # type: ignore[arg-type]
    "a list for a transcript": lambda t, url, id: verify_transcript([]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", EDGES)
def test_one_sentence_and_nothing_changed(name: str, trial: Trial, url: str) -> None:
    id = trial.ask(2).assignments[0].id
    before = trial.status()
    with pytest.raises(InvalidInputError) as refused:
        EDGES[name](trial, url, id)
    said = str(refused.value)
    assert "\n" not in said
    assert len(said) < 300
    assert trial.status() == before


def test_a_protocol_of_another_version_says_so(trial: Trial, url: str) -> None:
    trial.close()
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        (text,) = connection.execute("SELECT protocol FROM discreet_trials").fetchone()
        other = canonical({**json.loads(text), "colour": "green"})
        connection.execute("UPDATE discreet_trials SET protocol = ?", (other,))
        event = first_event(digest(other))
        connection.execute(
            "UPDATE discreet_events SET body = ?, hash = ?", (event.body, event.hash)
        )
    with pytest.raises(
        InvalidInputError, match=r"another version .* wrote this protocol: .* knows colour"
    ):
        Trial.open(url, "t")
