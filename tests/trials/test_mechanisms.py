"""Live noise: its law, its ε by its own map, and that nothing of the outcome is said
aloud.

Here OpenDP draws it, which takes no seed, so every statistical test has a false-alarm
rate of its own: 1e-9, stated at each.
"""

import math
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet import (
    InvalidInputError,
    adap_tt,
    adap_tt_star,
    bet_se,
    ctb_tt,
    dp_se,
    gauss_tt,
    ttucb,
)
from discreet.scale import Scale
from discreet.strategies.run import Totals
from discreet.strategies.units import choose_grid
from discreet.trials import mechanisms as privacy
from discreet.trials import responses
from discreet.trials.mechanisms import respond
from discreet.trials.responses import Response

pytestmark = pytest.mark.real_chance
ALARM = 1e-9
EPSILONS = (1e-6, 0.003, 0.1, 0.3, 0.7, 1.0, math.log(3), 3.0, 7.7, 30.0, 1000.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_mechanism_spends_more_than_promised(epsilon: float) -> None:
    for grid in (1, 2**20):
        assert epsilon * (1 - 1e-9) < privacy.add_laplace(5, epsilon, grid)[1] <= epsilon
    assert privacy.compute_response_epsilon(epsilon) <= epsilon
    if epsilon < 30:
        assert privacy.compute_response_epsilon(epsilon) > epsilon * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "gamma"), [(0.1, 1e-6), (1.0, 1e-5), (4.0, 0.05)])
def test_gaussian_responses_are_calibrated_by_their_map(epsilon: float, gamma: float) -> None:
    from discreet.theory.thresholds import gaussian_scale

    assert epsilon * (1 - 1e-6) < privacy.compute_response_epsilon(epsilon, gamma) <= epsilon
    assert privacy.find_noise_scale(epsilon, gamma) >= gaussian_scale(epsilon, gamma)


def test_discrete_laplace_law() -> None:
    """Chi-squared against tanh(ε/2) e^{-ε|k|}, tails pooled; false alarm 1e-9."""
    epsilon, draws = 0.5, 4000
    counts = Counter(privacy.add_laplace(100, epsilon, 1)[0] - 100 for _ in range(draws))
    inner = range(-8, 9)
    expected = [draws * math.tanh(epsilon / 2) * math.exp(-epsilon * abs(k)) for k in inner]
    seen = [counts[k] for k in inner]
    expected.append(draws - sum(expected))
    seen.append(draws - sum(seen))
    assert stats.chisquare(seen, expected).pvalue > ALARM


def test_noise_on_the_fine_grid_has_the_scale_of_its_epsilon() -> None:
    """Mean absolute noise within normal limits; false alarm 1e-9 (|Z| ε is nearly
    exponential: σ = mean).
    """
    epsilon, draws = 2.0, 3000
    size = [abs(privacy.add_laplace(0, epsilon, 2**20)[0]) / 2**20 * epsilon for _ in range(draws)]
    assert abs(np.mean(size) - 1) < stats.norm.isf(ALARM / 2) / math.sqrt(draws)


@pytest.mark.parametrize(("outcome", "gamma"), [(0.0, None), (0.3, None), (1.0, None), (0.3, 0.05)])
def test_responses_have_their_law(outcome: float, gamma: float | None) -> None:
    """Binomial or normal limits; false alarm 1e-9 each."""
    epsilon, draws = 1.0, 3000
    values = [respond(outcome, epsilon, gamma).value for _ in range(draws)]
    if gamma is None:
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        chance = outcome * truth + (1 - outcome) * (1 - truth)
        assert stats.binomtest(sum(values), draws, chance).pvalue > ALARM
    else:
        scale = privacy.find_noise_scale(epsilon, gamma)
        z = (np.array(values) / 2**20 - outcome) / scale
        assert stats.kstest(z, "norm").pvalue > ALARM


def test_rounding_is_without_bias_and_within_the_grid() -> None:
    """Binomial limits; false alarm 1e-9."""
    assert [responses.to_units(r, 4) for r in (0.0, 0.25, 0.5, 1.0)] == [0, 1, 2, 4]
    up = sum(responses.to_units(0.3, 1) for _ in range(5000))
    assert stats.binomtest(up, 5000, 0.3).pvalue > ALARM
    assert {responses.to_units(0.3, 10) for _ in range(50)} <= {3, 4}


def test_discrete_noise_keeps_the_error_rate() -> None:
    """Exact tails over the continuous ones never exceed what the thresholds are made to
    pay for.
    """
    for strategy in (adap_tt(1, 0.1), adap_tt_star(0.01, 0.1), dp_se(50, 0.01), adap_tt(1e6, 0.1)):
        eta = float(strategy.epsilon or 0) / choose_grid(strategy)
        k = np.arange(1, 50)
        tails = 2 * np.exp(-eta * k) / (1 + math.exp(-eta))
        worst = (tails / np.exp(-eta * k)).max()
        assert worst * responses.payable_delta(strategy) <= strategy.delta * (1 + 1e-12)
    for free in (bet_se(0.1, epsilon=1), ctb_tt(1, 0.1), ttucb(0.1), gauss_tt(1, 0.1, 0.1)):
        assert responses.payable_delta(free) == free.delta


def test_discrete_laplace_has_a_smaller_moment_generating_function() -> None:
    for epsilon in (0.01, 0.5, 1.0, 5.0):
        tilt = np.linspace(0.01, 0.99, 50) * epsilon
        discrete = np.log((math.cosh(epsilon) - 1) / (math.cosh(epsilon) - np.cosh(tilt)))
        assert (discrete <= -np.log1p(-((tilt / epsilon) ** 2)) + 1e-12).all()


def draws(_: int = 0) -> tuple[int, ...]:
    return tuple(privacy.add_laplace(0, 1.0, 2**20)[0] for _ in range(8))


def test_a_fork_does_not_repeat_noise() -> None:
    """Eight numbers on a grid of millionths: that two lists agree by chance has
    probability below 1e-40.
    """
    draws()
    found = []
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.write(write, repr(draws()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        found.append(os.read(read, 10_000).decode())
        os.close(read)
        os.close(write)
    found.append(repr(draws()))
    assert len(set(found)) == 4


def test_threads_do_not_share_noise() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(draws, range(40)))
    assert len(set(found)) == 40


def test_no_seed_reaches_live_noise() -> None:
    import random

    seen = set()
    for _ in range(2):
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        seen.add(draws())
    assert len(seen) == 2


@pytest.mark.parametrize(
    "bad", [1.2345678, -0.1234567, math.nan, math.inf, "0.7654321", None, [0.5]]
)
def test_errors_do_not_repeat_an_outcome(bad: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        respond(bad, 1.0)  # type: ignore[arg-type]
    assert not any(part in str(caught.value) for part in ("1.23", "0.12", "0.76", "nan"))


def test_a_response_is_one_word_and_a_raw_outcome_is_none() -> None:
    span = Scale(-3, 1e5, "min")
    for response in (
        Response("rr", 0.1, None, 1, Scale()),
        Response("gauss", 1.0, 1e-6, -123, span),
    ):
        assert Response.parse(str(response)) == response
    for word in ("0.3", "1", "rr/1.0/2", "rr/1.0", "gauss/1/2", "x/1/1", "", "rr/a/1"):
        with pytest.raises(InvalidInputError):
            Response.parse(word)


def test_scales() -> None:
    scale = Scale(10, 30, "min")
    assert (
        scale.convert_to_reward(10),
        scale.convert_to_reward(30),
        scale.convert_to_reward(25),
    ) == (1.0, 0.0, 0.25)
    assert scale.convert_to_outcome(0.25) == 25
    for low, high, direction in (
        (1, 1, "max"),
        (0, math.inf, "max"),
        (2, 1, "max"),
        (0, 1, "up"),
        (-1e308, 1e308, "max"),
    ):
        with pytest.raises(InvalidInputError):
            Scale(low, high, direction)


# --- a sum and closeness from one mechanism -------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_pair_costs_one_epsilon(epsilon: float) -> None:
    """By its own map: for two numbers that move by a grid together, not each."""
    for grid in (1, 2**10, 2**20):
        mechanism, spent = privacy._laplace_pair(epsilon, grid)
        assert epsilon * (1 - 1e-9) < spent <= epsilon
        assert (
            spent == mechanism.map(grid) == privacy.compute_sum_epsilon(epsilon, grid, pairs=True)
        )
        assert mechanism.map(2 * grid) == pytest.approx(2 * epsilon)
    assert choose_grid(bet_se(0.1, epsilon, outcomes="numbers")) <= 2**20


def test_the_law_of_a_pair() -> None:
    """Each of the two has discrete Laplace noise, chi-squared with tails pooled, and
    their signs are independent; false alarm 1e-9 each.
    """
    epsilon, draws = 0.5, 4000
    pairs = [privacy.add_laplace_noise(Totals(100, 40), epsilon, 1) for _ in range(draws)]
    noise = np.array([(one.sum - 100, (one.near or 0) - 40) for one in pairs])
    inner = range(-8, 9)
    law = [math.tanh(epsilon / 2) * math.exp(-epsilon * abs(k)) for k in inner]
    for column in noise.T:
        seen = [int((column == k).sum()) for k in inner]
        expected = [draws * chance for chance in law]
        both = [*seen, draws - sum(seen)], [*expected, draws - sum(expected)]
        assert stats.chisquare(*both).pvalue > ALARM
    none = law[8]
    sides = np.array([(1 - none) / 2, none, (1 - none) / 2])
    cells = Counter(map(tuple, np.sign(noise).tolist()))
    table = [cells[one, other] for one in (-1, 0, 1) for other in (-1, 0, 1)]
    assert stats.chisquare(table, draws * np.outer(sides, sides).ravel()).pvalue > ALARM


def test_a_pair_on_the_fine_grid_has_the_scale_of_its_epsilon() -> None:
    """Mean absolute noise of both within normal limits, and of their difference, which
    is 3/2 with a standard deviation of sqrt(7)/2 if they are independent; false alarm
    1e-9 each.
    """
    epsilon, draws, grid = 2.0, 3000, 2**20
    pairs = [privacy.add_laplace_noise(Totals(0, 0), epsilon, grid) for _ in range(draws)]
    noise = np.array([(one.sum, one.near or 0) for one in pairs]) / grid * epsilon
    limit = stats.norm.isf(ALARM / 2) / math.sqrt(draws)
    assert (np.abs(np.abs(noise).mean(axis=0) - 1) < limit).all()
    apart = np.abs(noise[:, 0] - noise[:, 1]).mean()
    assert abs(apart - 1.5) < limit * math.sqrt(7) / 2


def test_a_sum_alone_has_no_closeness() -> None:
    assert privacy.add_laplace_noise(Totals(5), 1.0, 1).near is None
    assert privacy.add_laplace_noise(Totals(5, 0), 1.0, 1).near is not None


# --- three levels ---------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_level_costs_no_more_than_promised(epsilon: float) -> None:
    spent = privacy.compute_response_epsilon(epsilon, middle=0.5)
    assert spent <= epsilon
    if 0.003 <= epsilon < 30:
        assert spent > epsilon * (1 - 1e-6)


@pytest.mark.parametrize("outcome", [0.0, 0.1, 0.25, 0.7, 1.0])
def test_levels_have_their_law(outcome: float) -> None:
    """e^ε/(e^ε + 2) for the true one; chi-squared, false alarm 1e-9."""
    epsilon, middle, draws = 2.0, 0.25, 3000
    seen = Counter(respond(outcome, epsilon, middle_level=middle).value for _ in range(draws))
    slip = 1 / (math.exp(epsilon) + 2)
    low, high = max(0, 1 - outcome / middle), max(0, (outcome - middle) / (1 - middle))
    rounded = np.array([low, 1 - low - high, high])
    chances = slip + (1 - 3 * slip) * rounded
    assert set(seen) <= {0, 256, 1024}
    counts = [seen[units] for units in (0, 256, 1024)]
    assert stats.chisquare(counts, draws * chances).pvalue > ALARM


def exact_mean(reward: float, middle: float, patch: pytest.MonkeyPatch) -> Fraction:
    """Of `to_level`: it goes up for the first so many of equally likely cases."""
    cases = list[int]()

    def up_with(case: int) -> int:
        def draw(below: int) -> int:
            cases.append(below)
            return min(case, below - 1)

        patch.setattr("discreet.trials.responses.secrets.randbelow", draw)
        return responses.to_level(reward, middle)

    least, most = up_with(10**40), up_with(0)
    low, high = 0, cases[-1]
    while low < high:  # the first case in which it does not go up
        case = (low + high) // 2
        low, high = (case + 1, high) if up_with(case) > least else (low, case)
    share = Fraction(low, cases[-1])
    levels = (Fraction(0), Fraction(middle), Fraction(1))
    assert most - least in (0, 1)
    up = share if most > least else Fraction(0)
    return levels[least] + up * (levels[most] - levels[least])


def test_rounding_to_a_level_is_without_any_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """In fractions: the mean is the reward, to the last bit."""
    for middle in (1 / 64, 0.25, 333 / 1024, 0.5, 63 / 64):
        for reward in (0.0, 5e-324, 1 / 64, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1 - 2**-53, 1.0, middle):
            assert exact_mean(reward, middle, monkeypatch) == Fraction(reward)


def test_rounding_that_is_biased_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "Fraction", lambda x: Fraction(round(x * 2**30), 2**30))
    assert exact_mean(0.1, 0.25, monkeypatch) != Fraction(0.1)


def test_a_level_is_one_word() -> None:
    for value in (0, 333, 1024):
        for scale in (Scale(), Scale(-3, 1e5, "min")):
            response = Response("levels", 3.0, None, value, scale, 333 / 1024)
            assert Response.parse(str(response)) == response
            assert str(response).startswith(f"levels/3.0/0.3251953125/{value}")


@pytest.mark.parametrize("value", ["7", "1", "-1", "512.0", "True", str(10**30), "256", ""])
def test_what_is_no_level_is_no_response(value: str) -> None:
    assert Response.parse("levels/3.0/0.5/512").value == 512
    with pytest.raises(InvalidInputError, match="not a randomised response"):
        Response.parse(f"levels/3.0/0.5/{value}")


BAD_MIDDLES: list[Any] = [
    0.3,
    1 / 3,
    15 / 1024,
    1009 / 1024,
    0.0,
    1.0,
    -0.5,
    512.0,
    math.nan,
    math.inf,
    1e308,
    10**400,
    True,
    "0.5",
    [0.5],
]


@pytest.mark.parametrize("middle", BAD_MIDDLES, ids=lambda middle: str(middle)[:9])
def test_what_is_never_announced_is_no_middle(middle: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"middle_level must be the level .* from 1/64"):
        respond(0.5, 3.0, middle_level=middle)
    with pytest.raises(InvalidInputError):
        Response("levels", 3.0, None, 0, Scale(), middle)
    with pytest.raises(InvalidInputError, match="not a randomised response"):
        Response.parse(f"levels/3.0/{middle!r}/0")


def test_a_response_is_of_one_kind() -> None:
    with pytest.raises(InvalidInputError, match="a middle level or a gamma, not both"):
        respond(0.5, 3.0, 0.1, middle_level=0.5)
    for kind, gamma, middle in (
        ("rr", None, 0.5),
        ("rr", 0.1, None),
        ("gauss", 0.1, 0.5),
        ("gauss", None, None),
        ("levels", None, None),
        ("levels", 0.1, 0.5),
        ("bits", None, None),
    ):
        with pytest.raises(InvalidInputError, match="make one with discreet"):
            Response(kind, 3.0, gamma, 0, Scale(), middle)
    for word in ("levels/3.0/0", "rr/3.0/0.5/0", "levels/3.0/0.5/0.5/0", "levels/x/0.5/0"):
        with pytest.raises(InvalidInputError):
            Response.parse(word)
    for value in (True, 512.0, "512"):
        with pytest.raises(InvalidInputError):
            Response("levels", 3.0, None, value, Scale(), 0.5)  # type: ignore[arg-type]
