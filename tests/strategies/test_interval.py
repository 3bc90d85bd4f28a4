"""Intervals and p-values of bet-se: valid at all times, with drift and without, and red
if they are not. False alarms below 1e-6 each; fixed seeds.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet import InvalidInputError
from discreet._types import Floats
from discreet.strategies.betting import inference as room
from discreet.strategies.betting.bets import Bets, BettingSetting, make_bets, make_setting
from discreet.strategies.betting.book import ASSIGNED, SUM, new_book
from discreet.strategies.betting.inference import (
    compute_interval,
    compute_log_p_value,
    make_mean_test,
)


def alarm(found: int, of: int, rate: float) -> bool:
    return bool(binom.sf(found - 1, of, rate) < 1e-6)


def released(rng: np.random.Generator, chances: Floats, setting: BettingSetting) -> float:
    """A sum of bits with these chances, as it is released."""
    total = int((rng.random(chances.size) < 0.5 + setting.scale * (chances - 0.5)).sum())
    if setting.epsilon < math.inf:
        p = -math.expm1(-setting.epsilon)
        total += int(rng.geometric(p)) - int(rng.geometric(p))
    return float(total)


def missed(trust: str, bets: Bets, drift: bool, runs: int = 25) -> int:
    """Of so many arms looked at six times each at level 0.9: how many intervals miss
    the mean at some look; the mean of those so far if it drifts.
    """
    found, rng, setting = 0, np.random.default_rng(21), make_setting(2, 1.0, 0.1, trust)
    for _ in range(runs):
        total, means, ever = np.zeros(4), np.zeros(0), False
        for k in range(6):
            fresh = np.full(4 * 3**k, 0.3)
            if drift:
                fresh = np.where(np.arange(fresh.size) % 2 == 0, 0.1, 0.1 + 0.15 * k)
            means = np.r_[means, fresh]
            total[:3] += released(rng, fresh, setting), fresh.size, 1
            low, high = compute_interval(total, 0.1, bets, setting, drift)
            assert 0 <= low <= high <= 1
            ever |= not low <= means.mean() <= high
        found += ever
        assert high - low < 0.25 / setting.scale
    return found


@pytest.mark.slow
@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize("trust", ["global", "local"])
def test_intervals_cover_at_all_times(trust: str, drift: bool) -> None:
    assert not alarm(missed(trust, make_bets(1.0, trust), drift), 25, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("drift", [False, True])
def test_intervals_from_too_much_money_are_caught(drift: bool) -> None:
    bets = make_bets(1.0)
    assert alarm(missed("global", bets._replace(stake=bets.stake + math.log(30)), drift), 25, 0.1)


@pytest.mark.slow
def test_noise_that_is_not_paid_for_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small releases, all noise."""
    setting, bets = make_setting(2, 0.5, 0.1), make_bets(0.5)

    def misses() -> int:
        rng, found = np.random.default_rng(5), 0
        for _ in range(40):
            total, ever = np.zeros(4), False
            for _ in range(16):
                total[:3] += released(rng, np.full(1, 0.5), setting), 1, 1
                low, high = compute_interval(total, 0.1, bets, setting)
                ever |= not low <= 0.5 <= high
            found += ever
        return found

    assert not alarm(misses(), 40, 0.1)
    monkeypatch.setattr(room, "price_noise", lambda slope, epsilon, sigma: 0.0)
    assert alarm(misses(), 40, 0.1)


@pytest.mark.parametrize("drift", [False, True])
def test_an_interval_is_what_nobody_doubts(drift: bool) -> None:
    """Against a scan of all values in steps of 1e-3."""
    setting, bets = make_setting(2, 1.0, 0.1), make_bets(1.0)
    for total in ([30.0, 100, 2, 100], [3.0, 40, 1, 40], [-2.0, 10, 1, 10], [990.0, 1000, 3, 1000]):
        row = np.array(total)
        doubt, target = make_mean_test(row, bets, 1.0, drift), -math.log(0.05)
        kept = [x for x in np.arange(0, 1.0005, 1e-3) if doubt(x)[0] < target]
        found = compute_interval(row, 0.05, bets, setting, drift)
        assert found == pytest.approx((min(kept), max(kept)), abs=1.1e-3)


def test_drift_costs_most_far_from_a_half() -> None:
    setting, bets = make_setting(2, 1.0, 0.1), make_bets(1.0)
    rare, even = np.array([20.0, 1000, 1, 1000]), np.array([500.0, 1000, 1, 1000])
    widths = [
        np.ptp(compute_interval(row, 0.05, bets, setting, drift))
        for row in (rare, even)
        for drift in (False, True)
    ]
    assert widths[1] > 1.5 * widths[0]
    assert widths[3] == pytest.approx(widths[2], rel=0.05)


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="alpha must lie strictly between 0 and 1"):
        compute_interval(np.zeros(4), 1.0, make_bets(1.0), make_setting(2, 1.0, 0.1))


def test_a_p_value_is_one_over_the_money() -> None:
    """Less what floating point may have invented; at most 1."""
    book = new_book(2, 40)
    book.log_wealth[:] = 3.0, -1.0
    book.total[:, ASSIGNED] = 10**13
    assert compute_log_p_value(0, book) == pytest.approx(-2.9)
    assert compute_log_p_value(1, book) == 0
    assert SUM == 0
