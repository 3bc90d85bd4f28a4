"""Arms dealt by keys of rounds: as the odds say, committed to before, checked
afterwards.
"""

import json
from collections import Counter
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet import InvalidInputError, Strategy, adap_tt_star, bet_se, dp_se, ttucb
from discreet.trials.randomisation import commit_to, draw_arm, draw_key
from discreet.trials.store import schema
from discreet.trials.store.tables import TrialTables
from discreet.trials.transcript import verify_transcript
from discreet.trials.trial import Trial
from tests.support.forge import rechained
from tests.support.stores import count, create, database

STRATEGIES = [bet_se(0.1, epsilon=2), adap_tt_star(10, 0.1), dp_se(10, 0.1)]


def play(trial: Trial, seed: int = 1, people: int = 60) -> None:
    """To the end, two arms alike and one better."""
    rng = np.random.default_rng(seed)
    while not (batch := trial.ask(people)).stopped:
        chance = {"red": 0.3, "green": 0.8, "blue": 0.3}
        trial.tell_many({one.id: int(rng.random() < chance[one.arm]) for one in batch.assignments})


def test_a_draw_has_the_odds() -> None:
    """False alarm: 1e-6. Each person's number draws anew."""
    key, weights = bytes(range(32)), [3, 0, 1, 4]
    seen = Counter(draw_arm(key, number, weights) for number in range(8000))
    expected = [8000 * weight / 8 for weight in weights if weight]
    assert seen[1] == 0
    assert stats.chisquare([seen[0], seen[2], seen[3]], expected).pvalue > 1e-6
    assert draw_arm(key, 7, weights) == draw_arm(key, 7, weights)
    assert commit_to(key) != commit_to(draw_key())


def test_a_draw_has_no_bias() -> None:
    """A number beyond the last whole multiple of all weights is drawn again."""
    weights = [2**127 + 1, 2**127 - 1]  # all of 128 bits but none left over
    assert {draw_arm(draw_key(), number, weights) for number in range(60)} == {0, 1}
    uneven = [2**126, 2**126, 2**126]
    seen = Counter(draw_arm(bytes(32), number, uneven) for number in range(3000))
    assert stats.chisquare([seen[arm] for arm in range(3)]).pvalue > 1e-6


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: one.name)
def test_a_record_shows_that_chance_dealt(url: str, strategy: Strategy) -> None:
    trial = create(url, strategy=strategy, max_participants=2000)
    play(trial)
    said = trial.transcript()
    assert trial.verify().intact
    assert verify_transcript(said).intact
    opened = [event for event in said["events"] if event["kind"] == "opened"]
    keys = [key for event in said["events"] for key in event.get("keys", ())]
    assert [round for round, _ in keys] == [event["round"] for event in opened]
    assert [commit_to(bytes.fromhex(key)) for _, key in keys] == [
        event["commit"] for event in opened
    ]
    assert count(url, schema.round_keys) == 0, "what was revealed is kept no longer"


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: one.name)
def test_no_key_is_public_while_it_deals(url: str, strategy: Strategy) -> None:
    """Neither in the transcript nor in the state; and it is in the database."""
    trial = create(url, strategy=strategy, max_participants=2000)
    for _ in range(30):
        batch = trial.ask(3)
        with database(url) as connection:
            keys = [bytes(row.key).hex() for row in connection.execute(schema.round_keys.select())]
            state = connection.execute(schema.trials.select()).one().state
        assert len(keys) == 1
        assert keys[0] not in json.dumps(trial.transcript()) + state + repr(trial.status())
        trial.tell_many({one.id: 1 for one in batch.assignments})
        if batch.stopped:
            break


def forged(said: dict[str, Any], change: Any) -> str:
    other = deepcopy(said)
    change(other["events"])
    return " ".join(verify_transcript(rechained(other)).problems)


def first(events: list[dict[str, Any]], kind: str, place: int = 0) -> dict[str, Any]:
    return [event for event in events if event["kind"] == kind][place]


def test_whoever_deals_otherwise_is_found(url: str) -> None:
    """Another arm, another key, another commitment, a key used twice, odds that were
    not the strategy's, no opening at all.
    """
    trial = create(url, strategy=bet_se(0.1, epsilon=2), max_participants=2000)
    play(trial)
    said = trial.transcript()

    def swap_arm(events: Any) -> None:
        arms = first(events, "assigned")["arms"]
        arms[0] = (arms[0] + 1) % 3

    def other_key(events: Any) -> None:
        first(events, "released")["keys"][0][1] = "00" * 32

    def other_key_and_commitment(events: Any) -> None:
        other_key(events)
        first(events, "opened")["commit"] = commit_to(bytes(32))

    def key_twice(events: Any) -> None:
        first(events, "opened", 1)["commit"] = first(events, "opened")["commit"]

    def other_odds(events: Any) -> None:
        first(events, "opened")["odds"][0][1] += 1

    def longer(events: Any) -> None:
        first(events, "opened")["participants"] += 1

    def longer_key(events: Any) -> None:
        key = first(events, "released")["keys"][0]
        key[1] += "00"  # deals the same, as HMAC pads with zeros
        first(events, "opened")["commit"] = commit_to(bytes.fromhex(key[1]))

    def no_key(events: Any) -> None:
        del first(events, "released")["keys"]

    def too_many_keys(events: Any) -> None:
        keys = first(events, "released")["keys"]
        keys.append(keys[0])

    assert "was not dealt by the key" in forged(said, swap_arm) or "no such release" in forged(
        said, swap_arm
    )
    assert "not the one that was committed to" in forged(said, other_key)
    assert "was not dealt by the key of round 1" in forged(said, other_key_and_commitment)
    assert "its key was committed to before" in forged(said, key_twice)
    assert "would have opened another round" in forged(said, other_odds)
    assert "would have opened another round" in forged(said, longer)
    assert "not the one that was committed to" in forged(said, longer_key)
    assert "does not say what" in forged(said, no_key)
    assert "not the keys that were to be revealed" in forged(said, too_many_keys)


def test_a_key_is_committed_to_before_its_people_are_known(url: str) -> None:
    """In a transaction of its own: who asks, and for how many, changes no key."""
    trial = create(url, strategy=bet_se(0.1, epsilon=2))
    with pytest.raises(InvalidInputError, match="are named before in it"):
        trial.ask(participants=["ann", "ann"])
    assert [event["kind"] for event in trial.transcript()["events"]] == ["created"]
    saved = list[int]()
    honest = TrialTables.save_state

    def counted(tables: TrialTables, state: str) -> None:
        saved.append(tables.row.seq)
        honest(tables, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrialTables, "save_state", counted)
        trial.ask(participants=["ann", "bob"])
    assert saved == [2, 3], "one for the opening, one for the people"


def test_a_key_that_was_changed_in_the_database_is_found(url: str) -> None:
    trial = create(url, strategy=bet_se(0.1, epsilon=2))
    trial.ask(3)
    assert trial.verify().intact
    with database(url) as connection:
        connection.execute(schema.round_keys.update().values(key=bytes(32)))
    assert "keys of rounds" in trial.verify().problems[0]


def test_the_order_of_places_is_random_and_their_number_is_not(url: str) -> None:
    """dp-se: in an epoch each arm has as many people as the strategy wants, in an order
    that differs from trial to trial.
    """
    orders = set()
    for place in range(6):
        trial = create(url, f"t{place}", strategy=dp_se(10, 0.1), max_participants=20_000)
        play(trial, people=5000)
        events = trial.transcript()["events"]
        opened, arms = first(events, "opened"), list[int]()
        for event in events[: events.index(first(events, "released"))]:
            arms += event.get("arms", [])
        assert sorted(Counter(arms).items()) == [tuple(pair) for pair in opened["odds"]]
        orders.add(tuple(arms))
    assert len(orders) == 6


def test_strategies_of_every_answer_say_that_they_can_be_predicted(url: str) -> None:
    status = create(url, strategy=ttucb(0.1)).status()
    assert "knows the next arm" in status.randomisation
    assert "bet-se does not have this weakness" in status.randomisation
