"""Draws of outcomes that are numbers, as bet-se sums them: in fine units with their
closeness to a centre, or as one of three levels.

Discrete laws are drawn by counts, others person by person. A reward is rounded at
random to whole units, as in a live trial.
"""

import math

from discreet.leaf import leaf
from discreet.simulation.laws import BERNOULLI, DISCRETE, Generator, Laws, draw_one
from discreet.strategies.betting.bets import Bump, Setting, make_bump, measure_closeness
from discreet.strategies.betting.book import Round
from discreet.strategies.units import LEVELS


@leaf
def draw_sent(
    rng: Generator, laws: Laws, arm: int, count: int, now: Round, setting: Setting
) -> tuple[int, int]:
    """(sum, closeness), in units, of what so many people of an arm send."""
    bump = make_bump(now.centre, setting.grid)
    if laws.kind > DISCRETE:
        total, near = 0, 0
        for _ in range(count):
            units, close = send(rng, draw_one(rng, laws, arm), bump, setting)
            total += units
            near += close
        return total, near
    if setting.kind == LEVELS:
        return draw_levels(rng, laws, arm, count, bump, setting)
    if laws.kind == BERNOULLI:
        return rng.binomial(count, laws.mean[arm]) * setting.grid, 0
    return draw_units(rng, laws, arm, count, bump)


@leaf
def draw_units(rng: Generator, laws: Laws, arm: int, count: int, bump: Bump) -> tuple[int, int]:
    """The same of a discrete law: how often each value comes, and how often it is
    rounded up.
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


@leaf
def draw_levels(
    rng: Generator, laws: Laws, arm: int, count: int, bump: Bump, setting: Setting
) -> tuple[int, int]:
    """The same where each person sends one of three levels: how often each comes."""
    middle, top = 0.0, laws.mean[arm]
    if laws.kind == DISCRETE:
        top, past = 0.0, 0.0
        for index in range(laws.values.shape[1]):
            value, chance = laws.values[arm, index], laws.cumulative[arm, index] - past
            past = laws.cumulative[arm, index]
            middle += chance * hat(value, bump.centre)
            top += chance * max(0.0, (value - bump.centre) / (1 - bump.centre))
    at_middle = setting.slip + setting.scale * min(middle, 1.0)
    at_top = setting.slip + setting.scale * min(top, 1.0)
    near = rng.binomial(count, at_middle)
    left, high = count - near, 0
    if left > 0:
        high = rng.binomial(left, min(at_top / (1 - at_middle), 1.0))
    return near * round(bump.centre * bump.grid) + high * bump.grid, near * bump.grid


@leaf
def hat(value: float, centre: float) -> float:
    """The chance that a value is rounded to the middle one of the levels 0, centre and
    1.
    """
    return value / centre if value < centre else (1 - value) / (1 - centre)


@leaf
def send(rng: Generator, reward: float, bump: Bump, setting: Setting) -> tuple[int, int]:
    """(units, closeness) of what one person sends of a reward."""
    if setting.kind != LEVELS:
        exact = reward * bump.grid
        units = math.floor(exact)
        if rng.random() < exact - units:
            units += 1
        return units, measure_closeness(units, bump)
    level = 1
    if rng.random() >= hat(reward, bump.centre):
        level = 0 if reward < bump.centre else 2
    lie = rng.random()
    if lie < 2 * setting.slip:
        level = (level + (1 if lie < setting.slip else 2)) % 3
    if level == 1:
        return round(bump.centre * bump.grid), bump.grid
    return (bump.grid if level == 2 else 0), 0
