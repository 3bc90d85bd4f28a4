"""The lemmas of the docs page "Betting elimination", by enumeration: scores, prices and
constants of noise, tail bets, and the exact conditional mean of every kind of bet on
small rounds. Random cases have fixed seeds; nothing here is a statistical test.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.simulation.compile import compile_kernel
from discreet.strategies.betting import bets as prices
from discreet.strategies.betting import rounds
from discreet.strategies.betting.bets import (
    CALIBRATOR_POWER,
    compute_log_tail_constant,
    compute_log_tail_payoff,
    compute_slopes,
    make_bets,
    make_bump,
    make_setting,
    measure_closeness,
    price_noise,
)
from discreet.strategies.betting.book import CLOSENESS, find_odds, find_rival, find_side, new_book
from discreet.strategies.betting.rounds import (
    OWN,
    OWN_CLOSENESS,
    RIVAL,
    RIVAL_CLOSENESS,
    announce,
    compute_net_score,
    fill_scores,
    release_difference,
)
from discreet.strategies.betting.schedule import RoundPlan
from discreet.strategies.units import BITS, BUMP

Floats = NDArray[np.float64]


# --- Lemma 1: the score ---------------------------------------------------------------


def random_score(rng: np.random.Generator) -> tuple[float, float, int, int]:
    """A tilt, a centre, and the odds of an arm and its rival, one of them 1."""
    tilt, centre = math.exp(rng.uniform(math.log(1e-5), math.log(3))), rng.uniform(1 / 64, 63 / 64)
    high = int(2 ** rng.integers(5))
    own, rival = (high, 1) if rng.random() < 0.5 else (1, high)
    return tilt, centre, own, rival


def test_a_score_is_a_chord_and_fair_over_the_randomisation() -> None:
    """For each person the score's factor lies below 1 - d (r - x0) (of the rival: 1 +
    d' (r - x0)), touches it at 0 and 1, and its mean over the arms is 1 + eta tau.
    """
    rng = np.random.default_rng(1)
    r = np.linspace(0, 1, 21)
    for _ in range(500):
        tilt, centre, own, rival = random_score(rng)
        score = compute_slopes(tilt, centre, own / rival)
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
        d = compute_slopes(tilt, centre, own / rival).step
        assert max(d, d * own / rival) <= math.expm1(tilt) * (1 + 1e-12)
        assert own * d >= -math.expm1(-tilt) * (1 - 1e-12)


def test_the_inverse_and_the_root_of_a_bet_fall_as_fast_as_the_bound_says() -> None:
    """Theorem 6: what a participant does to the inverse of the bet on the worse arm of
    two, and to the root of the bet on the better one.
    """
    rng = np.random.default_rng(4)
    for _ in range(500):
        low, high = np.sort(rng.random(2))
        gap, centre = high - low, rng.uniform(1 / 64, 63 / 64)
        tilt = math.log1p(gap / 4) * rng.random()
        for own, rival, largest in ((low, high, tilt), (high, low, 3.0)):
            score = compute_slopes(largest * rng.random(), centre, 1.0)
            factors = [1 - score.step * (r - centre) for r in (0, 1)]
            factors += [1 + score.step * (r - centre) for r in (0, 1)]
            chances = np.array([1 - own, own, 1 - rival, rival]) / 2
            eta = score.step / 2
            if own == low:
                assert chances @ (1 / np.array(factors)) <= 1 - eta * gap / 3 + 1e-14
            else:
                assert chances @ np.sqrt(factors) <= 1 - eta * gap / 2 + 1e-14


# --- Lemmas 2 to 5: noise -------------------------------------------------------------


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
            assert price_noise(slope, epsilon) == pytest.approx(float(exact), rel=1e-10)
    assert price_noise(0.5, math.inf) == 0


def noise_law(epsilon: float, sigma: float) -> tuple[Floats, Floats]:
    """The values of the noise and their chances: what is left out is below 1e-17 of
    everything that is summed here.
    """
    if sigma > 0:
        values = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1.0)
        chances = np.exp(-(values**2) / (2 * sigma**2))
        return values, chances / chances.sum()
    values = np.arange(-math.ceil(40 / epsilon), math.ceil(40 / epsilon) + 1.0)
    return values, math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(values))


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 4.0])
def test_the_tail_constant_is_the_supremum_and_attained_by_every_positive_value(
    epsilon: float,
) -> None:
    """Lemma 4: e^w P(eps Z >= w) is s at each multiple of epsilon from 0 on."""
    k = np.arange(-math.ceil(3 / epsilon), math.ceil(20 / epsilon) + 1.0)
    r = math.exp(-epsilon)
    above = np.where(k >= 0, r ** np.maximum(k, 0), 1 + r - r ** np.maximum(1 - k, 0)) / (1 + r)
    logs = epsilon * k + np.log(above)
    s = compute_log_tail_constant(epsilon) - prices.LOG_TAIL_MARGIN
    assert logs.max() == pytest.approx(s, abs=1e-12)
    assert logs[k >= 0] == pytest.approx(s, abs=1e-10)
    less = (1 - 1e-9) * epsilon * k + np.log(above)
    assert less.max() < compute_log_tail_constant(epsilon)


def test_a_tail_bet_is_fair() -> None:
    """Nonincreasing in p; its integral over (0, 1) is 1, less if alpha is above 1. By
    the exact integral of the power on both sides of the jump.
    """
    rng, power = np.random.default_rng(6), CALIBRATOR_POWER
    for _ in range(200):
        sigma, alpha = rng.uniform(0, 0.95), math.exp(rng.uniform(-12, 1))
        edges = np.unique(np.r_[np.exp(np.linspace(-30, 0, 2001)), min(alpha, 1.0)])
        value = np.exp(
            [compute_log_tail_payoff(math.log(p), sigma, math.log(alpha)) for p in edges]
        )
        assert np.all(np.diff(value) <= 0)
        assert compute_log_tail_payoff(0.5, sigma, 0.0) == compute_log_tail_payoff(0.0, sigma, 0.0)
        below = float(np.sum(np.diff(edges) * value[1:]))
        above = float(np.sum(np.diff(edges) * value[:-1])) + edges[0] ** power + edges[0] * value[0]
        fair = (1 - sigma) + sigma * min(1.0, 1 / alpha)
        assert below <= fair <= above
        assert above - below < 0.02 * fair + 0.02


# --- every kind of bet, exactly -------------------------------------------------------


class Kind(NamedTuple):
    """A kind of round: the odds of the leader, the first arm, against 1 for two others;
    which arm has them, whether a difference is released, how bets pay for noise.
    """

    odds: int
    favoured: int = 0
    difference: bool = False
    by_tails: bool = False
    fine: bool = False
    sigma: float = 0.0
    indifference_zone: float = 0.0
    noised: bool = True


KINDS = {
    "moments": Kind(1),
    "moments, odds": Kind(4),
    "moments, another arm has the odds": Kind(2, favoured=2),
    "moments, difference": Kind(1, difference=True),
    "moments, zone": Kind(2, indifference_zone=0.5),
    "moments, difference, zone": Kind(1, difference=True, indifference_zone=0.5),
    "moments, no noise": Kind(2, noised=False),
    "moments, no noise, zone": Kind(4, noised=False, indifference_zone=0.5),
    "tails": Kind(2, by_tails=True),
    "tails, odds": Kind(4, by_tails=True),
    "tails, difference": Kind(1, difference=True, by_tails=True),
    "tails, zone": Kind(2, by_tails=True, indifference_zone=0.5),
    "tails, difference, zone": Kind(1, difference=True, by_tails=True, indifference_zone=0.5),
    "moments, Gaussian": Kind(2, sigma=0.8),
    "moments, difference, Gaussian": Kind(1, difference=True, sigma=0.8),
    "tails, Gaussian, zone": Kind(2, by_tails=True, sigma=0.8, indifference_zone=0.5),
    "tails, Gaussian": Kind(2, by_tails=True, sigma=0.8),
    "tails, difference, Gaussian": Kind(1, difference=True, by_tails=True, sigma=2.5),
    "moments, numbers": Kind(2, fine=True),
    "moments, another arm has the odds, numbers": Kind(2, favoured=2, fine=True),
    "moments, difference, numbers": Kind(1, difference=True, fine=True),
    "moments, numbers, no noise": Kind(2, fine=True, noised=False),
    "moments, numbers, zone": Kind(2, fine=True, indifference_zone=0.5),
    "tails, numbers, zone": Kind(2, by_tails=True, fine=True, indifference_zone=0.5),
    "tails, numbers": Kind(2, by_tails=True, fine=True),
    "tails, difference, numbers": Kind(1, difference=True, by_tails=True, fine=True),
}
GRID = 2
PAYOFF = np.vectorize(compile_kernel(compute_log_tail_payoff), otypes=[float])


class Game:
    """A small round of one kind, and the exact mean of what its bets multiply wealth
    by: over all assignments of people with given outcomes on each arm, and the noise.
    """

    def __init__(self, kind: Kind, epsilon: float, centre: float) -> None:
        self.kind, self.arms = kind, 2 if kind.difference else 3
        self.level = 0.4, -3.0
        """The share of a tail bet that goes all in, and the log of its alpha."""
        numbers, grid = (BUMP, GRID) if kind.fine else (BITS, 1)
        trust = "global" if kind.noised else "none"
        self.setting = make_setting(
            self.arms, epsilon, 0.1, trust, kind.indifference_zone, 0.0, numbers, grid, kind.sigma
        )
        self.bets = make_bets(epsilon, trust)
        self.book = new_book(self.arms, self.bets.tilt.size)
        self.book.mean[0] = 0.9
        plan = RoundPlan(kind.odds, 1, centre, kind.by_tails, kind.difference, kind.fine)
        self.now = announce(1, 9, 27, plan, kind.favoured, -1, 10**6, 0, self.book)
        scores = 1 if kind.by_tails else self.bets.tilt.size
        self.table = np.zeros((3, scores, 8))
        fill_scores(self.table, self.now, self.bets, self.setting)

    def noise(self, a: int, c: int, j: int) -> tuple[Floats, Floats]:
        """What noise adds to a score, and its chances."""
        row, unit = self.table[find_side(a, self.now), j], 1.0
        if not self.kind.noised:
            return np.zeros(1), np.ones(1)
        values, mass = noise_law(self.setting.epsilon, self.kind.sigma)
        if self.kind.fine:
            values, mass = noise_law(self.setting.epsilon / GRID, 0.0)
            unit = 1 / GRID
        slopes = [-row[OWN], row[RIVAL]]
        if self.kind.difference:
            slopes = [row[RIVAL] if c == self.now.leader else -row[OWN]]
        if self.kind.fine:
            slopes += (
                [row[OWN_CLOSENESS]]
                if self.kind.difference
                else [row[OWN_CLOSENESS], row[RIVAL_CLOSENESS]]
            )
        total, chance = np.zeros(1), np.ones(1)
        for slope in slopes:
            total = np.add.outer(total, slope * unit * values).ravel()
            chance = np.outer(chance, mass).ravel()
        return total, chance

    def states(self, outcomes: NDArray[np.int64]) -> Iterator[tuple[float, Floats]]:
        """The chance of each assignment, and the rows of `fresh` without noise;
        `outcomes` are [person, arm] in units.
        """
        odds = np.array([find_odds(a, self.now) for a in range(self.arms)]) / self.now.weight
        bump = make_bump(self.now.centre, GRID)
        for arms in itertools.product(range(self.arms), repeat=len(outcomes)):
            fresh = np.zeros((self.arms, 3))
            for person, arm in enumerate(arms):
                units = int(outcomes[person, arm])
                near = measure_closeness(units, bump) / GRID if self.kind.fine else 0.0
                fresh[arm] += units / self.setting.grid, 1, near
            yield float(np.prod(odds[list(arms)])), fresh

    def means(self, outcomes: NDArray[np.int64], a: int, c: int) -> list[float]:
        """The mean of the factor of each bet on arm a against c."""
        shift = self.kind.indifference_zone * find_odds(a, self.now)
        noises = [self.noise(a, c, j) for j in range(self.table.shape[1])]
        found = [0.0] * len(noises)
        for chance, fresh in self.states(outcomes):
            self.book.fresh[:] = fresh
            if self.kind.difference:
                release_difference(0.0, float(fresh[:, CLOSENESS].sum()), self.now, self.book)
            for j, (noise, mass) in enumerate(noises):
                net = compute_net_score(
                    self.table, find_side(a, self.now), j, a, c, shift, self.book
                )
                logs = net + noise
                if self.kind.by_tails:
                    logs = PAYOFF(-net - noise, *self.level)
                found[j] += chance * float(mass @ np.exp(logs))
        return found

    def tail_excess(self, outcomes: NDArray[np.int64], a: int, c: int) -> float:
        """The largest log of P(p <= y) / y over all y that p takes, below 1."""
        noise, mass = self.noise(a, c, 0)
        shift, logs, chances = self.kind.indifference_zone * find_odds(a, self.now), [], []
        for chance, fresh in self.states(outcomes):
            self.book.fresh[:] = fresh
            if self.kind.difference:
                release_difference(0.0, float(fresh[:, CLOSENESS].sum()), self.now, self.book)
            net = compute_net_score(self.table, find_side(a, self.now), 0, a, c, shift, self.book)
            logs.append(-net - noise)
            chances.append(chance * mass)
        log_p, chance_of = np.concatenate(logs), np.concatenate(chances)
        order = np.argsort(log_p)
        log_p, seen = log_p[order], np.cumsum(chance_of[order])
        last = np.append(np.diff(log_p) > 1e-9, True) & (log_p > -20) & (log_p < 0)
        return float((np.log(seen[last]) - log_p[last]).max())

    def cut_mean(self, a: int, c: int, stake: Callable[[int], float]) -> float:
        """The largest mean of the bet on arm a against c over all ways to end the round
        by what its participants have so far: each of them does as well on either arm,
        but how well depends on those before. After n participants a tail bet goes all
        in with the share stake(n).
        """
        odds = np.array([find_odds(arm, self.now) for arm in range(self.arms)]) / self.now.weight
        noise, mass = self.noise(a, c, 0)
        most = self.now.weight * self.now.announced

        def factor(n: int, state: tuple[int, ...]) -> float:
            self.book.fresh[:] = 0.0
            self.book.fresh[a, :2], self.book.fresh[c, :2] = state[:2], state[2:]
            if self.kind.difference:
                release_difference(0.0, 0.0, self.now, self.book)
            net = compute_net_score(self.table, find_side(a, self.now), 0, a, c, 0.0, self.book)
            if self.kind.by_tails:
                return float(mass @ np.exp(PAYOFF(-net - noise, stake(n), self.level[1])))
            return float(mass @ np.exp(net + noise))

        @lru_cache(None)
        def value(n: int, state: tuple[int, ...]) -> float:
            if n == most:
                return factor(n, state)
            on = [0.0, 0.0]
            for bit in (0, 1):
                sum_a, n_a, sum_c, n_c = state
                on[bit] = odds[a] * value(n + 1, (sum_a + bit, n_a + 1, sum_c, n_c))
                on[bit] += odds[c] * value(n + 1, (sum_a, n_a, sum_c + bit, n_c + 1))
                on[bit] += (1 - odds[a] - odds[c]) * value(n + 1, state)
            return max(*on, factor(n, state) if n else 0.0)

        return value(0, (0, 0, 0, 0))


def draw_tied(
    rng: np.random.Generator, game: Game, people: int, a: int, c: int
) -> NDArray[np.int64]:
    """Outcomes on each arm, in units, of people who would in all have done at least as
    well on arm a as on c, by the indifference zone a person.
    """
    grid = game.setting.grid
    while True:
        units = rng.integers(0, grid + 1, (people, game.arms))
        if rng.random() < 0.5:
            units[:, c] = rng.permutation(units[:, a])
        if (units[:, c] - units[:, a]).sum() <= -game.kind.indifference_zone * grid * people:
            return units


def largest_mean(name: str, games: int = 3) -> float:
    """The largest mean of a bet of this kind over random rounds of one length."""
    rng, found = np.random.default_rng(11), 0.0
    kind = KINDS[name]
    for _ in range(games):
        epsilon = rng.uniform(14, 20) if kind.fine else rng.uniform(0.5, 2)
        game = Game(kind, epsilon, 0.25 * int(rng.integers(1, 4)))
        game.level = float(rng.uniform(0.05, 0.6)), float(rng.uniform(-6, 0))
        for a in range(game.arms):
            c = find_rival(a, game.now)
            outcomes = draw_tied(rng, game, game.now.weight, a, c)
            found = max(found, *game.means(outcomes, a, c))
            if kind.by_tails:
                assert game.tail_excess(outcomes, a, c) <= 1e-12
    return found


@pytest.mark.parametrize("name", KINDS)
def test_no_bet_wins_on_average_under_its_null(name: str) -> None:
    assert largest_mean(name) <= 1 + 1e-12


@pytest.mark.parametrize("name", ["moments", "tails", "tails, difference"])
def test_no_bet_wins_on_average_if_its_round_is_cut_by_what_it_says(name: str) -> None:
    """Whoever ends a round early may have seen every outcome in it: with the stakes that
    were announced no bet gains by that.
    """
    kind = KINDS[name]
    game = Game(kind, 1.0, 0.5 if kind.difference else 0.25)
    a, c = (1, 0) if kind.difference else (0, 1)
    assert game.cut_mean(a, c, lambda n: 0.4) <= 1 + 1e-12


def test_stakes_that_follow_the_size_of_a_cut_round_are_caught() -> None:
    """The share all in is small in short rounds: the bet gains, if the round ends early
    where the other bet is worth more.
    """
    game = Game(KINDS["tails, difference"], 0.5, 0.5)
    game.now = game.now._replace(announced=4)
    for share in (0.02, 0.5, 0.9):
        assert game.cut_mean(1, 0, {n: share for n in range(9)}.__getitem__) <= 1 + 1e-12
    assert game.cut_mean(1, 0, lambda n: 0.02 if n < 5 else 0.9) > 1.01


TIES = np.array([[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0]])


def mean_on_ties() -> float:
    """The largest mean of a moment bet where a person does as well on either arm."""
    game = Game(Kind(2), 1.0, 0.25)
    return max(max(game.means(TIES, a, c)) for a, c in ((0, 1), (1, 0)))


def test_a_moment_bet_on_a_tie_is_exactly_fair() -> None:
    """So the check above has no room to spare."""
    assert mean_on_ties() == pytest.approx(1.0, abs=1e-12)


def test_a_price_that_is_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "price_noise", lambda *about: 0.99 * price_noise(*about))
    assert mean_on_ties() > 1 + 1e-3


def test_odds_that_are_wrong_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bet against the follower gains: the leader plays twice as often as the score
    says, and those who tie do better than the centre.
    """
    monkeypatch.setattr(rounds, "compute_odds_ratio", lambda side, now: 1.0)
    assert max(Game(Kind(2), 1.0, 0.25).means(TIES, 1, 0)) > 1.01


def test_a_tail_constant_that_is_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a thousandth of a nat, where nobody is in the round, so that p is of noise
    alone.
    """
    game = Game(KINDS["tails, difference"], 0.5, 0.5)
    nobody = np.zeros((0, 2), np.int64)
    assert -2 * prices.LOG_TAIL_MARGIN < game.tail_excess(nobody, 1, 0) <= 0
    monkeypatch.setattr(
        rounds, "compute_log_tail_constant", lambda e: compute_log_tail_constant(e) - 1e-3
    )
    game = Game(KINDS["tails, difference"], 0.5, 0.5)
    assert game.tail_excess(nobody, 1, 0) > 9e-4


def test_a_tail_bet_that_does_not_pay_the_smaller_noise_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In sums: the larger noise is paid by its tail, the smaller by its moment."""
    nobody = np.zeros((0, 3), np.int64)
    assert Game(KINDS["tails"], 0.5, 0.5).tail_excess(nobody, 1, 0) <= 0
    monkeypatch.setattr(rounds, "price_slope", lambda *about: 0.0)
    assert Game(KINDS["tails"], 0.5, 0.5).tail_excess(nobody, 1, 0) > 0.1


def test_one_person_moves_a_difference_by_at_most_one() -> None:
    """Every bit of every person flipped."""
    rng, game = np.random.default_rng(8), Game(KINDS["tails, difference"], 0.1, 0.5)
    moved = set()
    for _ in range(100):
        bits = [rng.integers(0, 2, rng.integers(0, 7)).astype(float) for _ in range(2)]
        released = []
        for flip in (None, *((a, i) for a in range(2) for i in range(bits[a].size))):
            for a, people in enumerate(bits):
                total = people.sum()
                if flip is not None and flip[0] == a:
                    total += 1 - 2 * people[flip[1]]
                game.book.fresh[a] = total, people.size, 0
            release_difference(0.0, 0.0, game.now, game.book)
            released.append(float(game.book.fresh[game.now.leader, 0]))
        moved |= set(np.array(released[1:]) - released[0])
    assert moved == {-1.0, 1.0}
