"""One number for a round of two arms of bet-se, their difference: what is recorded,
shown and checked of it.
"""

from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from discreet import Trial, bet_se, verify_transcript
from discreet.cli import main
from discreet.reports.trial import trial_page
from discreet.strategies.run import ArmBatch, Totals
from discreet.trials import mechanisms
from discreet.trials.record import make_release
from discreet.trials.store import schema
from tests.support.forge import rechained
from tests.support.keys import seeded_keys
from tests.support.stores import database

RATES = {"a": 0.8, "b": 0.2}


@pytest.fixture(autouse=True)
def no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same trial every time: no noise, and keys with a seed."""
    monkeypatch.setattr(mechanisms, "add_laplace", lambda total, epsilon, grid: (total, epsilon))
    seeded_keys(monkeypatch)


def played(folder: Path, **options: Any) -> Trial:
    """A trial at strong privacy, to its end."""
    strategy = bet_se(0.1, 0.05, target_difference=0.5)
    trial = Trial.create(f"sqlite:///{folder}/t.db", "t", ["a", "b"], strategy, 20_000, **options)
    rng, scale = np.random.default_rng(3), trial.protocol.scale
    worst, best = (scale.low, scale.high)[:: 1 if scale.direction == "max" else -1]
    while people := trial.ask(1000).assignments:
        told = {one.id: best if rng.random() < RATES[one.arm] else worst for one in people}
        trial.tell_many(told)
    return trial


def differences(transcript: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in transcript["events"] if "margin" in event]


def dealt(transcript: dict[str, Any], phase: int) -> Counter[int]:
    """People of each arm in a round, as the record tells them."""
    found = list[int]()
    rounds = 0
    for event in transcript["events"]:
        rounds += event["kind"] == "opened"
        found += event.get("arms", []) if rounds == phase else []
    return Counter(found)


def successes(folder: Path) -> dict[tuple[int, int], int]:
    """Behind the wall: the sum of each arm in each round."""
    column = schema.outcomes.c
    query = sa.select(column.arm, column.phase, column.units)
    sums = Counter[tuple[int, int]]()
    with database(f"sqlite:///{folder}/t.db") as connection:
        for arm, phase, units in connection.execute(query):
            sums[arm, phase] += units
    return sums


def test_a_difference_is_one_number_with_one_epsilon(tmp_path: Path) -> None:
    """It allows half a success for each participant that the leader has more."""
    trial = played(tmp_path, retain="forever")
    transcript, status, sums = trial.transcript(), trial.status(), successes(tmp_path)
    assert status.conclusive
    assert trial.verify().problems == verify_transcript(transcript).problems == ()
    found = differences(transcript)
    assert found
    for event in found:
        (shown,) = [one for one in event["releases"] if one["sum"] is not None]
        assert (shown["arm"], shown["epsilon"]) == (event["margin"], 0.05)
        (silent,) = [one for one in event["releases"] if one["sum"] is None]
        assert silent["epsilon"] is None
        counts = {one["arm"]: one["count"] for one in event["releases"]}
        assert shown["count"] != silent["count"]
        phase, leader, other = shown["phase"], shown["arm"], silent["arm"]
        assert counts == dealt(transcript, phase)
        allowed = (counts[leader] - counts[other]) // 2
        assert shown["sum"] == sums[leader, phase] - sums[other, phase] - allowed
    sums_shown = sum(len(event.get("releases", [])) for event in transcript["events"])
    assert status.releases == sums_shown - len(found)
    assert len(status.leads) == len(found)


@pytest.mark.filterwarnings("ignore::discreet.errors.RoundedWarning")
def test_a_difference_is_shown_in_units_of_the_experimenter(tmp_path: Path) -> None:
    """Less is better, and the first arm is better by 10 times 0.8 - 0.2."""
    trial = played(tmp_path, range=(10, 20), direction="min")
    event, lead = differences(trial.transcript())[0], trial.status().leads[0]
    (shown,) = [one["sum"] for one in event["releases"] if one["sum"] is not None]
    assert lead.name == "ab"[event["margin"]] == "a"
    assert lead.over == ("b",)
    assert lead.better_by == pytest.approx(10 * shown / lead.participants)
    assert 4 < lead.better_by < 8
    phase, events = event["releases"][0]["phase"], trial.transcript()["events"]
    (opened,) = [one for one in events if one.get("round") == phase]
    assert lead.participants == opened["participants"] / sum(weight for _, weight in opened["odds"])


def test_forged_differences_are_found(tmp_path: Path) -> None:
    transcript = played(tmp_path).transcript()
    place = next(i for i, event in enumerate(transcript["events"]) if "margin" in event)
    releases, leader = (
        transcript["events"][place]["releases"],
        transcript["events"][place]["margin"],
    )
    at = {one["arm"]: number for number, one in enumerate(releases)}
    other = next(arm for arm in at if arm != leader)

    def forged(change: Any) -> bool:
        copy = deepcopy(transcript)
        change(copy["events"][place])
        return not verify_transcript(rechained(copy)).intact

    def swap(event: dict[str, Any]) -> None:
        one, two = event["releases"][at[leader]], event["releases"][at[other]]
        one["sum"], two["sum"] = two["sum"], one["sum"]
        one["epsilon"], two["epsilon"] = two["epsilon"], one["epsilon"]

    assert not forged(lambda event: None)
    assert forged(swap)
    assert forged(lambda event: event.pop("margin"))
    assert forged(lambda event: event.update(margin=other))
    assert forged(lambda event: event.update(margin=None))
    assert forged(lambda event: event["releases"][at[other]].update(sum=0, epsilon=0.05))
    assert forged(lambda event: event["releases"][at[other]].update(epsilon=0.05))
    assert forged(lambda event: event["releases"][at[leader]].update(epsilon=None))
    assert forged(lambda event: event["releases"][at[leader]].update(sum=None))
    assert forged(lambda event: event["releases"][at[leader]].update(sum=-5000))
    lead = deepcopy(transcript)
    lead["status"]["leads"][0]["better_by"] += 0.1
    assert not verify_transcript(lead).intact


def test_a_trial_of_differences_has_pages(tmp_path: Path) -> None:
    """No mean of either arm: the pages say what was released instead."""
    trial = played(tmp_path)
    status = trial.status()
    assert [arm.mean for arm in status.arms] == [None, None]
    words = "did better than" if status.leads[-1].better_by > 0 else "did worse than"
    page = trial_page(trial.transcript())
    assert "Released in place of means" in page
    assert words in page
    assert "target_difference = 0.5" in page
    assert "drawn with the announced probabilities" in page
    command = ["trial", "status", "t", "--url", f"sqlite:///{tmp_path}/t.db"]
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0
    assert words in " ".join(shown.output.split())


def test_nothing_that_a_warning_could_stop_follows_a_draw() -> None:
    """Warnings are errors in these tests, as they may be anywhere."""
    done = []

    def decide(sums: list[float]) -> None:
        done.append(np.float64(1e308) * np.float64(10) + sums[0])

    made = make_release([ArmBatch(0, 1, 3)], [Totals(2)], 1, lambda total: total, decide)
    assert made[0].sum == 2
    assert len(done) == 1
