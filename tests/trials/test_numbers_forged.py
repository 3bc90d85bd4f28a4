"""Records of numbers that no trial can have are found: every value of a transcript
changed in turn, and forgeries with hashes made anew.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from discreet import Strategy
from discreet import verify_transcript as verified
from tests.support.forge import UNKNOWN, changed, leaves, others, rechained
from tests.support.numbers import (
    FINE,
    Law,
    narrow,
    nearly_bits,
    numbers,
    play,
    released,
    start,
    without_chance,
)

Record = dict[str, Any]
CASES: dict[str, tuple[Strategy, Law, int]] = {
    "fine and bits": (numbers(5.0, delta=0.1), nearly_bits(4), 2000),
    "differences": (numbers(0.2, delta=0.1), narrow(), 2000),
    "no privacy": (numbers(trust="none"), narrow(), 40),
    "levels": (numbers(3.0, "local"), lambda arm: {"a": 0.3, "b": 0.1}[arm], 40),
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """The transcript of each case, as somebody else reads it."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, (strategy, law, people) in CASES.items():
            without_chance(patch, 3)
            folder = tmp_path_factory.mktemp("numbers")
            trial = play(start(f"sqlite:///{folder}/t.db", strategy, people), law)
            made[name] = json.loads(json.dumps(trial.transcript()))
            assert trial.verify().problems == verified(made[name]).problems == ()
            trial.close()
    return made


@pytest.mark.parametrize("stated", [0, "", [], {}, 0.0])
def test_a_silent_arm_of_a_difference_states_no_epsilon(
    records: dict[str, Record], stated: Any
) -> None:
    record = deepcopy(records["differences"])
    released_alone = next(event for event in record["events"] if "margin" in event)
    next(one for one in released_alone["releases"] if one["sum"] is None)["epsilon"] = stated
    assert not verified(rechained(record)).intact


@pytest.mark.parametrize("kind", [float, bool])
def test_a_margin_names_its_arm_by_a_whole_number(
    records: dict[str, Record], kind: Callable[[int], Any]
) -> None:
    record = deepcopy(records["differences"])
    event = next(event for event in record["events"] if "margin" in event)
    event["margin"] = kind(event["margin"])
    assert not verified(rechained(record)).intact


@pytest.mark.parametrize("name", ["fine and bits", "differences", "levels"])
def test_a_release_states_the_epsilon_that_was_promised(
    records: dict[str, Record], name: str
) -> None:
    record = deepcopy(records[name])
    for event in record["events"]:
        for one in event.get("releases", []):
            one["epsilon"] = None if one["epsilon"] is None else 1e-300
    assert not verified(rechained(record)).intact


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_change_of_a_value_is_found(records: dict[str, Record], name: str) -> None:
    record = records[name]
    missed = {
        path
        for path, value in leaves(record)
        for other in others(value)
        if verified(changed(record, path, other)).intact
    }
    assert missed <= UNKNOWN


Change = Callable[[Record], object]
"""Of an event that releases something."""
NEAR: dict[str, Change] = {
    "left out": lambda event: shown(event).pop("near"),
    "nothing": lambda event: shown(event).update(near=None),
    "a float": lambda event: shown(event).update(near=float(shown(event)["near"])),
    "a truth value": lambda event: shown(event).update(near=True),
    "a text": lambda event: shown(event).update(near="7"),
    "beyond 64 bits": lambda event: shown(event).update(near=2**63),
    "one more beside": lambda event: shown(event).update(nearer=1),
    "a whole unit": lambda event: event.update(unit=1.0),
    "a finer unit": lambda event: event.update(unit=event["unit"] / 2),
    "another ε": lambda event: shown(event).update(epsilon=9.0),
}


def shown(event: Record) -> Record:
    """The first that has a number."""
    return next(one for one in event["releases"] if one["sum"] is not None)


def forged(record: Record, wanted: Callable[[Record], bool], change: Change) -> bool:
    """Whether a change of the first such event is found, hashes made anew."""
    other = deepcopy(record)
    change(next(event for event in released(other) if wanted(event)))
    return len(verified(rechained(other)).problems) > 0


def fine(event: Record) -> bool:
    return bool(event["unit"] < 1)


@pytest.mark.parametrize("change", NEAR)
@pytest.mark.parametrize("name", CASES)
def test_forged_closeness_is_found(records: dict[str, Record], name: str, change: str) -> None:
    assert not forged(records[name], fine, lambda event: None)
    assert forged(records[name], fine, NEAR[change])


@pytest.mark.parametrize("name", ["fine and bits", "no privacy", "levels"])
def test_intervals_follow_from_closeness(records: dict[str, Record], name: str) -> None:
    """Of six people more, or less: with a chain of one's own the status is another."""
    for more in (6, -6):

        def change(event: Record, more: int = more) -> None:
            shown(event)["near"] += round(more / event["unit"])

        assert forged(records[name], fine, change)


def test_a_round_of_bits_has_no_closeness(records: dict[str, Record]) -> None:
    record = records["fine and bits"]
    assert {event["unit"] for event in released(record)} == {1.0, 1 / FINE}

    def bits(event: Record) -> bool:
        return not fine(event)

    assert not forged(record, bits, lambda event: None)
    for near in (0, 5, None):
        assert forged(record, bits, lambda event, near=near: shown(event).update(near=near))  # type: ignore[misc]
    assert forged(record, bits, lambda event: event.update(unit=1 / FINE))
    assert forged(record, bits, lambda event: [one.update(near=0) for one in event["releases"]])
    assert forged(record, fine, lambda event: [one.pop("near") for one in event["releases"]])


def test_an_arm_that_says_nothing_has_no_closeness(records: dict[str, Record]) -> None:
    record = records["differences"]

    def silent(event: Record) -> Record:
        return next(one for one in event["releases"] if one["sum"] is None)

    def one_number(event: Record) -> bool:
        return "margin" in event

    assert not forged(record, one_number, lambda event: None)
    for near in (0, 5):
        assert forged(
            record,
            one_number,
            lambda event, near=near: silent(event).update(near=near),  # type: ignore[misc]
        )
    assert forged(record, one_number, lambda event: silent(event).pop("near"))
    assert forged(record, one_number, lambda event: silent(event).update(epsilon=0.3))


# --- sums that no outcomes have -------------------------------------------------------


IMPOSSIBLE = "no outcomes in the range of the protocol have this sum"


def impossible(record: Record, place: int = 0, **numbers: int) -> bool:
    """Whether a release, the first by default, cannot have these numbers."""
    other = deepcopy(record)
    event = released(other)[place]
    shown(event).update(numbers)
    return f"event {event['seq']}: {IMPOSSIBLE}" in verified(rechained(other)).problems


def test_impossible_sums_without_privacy(records: dict[str, Record]) -> None:
    """Of n people with a mean of 1/2 closeness is at most that of 1/2, 0.326 each; at
    the ends it is nothing.
    """
    record = records["no privacy"]
    one = shown(released(record)[0])
    n, whole = one["count"], one["count"] * FINE
    for total, near in ((-1, 0), (whole + 1, 0), (whole // 2, -1), (0, 1), (whole, 1)):
        assert impossible(record, sum=total, near=near)
    assert impossible(record, sum=whole // 2, near=round(0.327 * whole))
    assert impossible(record, sum=whole // 16, near=whole // 16)
    for total, near in ((0, 0), (whole, 0), (whole // 2, round(0.3261 * whole) - 3 * n)):
        assert not impossible(record, sum=total, near=near)


def test_impossible_levels(records: dict[str, Record]) -> None:
    """A sum is made of people at the middle (512 units in the first round) and at the
    top (1024), not more of both than there are.
    """
    record = records["levels"]
    n = shown(released(record)[0])["count"]
    for middle, top in ((n, 0), (0, n), (n - 1, 1), (0, 0), (3, 2)):
        assert not impossible(record, sum=512 * middle + 1024 * top, near=1024 * middle)
    for middle, top in ((n, 1), (n - 1, 2), (2, n - 1), (n + 1, 0), (-1, 3), (3, -1)):
        wrong = {"sum": 512 * middle + 1024 * top, "near": 1024 * middle}
        assert impossible(record, **wrong), (middle, top)
    assert impossible(record, sum=1024, near=512)
    assert impossible(record, sum=1023, near=0)


def test_levels_of_another_round_are_impossible(records: dict[str, Record]) -> None:
    """Everybody at the middle of the first round, in the second."""
    record = records["levels"]
    n = shown(released(record)[1])["count"]
    assert impossible(record, 1, sum=512 * n, near=1024 * n)
