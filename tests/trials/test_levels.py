"""Three levels in place of a bit: what is announced, asked for and taken where nobody
is trusted.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import InvalidInputError, Response, Strategy, Trial, bet_se, respond
from discreet.cli import main
from tests.support.numbers import numbers, start


def levels(url: str, people: int = 2000, **options: Any) -> Trial:
    return start(url, numbers(3.0, "local"), people, **options)


def test_the_middle_level_is_announced_and_asked_for(url: str) -> None:
    trial = levels(url)
    batch = trial.ask(5)
    one, two, *_ = batch.assignments
    assert batch.middle_level == trial.status().middle_level == 0.5
    for wrong in (0.25, 513 / 1024):
        with pytest.raises(
            InvalidInputError, match=r"announced with the assignment: --middle-level 0.5"
        ):
            trial.answer_many(
                {
                    one.id: respond(0.4, 3.0, middle_level=0.5),
                    two.id: respond(0.4, 3.0, middle_level=wrong),
                }
            )
    assert trial.status().pending == 5, "all of them are taken, or none"
    for bad in (respond(1, 3.0), respond(1, 3.0, 0.1), respond(1, 2.0, middle_level=0.5)):
        with pytest.raises(InvalidInputError, match="was not randomised as the protocol says"):
            trial.answer(one.id, bad)
    with pytest.raises(InvalidInputError, match="takes no raw outcomes"):
        trial.tell(one.id, 0.4)
    assert trial.status().pending == 5
    trial.answer(one.id, respond(0.4, 3.0, middle_level=0.5))
    assert trial.status().pending == 4


@pytest.mark.parametrize("strategy", [numbers(1.0, "local"), bet_se(0.1, 3.0, trust="local")])
def test_where_bits_are_sent_no_level_is_taken(url: str, strategy: Strategy) -> None:
    trial, epsilon = start(url, strategy), float(strategy.epsilon or 0)
    batch = trial.ask(2)
    assert batch.middle_level is trial.status().middle_level is None
    with pytest.raises(InvalidInputError, match="was not randomised as the protocol says"):
        trial.answer(batch.assignments[0].id, respond(1, epsilon, middle_level=0.5))
    trial.answer(batch.assignments[0].id, respond(1, epsilon))
    assert trial.status().pending == 1


def test_what_was_told_before_is_ignored_whatever_its_middle(url: str) -> None:
    """Also in one call with a new one, after the middle has moved."""
    trial = levels(url)
    first = trial.ask(400)
    old = {one.id: respond(0.9, 3.0, middle_level=0.5) for one in first.assignments}
    trial.answer_many(old)
    batch = trial.ask(400)
    assert batch.middle_level not in (None, 0.5)
    before = trial.status()
    trial.answer_many(old)
    assert trial.status() == before
    (new, *_), middle = batch.assignments, batch.middle_level
    trial.answer_many({**old, new.id: respond(0.9, 3.0, middle_level=middle)})
    assert trial.status().pending == before.pending - 1
    with pytest.raises(InvalidInputError, match=f"--middle-level {middle!r}"):
        trial.answer(batch.assignments[1].id, next(iter(old.values())))


def test_levels_on_another_scale(url: str) -> None:
    options: dict[str, Any] = {"range": (0, 10), "direction": "min", "out_of_range": "clip"}
    trial = levels(url, **options)
    batch = trial.ask(1)
    (one,) = batch.assignments
    assert trial.protocol.respond_options.startswith(
        "--epsilon 3.0 --middle-level MIDDLE --range 0.0,10"
    )
    with pytest.raises(InvalidInputError, match="--middle-level MIDDLE --range"):
        trial.answer(one.id, respond(0.2, 3.0, middle_level=batch.middle_level))
    answer = respond(99, 3.0, middle_level=batch.middle_level, **options)
    assert Response.parse(str(answer)) == answer
    trial.answer(one.id, answer)
    assert trial.status().pending == 0


def test_levels_by_commands(tmp_path: Path) -> None:
    """`ask` prints how to respond; what `respond` prints is taken."""

    def call(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, words)
        assert done.exit_code == code, done.output
        return done.output if code else done.stdout

    url = ("--url", f"sqlite:///{tmp_path}/t.db")
    words = ("--strategy", "bet-se", "--trust", "local", "--epsilon", "3", "--delta", "0.1")
    made = ("--arms", "a,b", "--max-participants", "500", "--range", "0,10", *words)
    assert "--middle-level MIDDLE --range 0.0,10.0" in call("trial", "create", "t", *made, *url)
    line, target_difference = call("trial", "ask", "t", *url).strip().splitlines()
    assert target_difference.endswith(
        "--epsilon 3.0 --middle-level 0.5 --range 0.0,10.0 --direction max --outcome -"
    )
    options = target_difference.split("discreet respond ")[1].removesuffix(" --outcome -").split()
    sent = json.loads(call("respond", "--outcome", "7", *options, "--json"))
    assert (sent["mechanism"], sent["middle_level"], sent["gamma"]) == ("levels", 0.5, None)
    assert sent["value"] in (0, 512, 1024)
    id = line.split()[0]
    other = call("respond", "--outcome", "7", *[w.replace("0.5", "0.25") for w in options]).strip()
    assert "--middle-level 0.5" in call("trial", "tell", "t", id, other, *url, code=2)
    call("trial", "tell", "t", id, sent["response"], *url)
    assert json.loads(call("trial", "status", "t", "--json", *url))["middle_level"] == 0.5
    assert json.loads(call("trial", "ask", "t", "--json", *url))["middle_level"] == 0.5
