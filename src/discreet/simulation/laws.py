"""Reward laws, and the draws of simulated rewards: the private side of the wall."""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.errors import InvalidInputError
from discreet.instances import (
    NO_DRIFT,
    STEADY,
    Bernoulli,
    Beta,
    Discrete,
    Drift,
    Drifting,
    Gaussian,
    Instance,
    compute_shift,
)
from discreet.jit import jit
from discreet.past_data import Sampled
from discreet.strategies.betting.bets import BettingSetting, Bump, make_bump, measure_closeness
from discreet.strategies.betting.book import Round
from discreet.strategies.units import LEVELS

Generator = np.random.Generator

BERNOULLI, DISCRETE, BETA, SAMPLED, GAUSSIAN = 0, 1, 2, 3, 4


class Laws(NamedTuple):
    """Hold the arms' reward laws, all of one kind. Make them with `make_laws`, or with the
    function of their kind.
    """

    kind: int
    mean: Floats
    shapes: Floats
    """Beta: [arm, 2]."""
    values: Floats
    """Discrete: [arm, value], rows padded with values of chance 0."""
    chances: Floats
    """Discrete: chance of a value given that it is none of the earlier ones."""
    cumulative: Floats
    """Discrete: chance of this or an earlier value; 1 from the last possible value
    on.
    """
    drift: Drift = NO_DRIFT
    """Bernoulli: how the means move from person to person, within `least` and
    `most`.
    """
    least: float = 0.0
    most: float = 1.0
    pool: Floats = np.zeros(1)
    """Sampled: the rewards of all arms, one arm after the other."""
    start: Ints = np.zeros(1, np.int64)
    """Sampled: where each arm begins in `pool`, and where the last one ends."""
    sigma: float = 0.0
    """Gaussian: the standard deviation of all arms."""


def make_bernoulli_laws(means: Floats) -> Laws:
    """Make the laws of arms that pay 0 or 1."""
    mean = np.array(means, float)
    none = np.zeros((mean.size, 1))
    return Laws(BERNOULLI, mean, none, none, none, none)


def make_beta_laws(shapes: Floats) -> Laws:
    """Make the laws of Beta arms, one row (a, b) each; they are drawn sample by sample."""
    shape = np.ascontiguousarray(shapes, float)
    none = np.zeros((len(shape), 1))
    return Laws(BETA, shape[:, 0] / shape.sum(axis=1), shape, none, none, none)


def make_discrete_laws(values: Floats, probabilities: Floats) -> Laws:
    """Make the laws of arms on finitely many values, one row each. A phase's counts are
    one multinomial, made of binomials.
    """
    value = np.ascontiguousarray(values, float)
    chance = np.array(probabilities, float)
    chance /= chance.sum(axis=1, keepdims=True)
    left = np.cumsum(chance[:, ::-1], axis=1)[:, ::-1]
    given = np.divide(chance, left, out=np.ones_like(chance), where=left > 0.0)
    cumulative = np.cumsum(chance, axis=1)
    for row in range(len(chance)):
        last = int(np.flatnonzero(chance[row] > 0.0)[-1])
        cumulative[row, last:] = 1.0
        given[row, last:] = 1.0
    none = np.zeros((len(value), 1))
    return Laws(
        DISCRETE, (value * chance).sum(axis=1), none, value, np.minimum(given, 1.0), cumulative
    )


def make_sampled_laws(means: Floats, pool: Floats, start: Ints) -> Laws:
    """Make the laws of arms given by data; they are drawn sample by sample."""
    none = np.zeros((len(means), 1))
    return Laws(SAMPLED, means, none, none, none, none, pool=np.array(pool), start=start)


def make_gaussian_laws(means: Floats, sigma: float) -> Laws:
    """Make the laws of arms with normal rewards. A phase's sum is normal too: one draw."""
    return make_bernoulli_laws(means)._replace(kind=GAUSSIAN, sigma=float(sigma))


def make_laws(instance: Instance) -> Laws:
    """Return the laws of an instance, as the loops draw from them."""
    if isinstance(instance, Bernoulli):
        return make_bernoulli_laws(np.array(instance.means))
    if isinstance(instance, Drifting):
        return make_laws(instance.instance)._replace(drift=instance.drift)
    if isinstance(instance, Discrete):
        values = np.tile(np.array(instance.values), (instance.arms, 1))
        return make_discrete_laws(values, np.array(instance.probabilities))
    if isinstance(instance, Beta):
        return make_beta_laws(np.array([instance.a, instance.b]).T)
    if isinstance(instance, Gaussian):
        return make_gaussian_laws(np.array(instance.means), instance.sigma)
    if isinstance(instance, Sampled):
        return make_sampled_laws(np.array(instance.means), instance.flat, np.array(instance.starts))
    raise InvalidInputError(f"there is no simulation of {type(instance).__name__} arms")


def make_response_laws(laws: Laws, epsilon: float) -> Laws:
    """Return the laws of what CTB(epsilon) sends: Ber((r (e^eps - 1) + 1)/(e^eps + 1))
    for a reward r, hence Bernoulli with this mean.

    The chance is linear in r, so this is the law of the response for any reward law on
    [0, 1]; e^-eps never overflows.
    """
    shrink = math.exp(-epsilon)
    answers = make_bernoulli_laws((laws.mean * (1.0 - shrink) + shrink) / (1.0 + shrink))
    slope = (1.0 - shrink) / (1.0 + shrink)
    return answers._replace(
        drift=laws.drift._replace(size=laws.drift.size * slope),
        least=shrink / (1.0 + shrink),
        most=1.0 / (1.0 + shrink),
    )


@jit
def draw_from_pool(rng: Generator, laws: Laws, arm: int) -> float:
    """Draw one of an arm's rewards, each as likely as the others."""
    first = laws.start[arm]
    return float(laws.pool[first + int(rng.random() * (laws.start[arm + 1] - first))])


@jit
def draw_sum(rng: Generator, laws: Laws, arm: int, count: int) -> float:
    """Draw the sum of `count` rewards of an arm, at once if the law allows it."""
    if laws.kind == BERNOULLI:
        return float(rng.binomial(count, laws.mean[arm]))
    if laws.kind == GAUSSIAN:
        spread = laws.sigma * math.sqrt(count)
        return float(count * laws.mean[arm] + spread * rng.standard_normal())
    total = 0.0
    if laws.kind == BETA:
        for _ in range(count):
            total += rng.beta(laws.shapes[arm, 0], laws.shapes[arm, 1])
        return total
    if laws.kind == SAMPLED:
        for _ in range(count):
            total += draw_from_pool(rng, laws, arm)
        return total
    left = count
    for index in range(laws.values.shape[1]):
        if left > 0:
            hits = rng.binomial(left, laws.chances[arm, index])
            total += hits * laws.values[arm, index]
            left -= hits
    return total


@jit
def draw_steady_reward(rng: Generator, laws: Laws, arm: int) -> float:
    """Draw one reward of an arm that does not drift."""
    if laws.kind == BERNOULLI:
        return 1.0 if rng.random() < laws.mean[arm] else 0.0
    if laws.kind == BETA:
        return float(rng.beta(laws.shapes[arm, 0], laws.shapes[arm, 1]))
    if laws.kind == SAMPLED:
        return draw_from_pool(rng, laws, arm)
    if laws.kind == GAUSSIAN:
        return float(laws.mean[arm] + laws.sigma * rng.standard_normal())
    chance = rng.random()
    index = 0
    while chance >= laws.cumulative[arm, index]:
        index += 1
    return float(laws.values[arm, index])


@jit
def compute_success_chance(laws: Laws, arm: int, person: int) -> float:
    """Return the chance that an arm's reward, rounded at random to a bit, is 1 for this
    participant (counted from 0).
    """
    moved = laws.mean[arm] + compute_shift(laws.drift, person)
    return float(min(max(moved, laws.least), laws.most))


@jit
def draw_reward(rng: Generator, laws: Laws, arm: int, person: int) -> float:
    """Draw one reward of an arm for this participant, under a drift if there is one."""
    if laws.drift.kind == STEADY:
        return draw_steady_reward(rng, laws, arm)
    return 1.0 if rng.random() < compute_success_chance(laws, arm, person) else 0.0


@jit
def draw_gaussian(rng: Generator, sigma: float) -> float:
    """Draw discrete Gaussian noise, from discrete Laplace noise by rejection (Canonne,
    Kamath & Steinke 2020, Algorithm 3).
    """
    wide = math.floor(sigma) + 1
    p = -math.expm1(-1 / wide)
    while True:
        drawn = float(rng.geometric(p) - rng.geometric(p))
        off = (abs(drawn) - sigma * sigma / wide) / sigma
        if rng.random() < math.exp(-off * off / 2):
            return drawn


@jit
def draw_sent_sums(
    rng: Generator, laws: Laws, arm: int, count: int, now: Round, setting: BettingSetting
) -> tuple[int, int]:
    """Draw the sum and the closeness, in units, of what so many participants of an arm
    send.
    """
    bump = make_bump(now.centre, setting.grid)
    if laws.kind > DISCRETE:
        total, near = 0, 0
        for _ in range(count):
            units, close = draw_response(rng, draw_steady_reward(rng, laws, arm), bump, setting)
            total += units
            near += close
        return total, near
    if setting.kind == LEVELS:
        return draw_sent_levels(rng, laws, arm, count, bump, setting)
    if laws.kind == BERNOULLI:
        return rng.binomial(count, laws.mean[arm]) * setting.grid, 0
    return draw_sent_units(rng, laws, arm, count, bump)


@jit
def draw_sent_units(
    rng: Generator, laws: Laws, arm: int, count: int, bump: Bump
) -> tuple[int, int]:
    """Draw sum and closeness for a discrete law: how often each value comes, and how
    often it is rounded up.
    """
    total, near, left = 0, 0, count
    for index in range(laws.values.shape[1]):
        hits = rng.binomial(left, laws.chances[arm, index]) if left > 0 else 0
        if hits > 0:
            left -= hits
            exact = laws.values[arm, index] * bump.grid
            whole = math.floor(exact)
            up = rng.binomial(hits, exact - whole)
            total += hits * whole + up
            near += (hits - up) * measure_closeness(whole, bump)
            if up > 0:
                near += up * measure_closeness(whole + 1, bump)
    return total, near


@jit
def draw_sent_levels(
    rng: Generator, laws: Laws, arm: int, count: int, bump: Bump, setting: BettingSetting
) -> tuple[int, int]:
    """Draw sum and closeness if each participant sends one of three levels: how often
    each comes.
    """
    middle, top = 0.0, laws.mean[arm]
    if laws.kind == DISCRETE:
        top, past = 0.0, 0.0
        for index in range(laws.values.shape[1]):
            value, chance = laws.values[arm, index], laws.cumulative[arm, index] - past
            past = laws.cumulative[arm, index]
            middle += chance * compute_middle_chance(value, bump.centre)
            top += chance * max(0.0, (value - bump.centre) / (1 - bump.centre))
    at_middle = setting.level_error + setting.scale * min(middle, 1.0)
    at_top = setting.level_error + setting.scale * min(top, 1.0)
    near = rng.binomial(count, at_middle)
    left, high = count - near, 0
    if left > 0:
        high = rng.binomial(left, min(at_top / (1 - at_middle), 1.0))
    return near * round(bump.centre * bump.grid) + high * bump.grid, near * bump.grid


@jit
def compute_middle_chance(value: float, centre: float) -> float:
    """Return the chance that a value is rounded to the middle one of the levels 0,
    centre and 1.
    """
    return value / centre if value < centre else (1 - value) / (1 - centre)


@jit
def draw_response(
    rng: Generator, reward: float, bump: Bump, setting: BettingSetting
) -> tuple[int, int]:
    """Draw the units and the closeness of what one participant sends of a reward."""
    if setting.kind != LEVELS:
        exact = reward * bump.grid
        units = math.floor(exact)
        if rng.random() < exact - units:
            units += 1
        return units, measure_closeness(units, bump)
    level = 1
    if rng.random() >= compute_middle_chance(reward, bump.centre):
        level = 0 if reward < bump.centre else 2
    lie = rng.random()
    if lie < 2 * setting.level_error:
        level = (level + (1 if lie < setting.level_error else 2)) % 3
    if level == 1:
        return round(bump.centre * bump.grid), bump.grid
    return (bump.grid if level == 2 else 0), 0
