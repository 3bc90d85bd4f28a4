"""What people send of outcomes that are numbers: drawn by counts as person by person,
and by the chances that privacy rests on (false-alarm rate 1e-6 each).
"""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, ks_2samp

from discreet.simulation import laws
from discreet.simulation.laws import draw_response, draw_sent_sums
from discreet.strategies.betting.bets import (
    BettingSetting,
    make_betting_rules,
    make_bump,
    measure_closeness,
)
from discreet.strategies.betting.book import new_book
from discreet.strategies.betting.rounds import announce_first
from discreet.strategies.presets import bet_se
from discreet.strategies.units import FINE_UNITS

LAWS = {
    "coins": laws.make_bernoulli_laws(np.array([0.3, 0.7])),
    "values": laws.make_discrete_laws(
        np.tile([0.0, 0.3, 0.5, 1 / 3, 1.0], (2, 1)),
        np.array([[0.1, 0.3, 0.3, 0.2, 0.1], [0.0, 0.0, 0.5, 0.5, 0.0]]),
    ),
}


def setting_of(epsilon: float | None, trust: str) -> BettingSetting:
    return make_betting_rules(bet_se(0.1, epsilon, trust, outcomes="numbers"), 2).setting


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("trust", ["global", "local"])
@pytest.mark.parametrize("centre", [0.25, 0.375, 0.5])
def test_counts_have_the_law_of_people(law: str, trust: str, centre: float) -> None:
    rng, setting = np.random.default_rng(5), setting_of(2.0, trust)
    now = announce_first(setting, 10**6, new_book(2, 40))._replace(centre=centre)
    bump = make_bump(centre, setting.grid)
    for arm in range(2):
        at_once = [draw_sent_sums(rng, LAWS[law], arm, 8, now, setting) for _ in range(1500)]
        one_by_one = []
        for _ in range(1500):
            rewards = [laws.draw_steady_reward(rng, LAWS[law], arm) for _ in range(8)]
            sent = [draw_response(rng, reward, bump, setting) for reward in rewards]
            one_by_one.append(tuple(np.sum(sent, axis=0).tolist()))
        for column in range(2):
            some = np.round(np.array(at_once)[:, column] / setting.grid, 4)
            other = np.round(np.array(one_by_one)[:, column] / setting.grid, 4)
            assert ks_2samp(some, other).pvalue > 1e-6
            assert ks_2samp(some, other + 0.5).pvalue < 1e-6  # more would be seen


@pytest.mark.parametrize("level", [0.25, 0.5, 0.875])
def test_levels_are_sent_as_privacy_asks(level: float) -> None:
    """Rounded without bias to 0, the level or 1, and kept with e^epsilon times the
    chance of each other one.
    """
    rng, setting = np.random.default_rng(6), setting_of(1.5, "local")
    bump, odds = make_bump(level, setting.grid), math.exp(1.5)
    for reward in (0.0, 0.1, level, 0.6, 0.9, 1.0):
        sent = [draw_response(rng, reward, bump, setting) for _ in range(6000)]
        if reward <= level:
            true = np.array([1 - reward / level, reward / level, 0.0])
        else:
            high = (reward - level) / (1 - level)
            true = np.array([0.0, 1 - high, high])
        chances = (true * (odds - 1) + 1) / (odds + 2)
        messages = [(0, 0), (round(level * setting.grid), setting.grid), (setting.grid, 0)]
        found = [sent.count(message) for message in messages]
        assert sum(found) == 6000
        assert chisquare(found, 6000 * chances).pvalue > 1e-6
        assert chisquare(found, 6000 * np.roll(chances, 1)).pvalue < 1e-6
        mean = setting.scale * reward + setting.level_error * (1 + level)
        assert (chances * [0, level, 1]).sum() == pytest.approx(mean, abs=1e-12)
        assert chances.max() / chances.min() <= odds * (1 + 1e-12)


def test_units_are_rounded_without_bias() -> None:
    rng, setting = np.random.default_rng(7), setting_of(None, "none")
    assert setting.grid == 2**FINE_UNITS
    for reward in (0.0, 1 / 3, 0.5, 0.7, 1.0):
        bump, exact = make_bump(0.5, setting.grid), reward * setting.grid
        sent = np.array([draw_response(rng, reward, bump, setting) for _ in range(4000)])
        assert set(sent[:, 0].tolist()) <= {math.floor(exact), math.ceil(exact)}
        assert abs(sent[:, 0].mean() - exact) <= 5 * 0.5 / math.sqrt(4000)
        assert all(measure_closeness(k, bump) == q for k, q in sent.tolist())


@pytest.mark.parametrize("epsilon", [40.0, 900.0])
def test_levels_of_people_who_hide_nothing(epsilon: float) -> None:
    """Where the chance of another level is too small for a number, plain Python sends
    the true one, as compiled loops do.
    """
    rng, rules = (
        np.random.default_rng(8),
        make_betting_rules(bet_se(0.1, epsilon, "local", outcomes="numbers"), 2),
    )
    now = announce_first(rules.setting, 10**6, new_book(2, 40))
    law = laws.make_discrete_laws(
        np.array([[0.5, 1.0], [0.5, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    )
    assert now.centre == 0.5
    assert draw_sent_sums(rng, law, 0, 9, now, rules.setting) == (9 * 512, 9 * 1024)
    assert draw_sent_sums(rng, law, 1, 9, now, rules.setting) == (9 * 1024, 0)
    bump = make_bump(0.5, rules.setting.grid)
    for reward, sent in ((0.0, (0, 0)), (0.5, (512, 1024)), (1.0, (1024, 0))):
        assert draw_response(rng, reward, bump, rules.setting) == sent
