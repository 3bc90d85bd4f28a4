"""The lemmas of the docs page "Betting elimination", by enumeration: scores, prices and
constants of noise, tail bets, margins. Random cases have fixed seeds; nothing here is a
statistical test.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, multinomial

from discreet.strategies.betting.bets import (
    KAPPA,
    log_tail_one,
    log_tail_two,
    noise_price,
    price_of_two,
    slopes,
    tail_bet,
)
from discreet.strategies.betting.book import (
    COST,
    COUNT,
    OWN,
    RIVAL,
    STEP,
    SUM,
    Book,
    Round,
    new_book,
)
from discreet.strategies.betting.plan import Plan
from discreet.strategies.betting.rounds import (
    TAILS,
    UP,
    announce,
    first_round,
    handicap,
    release_margin,
)
from discreet.strategies.betting.settle import FIRST_STAKE, bet_on_all, praise, worth
from discreet.strategies.betting.tilts import make_bets, make_setting

Floats = NDArray[np.float64]


# --- Lemma 1: the score ---------------------------------------------------------------


def random_score(rng: np.random.Generator) -> tuple[float, float, int, int]:
    """A tilt, a centre, and the odds of an arm and its rival, one of them 1."""
    tilt, centre = math.exp(rng.uniform(math.log(1e-5), math.log(3))), rng.uniform(1 / 64, 63 / 64)
    high = int(2 ** rng.integers(5))
    own, rival = (high, 1) if rng.random() < 0.5 else (1, high)
    return tilt, centre, own, rival


def test_a_score_is_a_chord_and_fair_over_the_coins() -> None:
    """For each person the score's factor lies below 1 - d (r - x0) (of the rival: 1 +
    d' (r - x0)), touches it at 0 and 1, and its mean over the coins is 1 + eta tau.
    """
    rng = np.random.default_rng(1)
    r = np.linspace(0, 1, 21)
    for _ in range(500):
        tilt, centre, own, rival = random_score(rng)
        score = slopes(-math.expm1(-tilt), math.expm1(tilt), centre, own / rival)
        down = np.exp(score.own_count - score.own * r)
        up = np.exp(score.rival_count + score.rival * r)
        d, other = score.step, score.step * own / rival
        assert np.all(down <= 1 - d * (r - centre) + 1e-14)
        assert np.all(up <= 1 + other * (r - centre) + 1e-14)
        ends = [0, -1]
        assert down[ends] == pytest.approx(1 - d * (r[ends] - centre), rel=1e-13)
        assert up[ends] == pytest.approx(1 + other * (r[ends] - centre), rel=1e-13)
        assert min(score.own, score.rival) > 0
        assert max(score.own, score.rival) == pytest.approx(tilt, rel=1e-9)
        odds = own + rival + int(rng.integers(4))
        bits = (0, -1)
        for a, c in itertools.product(bits, bits):
            mean = (own * down[a] + rival * up[c] + (odds - own - rival)) / odds
            assert mean == pytest.approx(1 + own * d / odds * (r[c] - r[a]), rel=1e-13)


def test_steps_are_neither_long_nor_short() -> None:
    """d and d' are at most e^tilt - 1, odds times d at least 1 - e^-tilt: what the
    proof of termination uses.
    """
    rng = np.random.default_rng(2)
    for _ in range(500):
        tilt, centre, own, rival = random_score(rng)
        d = slopes(-math.expm1(-tilt), math.expm1(tilt), centre, own / rival).step
        assert max(d, d * own / rival) <= math.expm1(tilt) * (1 + 1e-12)
        assert own * d >= -math.expm1(-tilt) * (1 - 1e-12)


# --- Lemma 2: the price of noise ------------------------------------------------------


def test_the_price_is_the_moment_of_the_noise() -> None:
    """Against the sum over the law itself, in 50 digits; and nothing without noise."""
    rng = np.random.default_rng(3)
    with mpmath.workdps(50):
        for _ in range(10):
            epsilon = math.exp(rng.uniform(math.log(0.2), math.log(20)))
            slope = epsilon * rng.uniform(0.001, 0.9)
            e, x = mpmath.mpf(epsilon), mpmath.mpf(slope)
            terms = [mpmath.exp(x * k - e * abs(k)) for k in range(-3000, 3001)]
            exact = mpmath.log(mpmath.tanh(e / 2) * mpmath.fsum(terms))
            assert noise_price(slope, epsilon) == pytest.approx(float(exact), rel=1e-10)
    assert noise_price(0.5, math.inf) == 0


def test_the_price_of_a_score_is_that_of_its_slopes() -> None:
    """To 1e-15 nats: the logarithm of a number near 1."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        epsilon = math.exp(rng.uniform(-7, 3))
        tilt, level = rng.uniform(0, 0.8) * min(epsilon, 3), 4 * math.sinh(epsilon / 2) ** 2
        score = slopes(-math.expm1(-tilt), math.expm1(tilt), rng.uniform(0.02, 0.98), 2.0)
        own, rival = noise_price(score.own, epsilon), noise_price(score.rival, epsilon)
        price = price_of_two(score.own_swing, score.rival_swing, level)
        assert price == pytest.approx(own + rival, rel=1e-9, abs=1e-15)
        assert price_of_two(score.own_swing, 0.0, level) == pytest.approx(own, rel=1e-9, abs=1e-15)
    assert price_of_two(1.0, 1.0, math.inf) == 0


# --- Lemma 4: the constant of tail bets -----------------------------------------------


def tail(k: Floats, epsilon: float) -> Floats:
    """P(Z >= k) of discrete Laplace noise, for whole k."""
    r = math.exp(-epsilon)
    above = np.exp(-epsilon * np.maximum(k, 0)) / (1 + r)
    below = 1 - np.exp(-epsilon * (1 - np.minimum(k, 0))) / (1 + r)
    return np.where(k >= 0, above, below)


def exact_one(slope: float, epsilon: float) -> float:
    """The logarithm of sup e^u P(slope Z >= u): it is attained at an atom."""
    k = np.arange(-math.ceil(3 / slope), math.ceil(3 / slope) + 1, dtype=float)
    return float(np.max(slope * k + np.log(tail(k, epsilon))))


def exact_two(one: int, other: int, unit: float, epsilon: float) -> tuple[float, float]:
    """The same for two noises whose slopes are whole multiples of `unit`, by
    convolution, and where it is attained.

    The function has one maximum up to the lattice: coarsely first, then the atoms
    around the best.
    """
    k = np.arange(-math.ceil(70 / epsilon), math.ceil(70 / epsilon) + 1, dtype=float)
    mass = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(k))

    def best_of(atoms: Floats) -> tuple[float, float]:
        need = np.ceil((atoms[:, None] - one * k[None, :]) / other)
        with np.errstate(divide="ignore"):
            value = atoms * unit + np.log(tail(need, epsilon) @ mass)
        return float(value.max()), float(atoms[np.argmax(value)])

    first, at = best_of(np.unique(np.round(np.linspace(-2, 30, 200) / unit)))
    around = max(0.2 / unit, one + other)
    near, there = best_of(np.unique(np.round(np.linspace(at - around, at + around, 400))))
    return max((first, at * unit), (near, there * unit))


def test_the_constant_of_one_noise_is_never_too_small() -> None:
    """Not below the exact supremum, and at most 0.04 epsilon above it: what is lost by
    a law without a lattice below zero.
    """
    rng = np.random.default_rng(4)
    for _ in range(300):
        epsilon = math.exp(rng.uniform(math.log(0.02), math.log(3)))
        beta = rng.uniform(0.02, 1)
        slack = log_tail_one(beta, epsilon) + UP - exact_one(beta * epsilon, epsilon)
        assert 0 < slack < 0.04 * epsilon + 2 * UP, (epsilon, beta)


@pytest.mark.parametrize("alike", [False, True])
def test_the_constant_of_two_noises_is_never_too_small(alike: bool) -> None:
    """Not below the exact supremum, and above it by at most half a step of the lattice
    for each noise and 1e-3 for the last bracket of the bisection; for nearly equal
    slopes 0.1 more, as 0.98 is taken for 1.
    """
    rng = np.random.default_rng(5)
    places = []
    for _ in range(40):
        epsilon = math.exp(rng.uniform(math.log(0.02), math.log(3)))
        high = int(rng.integers(51, 60)) if alike else int(rng.integers(2, 13))
        low = high - int(rng.integers(2)) if alike else int(rng.integers(1, high))
        one = rng.uniform(0.05, 0.9)
        other = one * low / high
        exact, place = exact_two(high, low, one * epsilon / high, epsilon)
        mine = log_tail_two(one, other, epsilon)
        assert mine == log_tail_two(other, one, epsilon)
        room = epsilon * (one + other) / 2 + (0.1 if alike else 0) + 1e-3
        assert 0 < mine + UP - exact < room, (epsilon, one, other)
        places.append(place)
    assert min(places) < 0 < max(places)


def test_the_largest_slopes() -> None:
    """One noise may have the slope epsilon, and one of two; two of them have no A."""
    assert log_tail_one(1.0, 1.0) == pytest.approx(-math.log1p(math.exp(-1)))
    assert log_tail_two(1.0, 1.0, 0.5) == math.inf
    near = log_tail_two(1 - 1e-9, 0.5, 0.5)
    assert log_tail_two(1.0, 0.5, 0.5) == pytest.approx(near, abs=1e-6)


# --- Lemma 5: tail bets ---------------------------------------------------------------


def test_a_tail_bet_is_fair() -> None:
    """Nonincreasing in p; its integral over (0, 1) is 1, less if alpha is above 1. By
    the exact integral of the power on both sides of the jump.
    """
    rng = np.random.default_rng(6)
    for _ in range(200):
        sigma, alpha = rng.uniform(0, 0.95), math.exp(rng.uniform(-12, 1))
        edges = np.unique(np.r_[np.exp(np.linspace(-30, 0, 2001)), min(alpha, 1.0)])
        value = np.exp([tail_bet(math.log(p), sigma, math.log(alpha)) for p in edges])
        assert np.all(np.diff(value) <= 0)
        assert tail_bet(0.5, sigma, math.log(alpha)) == tail_bet(0.0, sigma, math.log(alpha))
        below = float(np.sum(np.diff(edges) * value[1:]))
        above = float(np.sum(np.diff(edges) * value[:-1])) + edges[0] ** KAPPA + edges[0] * value[0]
        fair = (1 - sigma) + sigma * min(1.0, 1 / alpha)
        assert below <= fair <= above
        assert above - below < 0.02 * fair + 0.02


def test_a_first_round_bets_against_the_mean_of_all() -> None:
    """The sum over all arms that the code takes once is the sum over each arm's rivals;
    large p count less than 1.
    """
    rng = np.random.default_rng(7)
    epsilon, arms = 0.05, 6
    bets, setting = make_bets(epsilon), make_setting(arms, epsilon, 0.1)
    for spread in (1.0, 100.0, 3000.0):
        book = new_book(arms, bets.tilt.size)
        now = first_round(bets, setting, 10**9, book)
        book.fresh[:, COUNT] = rng.integers(150, 250, arms)
        book.fresh[:, SUM] = rng.normal(100, spread, arms)
        bet_on_all(now, bets, book)
        table, i = now.tails, int(now.pick[0])
        for a in range(arms):
            logs = [
                table[0, i, COST] + worth(table, 0, i, a, book) - praise(table, 0, i, c, book)
                for c in range(arms)
                if c != a
            ]
            terms = [KAPPA * math.exp((KAPPA - 1) * log) for log in logs]
            won = 1 - FIRST_STAKE + FIRST_STAKE * sum(terms) / (arms - 1)
            assert book.wealth[a, : bets.loud] == pytest.approx(math.log(won), rel=1e-9)
            assert not book.wealth[a, bets.loud :].any()


# --- all lemmas at once: a round under its null, exactly ------------------------------


def enumerate_round(
    epsilon: float, mean: float, odds: tuple[int, int, int], length: int
) -> tuple[Floats, Floats]:
    """Every way a round of three tied arms can go, the odds of the arm and of its rival
    first: probabilities, and rows n_a, Y_a, n_c, Y_c.
    """
    people, weight = length * sum(odds), sum(odds)
    noise = np.arange(-math.ceil(60 / epsilon), math.ceil(60 / epsilon) + 1)
    mass = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(noise))
    chances, ways = [], []
    for a in range(people + 1):
        for c in range(people + 1 - a):
            dealt = multinomial.pmf([a, c, people - a - c], people, np.array(odds) / weight)
            own = np.convolve(binom.pmf(np.arange(a + 1), a, mean), mass)
            rival = np.convolve(binom.pmf(np.arange(c + 1), c, mean), mass)
            y = np.arange(own.size) + noise[0], np.arange(rival.size) + noise[0]
            first, second = (side.ravel() for side in np.meshgrid(*y, indexing="ij"))
            chances.append(dealt * np.outer(own, rival).ravel())
            ways.append(np.stack([np.full_like(first, a), first, np.full_like(first, c), second]))
    return np.concatenate(chances), np.concatenate(ways, axis=1).astype(float)


@pytest.mark.parametrize(("mean", "odds"), [(0.5, (1, 1, 1)), (0.1, (1, 2, 1)), (0.8, (2, 1, 1))])
def test_bets_on_a_tied_arm_win_nothing(mean: float, odds: tuple[int, int, int]) -> None:
    """The exact mean of a moment bet is at most 1, that of a tail bet too, and its p is
    a p-value that is not too large by far. p is rounded down for the tail bet.
    """
    epsilon, centre, tilt = 0.7, 0.3, 0.4
    chance, (count, own, rivals, other) = enumerate_round(epsilon, mean, odds, 2)
    score = slopes(-math.expm1(-tilt), math.expm1(tilt), centre, odds[0] / odds[1])
    worth_of = score.own * own - score.own_count * count
    log = score.rival * other + score.rival_count * rivals - worth_of
    price = noise_price(score.own, epsilon) + noise_price(score.rival, epsilon)
    assert chance.sum() == pytest.approx(1, abs=1e-9)
    assert chance @ np.exp(log - price) == pytest.approx(1, abs=1e-6)
    log_p = np.minimum(log_tail_two(score.own / epsilon, score.rival / epsilon, epsilon) - log, 0)
    order = np.argsort(log_p)
    assert np.all(np.cumsum(chance[order]) <= np.exp(log_p[order]) + 1e-9)
    steps, place = np.unique(np.floor(200 * log_p) / 200, return_inverse=True)
    won = np.exp([tail_bet(x, 0.4, math.log(0.05)) for x in steps])
    assert chance @ won[place] < 1
    sharp = np.cumsum(chance[order]) / np.exp(log_p[order])
    assert sharp[(log_p[order] < 0) & (log_p[order] > -5)].max() > 0.3


# --- Lemma 6: margins -----------------------------------------------------------------


def margin_round(arms: int, epsilon: float = 0.01) -> tuple[Round, Book]:
    """A margin of all arms, the last one leading, nobody dealt yet."""
    bets, setting = make_bets(epsilon), make_setting(arms, epsilon, 0.1, hint=0.1)
    book = new_book(arms, bets.tilt.size)
    book.mean[-1] = 0.9
    plan = Plan(1, 10, 0.3, True, True, False)
    now = announce(1, 10, 10 * arms, plan, -1, -1, bets, setting, 10**9, book)
    assert now.leader == arms - 1
    return now, book


def deal(book: Book, bits: list[Floats]) -> None:
    for a, people in enumerate(bits):
        book.fresh[a] = people.sum(), people.size, 0


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_one_person_moves_a_margin_by_at_most_one(arms: int) -> None:
    """Every bit of every person flipped; margins are whole numbers, as the noise is."""
    rng = np.random.default_rng(8)
    now, book = margin_round(arms)
    moved = set()
    for _ in range(100):
        bits = [rng.integers(0, 2, rng.integers(0, 7)).astype(float) for _ in range(arms)]
        deal(book, bits)
        release_margin(0.0, 0.0, now, book)
        before = float(book.fresh[now.leader, SUM])
        assert before == int(before)
        for people in bits:
            for i in range(people.size):
                people[i] = 1 - people[i]
                deal(book, bits)
                release_margin(0.0, 0.0, now, book)
                moved.add(float(book.fresh[now.leader, SUM]) - before)
                people[i] = 1 - people[i]
    assert moved == ({-1, 1} if arms == 2 else {-1, 0, 1})


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_a_margin_never_says_more_than_the_sums(arms: int) -> None:
    """The score from a margin is at most that from the sums and the same noise; with
    two arms they are equal, for both.
    """
    rng = np.random.default_rng(9)
    now, book = margin_round(arms)
    leader = now.leader
    least = math.inf
    for _ in range(50):
        noise = float(rng.integers(-300, 300))
        bits = [rng.integers(0, 2, rng.integers(0, 40)).astype(float) for _ in range(arms)]

        def score(i: int, a: int, c: int) -> float:
            table, side = now.tails, int(a == leader)
            return praise(table, side, i, c, book) - worth(table, side, i, a, book)

        deal(book, bits)
        book.fresh[leader, SUM] += noise
        tilts = range(now.tails.shape[1])
        sums = [[score(i, a, leader) for a in range(leader)] for i in tilts]
        back = [score(i, leader, 0) for i in tilts]
        deal(book, bits)
        release_margin(noise, 0.0, now, book)
        lost = np.array(sums) - [[score(i, a, leader) for a in range(leader)] for i in tilts]
        assert np.all(lost > -1e-12)
        assert np.all(lost.min(axis=1) < 1e-12)
        least = min(least, -lost.max())
        if arms == 2:
            assert back == pytest.approx([score(i, leader, 0) for i in tilts], abs=1e-12)
    assert least < -0.01 if arms > 2 else least > -1e-12


def test_a_margin_has_slopes_of_its_tilt_and_one_noise() -> None:
    """Centre 1/2, whatever was planned: both slopes are the tilt, and A that of one
    noise.
    """
    epsilon = 0.01
    now, book = margin_round(3, epsilon)
    deal(book, [np.ones(4), np.ones(1), np.ones(3)])
    assert [handicap(a, now, book) for a in range(2)] == [-1, 1]
    for side, i in itertools.product(range(2), range(TAILS)):
        tilt = epsilon * (1 - 0.13 * i)
        row = now.tails[side, i]
        assert row[[OWN, RIVAL]] == pytest.approx(tilt, rel=1e-9)
        assert row[STEP] == pytest.approx(2 * math.tanh(tilt / 2))
        assert row[COST] == pytest.approx(log_tail_one(tilt / epsilon, epsilon) + UP, rel=1e-12)
