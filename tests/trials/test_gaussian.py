"""Live trials with Gaussian noise on sums: what each release states, the law of its
noise, what is refused. Chi-squared tests have a false alarm of 1e-9.
"""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import DiscreetError, Strategy, Trial, adap_tt, bet_se, trial_page, verify_transcript
from discreet.strategies.run import Totals
from discreet.strategies.units import choose_grid, compute_sum_noise
from discreet.trials import mechanisms
from tests.support.forge import rechained

Record = dict[str, Any]
LEVELS = [(1e-4, 1e-12), (0.01, 1e-6), (0.3, 1e-3), (1.0, 1e-6), (8.0, 1e-9), (300.0, 1e-5)]


def play(folder: Path, strategy: Strategy, people: int) -> Record:
    """The transcript of a small trial in which every third outcome is a success."""
    trial = Trial.create(f"sqlite:///{folder}/t.db", "t", ["a", "b"], strategy, people)
    while not (batch := trial.ask(20)).stopped:
        told = enumerate(batch.assignments)
        trial.tell_many({one.id: float(place % 3 == 0) for place, one in told})
    return trial.transcript()


def release_of(record: Record) -> Record:
    """What the first release says about its first batch that has a number."""
    event = next(one for one in record["events"] if one["kind"] == "released")
    found: Record = next(one for one in event["releases"] if one["sum"] is not None)
    return found


@pytest.mark.parametrize(("epsilon", "gamma"), LEVELS)
def test_opendp_finds_the_promised_epsilon(epsilon: float, gamma: float) -> None:
    """By its own map from ρ to ε at this γ; on bits and on fine units."""
    for strategy in (bet_se(0.1, epsilon=epsilon, gamma=gamma), adap_tt(epsilon, 0.1, gamma=gamma)):
        spent = mechanisms.compute_gaussian_cost(
            compute_sum_noise(strategy), choose_grid(strategy), gamma
        )
        assert epsilon * (1 - 1e-8) < spent <= epsilon


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 0.5, 40.0])
def test_opendp_finds_the_promised_rho(rho: float) -> None:
    for strategy in (bet_se(0.1, rho=rho), adap_tt(None, 0.1, rho=rho)):
        spent = mechanisms.compute_gaussian_cost(
            compute_sum_noise(strategy), choose_grid(strategy), None
        )
        assert rho * (1 - 1e-8) < spent <= rho


def test_noise_that_does_not_keep_the_promise_is_refused_before_anyone_comes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        mechanisms, "compute_sum_noise", lambda strategy: 0.999 * compute_sum_noise(strategy)
    )
    for strategy in (bet_se(0.1, rho=1), bet_se(0.1, epsilon=1, gamma=1e-6)):
        with pytest.raises(DiscreetError, match="above its"):
            Trial.create(f"sqlite:///{tmp_path}/t.db", "x", ["a", "b"], strategy, 100)


@pytest.mark.real_chance
def test_the_law_of_live_noise() -> None:
    """False alarm 1e-9."""
    sigma, draws = 1.3, 3000
    found = [mechanisms.add_gaussian_noise(Totals(7), sigma, 1).sum - 7 for _ in range(draws)]
    values = np.arange(-40, 41)
    chances = np.exp(-(values**2) / (2 * sigma**2))
    chances /= chances.sum()
    inner = np.abs(values) <= 3
    expected = [*chances[inner], chances[~inner].sum()]
    counts = [*(found.count(value) for value in values[inner]), sum(abs(x) > 3 for x in found)]
    wanted = draws * np.array(expected)
    assert chi2.sf(((counts - wanted) ** 2 / wanted).sum(), len(wanted) - 1) > 1e-9


TRIALS = {
    "gamma": (bet_se(0.1, epsilon=2.0, gamma=1e-6), "epsilon", "ε = 2, γ = 1e-06"),
    "rho": (bet_se(0.1, rho=0.4), "rho", "ρ = 0.4"),
    "phased": (adap_tt(None, 0.1, rho=8.0), "rho", "ρ = 8"),
}


def no_opendp() -> Any:
    raise AssertionError("a record is checked without OpenDP")


@pytest.mark.parametrize("name", TRIALS)
def test_a_trial_states_what_each_release_costs(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy, level, words = TRIALS[name]
    record = play(tmp_path, strategy, 60)
    monkeypatch.setattr(mechanisms, "_opendp", no_opendp)
    mechanisms._gaussian_sum.cache_clear()
    assert verify_transcript(record).problems == ()
    assert record["status"]["privacy"] == strategy.privacy
    assert Strategy.from_dict(record["protocol"]["strategy"]) == strategy
    promised = float(strategy.level[1] or 0)
    stated = [
        one[level]
        for event in record["events"]
        if event["kind"] == "released"
        for one in event["releases"]
        if one["sum"] is not None
    ]
    assert stated
    assert all(promised * (1 - 1e-6) < one <= promised for one in stated)
    assert f"the whole transcript has {words}" in trial_page(record)
    other = "epsilon" if level == "rho" else "rho"
    for lie in ({level: promised * 1.01}, {level: promised * 0.9}, {level: None}, {other: 1.0}):
        told = copy.deepcopy(record)
        release_of(told).update(lie)
        assert verify_transcript(rechained(told)).problems != ()
    assert verify_transcript(rechained(record)).problems == ()


def test_the_same_command_again_changes_nothing_and_other_levels_are_refused(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    made = Trial.create(url, "x", ["a", "b"], bet_se(0.1, rho=1), 100)
    again = Trial.create(url, "x", ["a", "b"], bet_se(0.1, rho=1), 100)
    assert again.protocol_hash == made.protocol_hash
    with pytest.raises(DiscreetError, match=r"strategy rho is 1\.0, not None"):
        Trial.create(url, "x", ["a", "b"], bet_se(0.1, epsilon=1), 100)
    assert math.isclose(float(made.protocol.strategy.rho or 0), 1)
